#include "training/diverged.h"

#include <fmt/format.h>

#include <cmath>

namespace nsimplex::training {

void require_finite(int64_t step, double loss, double gradient_norm) {
  if (std::isfinite(loss) && std::isfinite(gradient_norm)) return;
  const bool of_loss = !std::isfinite(loss);
  const double value = of_loss ? loss : gradient_norm;
  throw Diverged(fmt::format("the {} is {} at step {}: the run stops; try a lower learning rate",
                             of_loss ? "loss" : "gradient norm",
                             std::isnan(value) ? "not a number" : fmt::format("{}", value), step));
}

}  // namespace nsimplex::training
