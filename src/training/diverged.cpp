#include "training/diverged.h"

#include <ATen/ops/isfinite.h>
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

void require_finite_outputs(std::optional<int64_t> step, const at::Tensor& outputs) {
  if (at::isfinite(outputs).all().item<bool>()) return;
  throw Diverged(fmt::format(
      "the model's output is not finite after {}: the run stops; try a lower learning rate",
      step ? fmt::format("step {}", *step) : "its training"));
}

}  // namespace nsimplex::training
