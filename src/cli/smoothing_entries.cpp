#include "cli/smoothing_entries.h"

#include <ATen/ATen.h>
#include <nsimplex/analysis_smoothing.h>
#include <nsimplex/separable.h>

#include "cli/interrupt.h"
#include "training/statistics.h"

namespace nsimplex::cli {
namespace {

using analysis::PureHead;
using at::Tensor;

constexpr int64_t kDraws = 9;
constexpr double kBounds[] = {0.1, 0.2, 0.5, 1, 2, 5, 10};

double ratio_of(const Tensor& tokens) {
  return (minimal_residual(tokens).norm / composite_norm(tokens)).item<double>();
}

// What the separable operator makes of the head.
Tensor separable(const PureHead& head, const Tensor& tokens) {
  const auto project = [&](const Tensor& weights) {
    return tokens.matmul(weights).unsqueeze(0).unsqueeze(0);
  };
  std::vector<Tensor> keys, values;
  for (size_t m = 1; m < head.keys.size(); ++m) {
    keys.push_back(feature_map(project(head.keys[m])));
  }
  for (const Tensor& weights : head.values) values.push_back(project(weights));
  return separable_attention(feature_map(project(head.keys[0])), keys, values)
      .out.squeeze(0)
      .squeeze(0);
}

}  // namespace

void sweep_entries(int64_t order, const DepthSettings& settings,
                   const std::function<void(const Json&)>& write) {
  for (const double bound : kBounds) {
    std::vector<double> contractions, errors;
    for (int64_t i = 0; i < kDraws; ++i) {
      interrupt::check();
      const Tensor tokens = at::randn({settings.tokens, settings.channels}, at::kDouble);
      PureHead head = analysis::random_head(order, settings.channels);
      for (Tensor& weights : head.keys) {
        weights = weights * (bound / tokens.matmul(weights).abs().max());
      }
      const Tensor out = analysis::apply(head, tokens);
      contractions.push_back(ratio_of(out) / ratio_of(tokens));
      errors.push_back(((separable(head, tokens) - out).norm() / out.norm()).item<double>());
    }
    write({{"entry_bound", bound},
           {"order", order},
           {"contraction", training::median(contractions)},
           {"separable_error", training::median(errors)}});
  }
}

}  // namespace nsimplex::cli
