#include "cli/smoothing_squash.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "cli/interrupt.h"

namespace nsimplex::cli {
namespace {

using at::Tensor;

// ||d x_i / d x_j||_2 of the last row i and every row j of the input: [n].
Tensor influences(const DepthArm& arm, const std::vector<analysis::PureHead>& layers,
                  const Tensor& start) {
  const Tensor input = start.detach().requires_grad_();
  Tensor tokens = input;
  for (const analysis::PureHead& head : layers) tokens = run_layer(arm, head, tokens);
  const Tensor last = tokens.select(0, -1);
  std::vector<Tensor> rows;
  for (int64_t channel = 0; channel < last.size(0); ++channel) {
    interrupt::check();
    rows.push_back(torch::autograd::grad({last[channel]}, {input}, {}, /*retain_graph=*/true)[0]);
  }
  return at::linalg_matrix_norm(at::stack(rows, 1), 2);  // [n, out, in]
}

}  // namespace

void test_squashing(int64_t order, const DepthSettings& settings, uint64_t seed, Verdicts& verdicts,
                    const std::function<void(const Json&)>& write) {
  const int64_t depth = settings.tokens - 1;
  std::vector<analysis::PureHead> layers;
  for (int64_t t = 0; t < depth; ++t) {
    layers.push_back(analysis::random_head(order, settings.channels));
  }
  const Tensor start = at::randn({settings.tokens, settings.channels}, at::kDouble);
  for (const DepthArm& arm : masked_arms(order, settings.tokens, TokenNorm::rms, seed)) {
    Json distances = Json::array(), norms = Json::array();
    // Half as many layers leave some tokens out of reach.
    const std::vector<analysis::PureHead> half(layers.begin(), layers.begin() + depth / 2);
    const Tensor near = influences(arm, half, start), all = influences(arm, layers, start);
    for (int64_t j = 0; j < settings.tokens; ++j) {
      const auto distance = arm.distances[j][settings.tokens - 1].item<int64_t>();
      distances.push_back(distance < 0 ? Json() : Json(distance));
      norms.push_back(all[j].item<double>());
      if (distance >= 0 && distance <= depth / 2) continue;
      verdicts.test(
          "no influence before the distance",
          [&] {
            io::Safetensors file;
            file.tensors = {{"tokens", start}, {"influence", near}};
            return file;
          },
          [&](analysis::Statement& each) { each.add_bound(near[j].item<double>(), 0, 0); });
    }
    write({{"squash", arm.name},
           {"order", order},
           {"radius", arm.radius < 0 ? Json() : Json(arm.radius)},
           {"lambda_2", arm.gap},
           {"layers", depth},
           {"distance", std::move(distances)},
           {"influence", std::move(norms)}});
  }
}

}  // namespace nsimplex::cli
