// Measures contraction against entry size, over-squashing, and collapse in continuous time.

#include "lab/smoothing/smoothing_flow.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/analysis.h>
#include <nsimplex/separable_attention.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "analysis/ascent.h"
#include "analysis/attention_flow.h"
#include "analysis/collapse.h"
#include "cli/output.h"
#include "lab/common/verdicts.h"
#include "support/median.h"
#include "train/scores.h"

namespace nsimplex::cli {
namespace {

using analysis::PureHead;
using at::Tensor;

constexpr int64_t kDraws = 9;
constexpr double kBounds[] = {0.1, 0.2, 0.5, 1, 2, 5, 10};

double ratio_of(const Tensor& tokens) {
  return (minimal_residual(tokens).norm / composite_norm(tokens)).item<double>();
}

// Applies the separable operator with the head's weights.
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
           {"contraction", median(contractions)},
           {"separable_error", median(errors)}});
  }
}

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
    // With half as many layers some tokens are out of reach.
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

namespace {

using analysis::PureHead;
using at::Tensor;

constexpr int64_t kPoints = 10;
constexpr double kCollapsed = 0.1;
constexpr double kLargest = 1e100;  // of an entry; orders above 1 reach infinity in finite time

struct FlowArm {
  bool runge_kutta = false, normalised = false, identity = false;

  std::string method() const { return runge_kutta ? "RK4" : "Euler"; }
  std::string norm() const { return normalised ? "rms norm" : "plain"; }
  std::string values() const { return identity ? "W_V = 1" : "any W_V"; }
};

Tensor unit_mean_square(const Tensor& tokens) {
  const double length = std::sqrt(static_cast<double>(tokens.size(1)));
  return analysis::project_rows(tokens, length, /*sphere=*/true);
}

Tensor advance(const PureHead& head, const Tensor& tokens, const FlowArm& arm, double step) {
  const Tensor next =
      analysis::flow_step([&](const Tensor& at) { return analysis::apply(head, at); }, tokens, step,
                          {.method = arm.runge_kutta ? FlowMethod::rk4 : FlowMethod::euler});
  return arm.normalised ? unit_mean_square(next) : next;
}

struct Flow {
  bool blew_up = false;
  std::vector<double> time, energy, distance, relative;

  void add(double at, const Tensor& tokens) {
    time.push_back(at);
    energy.push_back(dirichlet_energy(tokens).item<double>());
    distance.push_back(at::pdist(tokens).max().item<double>());
    relative.push_back(distance.back() / tokens.norm(2, -1).max().item<double>());
  }
};

Flow run_flow(const PureHead& head, Tensor tokens, const FlowArm& arm,
              const FlowSettings& settings) {
  Flow flow;
  flow.add(0, tokens);
  const auto steps = static_cast<int64_t>(std::lround(settings.time / settings.step));
  for (int64_t i = 1; i <= steps; ++i) {
    tokens = advance(head, tokens, arm, settings.step);
    if (!(tokens.abs().max().item<double>() < kLargest)) {
      flow.blew_up = true;
      break;
    }
    if (i * kPoints % steps < kPoints) flow.add(static_cast<double>(i) * settings.step, tokens);
  }
  return flow;
}

}  // namespace

void test_flows(const FlowSettings& settings, Verdicts& verdicts,
                const std::function<void(const Json&)>& write) {
  for (int64_t seed = 0; seed < settings.seeds; ++seed) {
    PureHead any = analysis::random_head(settings.order, settings.channels), identity = any;
    for (Tensor& weights : identity.values) weights = at::eye(settings.channels, at::kDouble);
    const Tensor start = at::randn({settings.tokens, settings.channels}, at::kDouble);
    const Tensor unit = unit_mean_square(start);
    for (int choice = 0; choice < 8; ++choice) {
      interrupt::check();
      const FlowArm arm{(choice & 1) != 0, (choice & 2) != 0, (choice & 4) != 0};
      const PureHead& head = arm.identity ? identity : any;
      const Flow flow = run_flow(head, unit, arm, settings);
      const auto file = [&] {
        io::Safetensors file;
        file.tensors.push_back({"tokens", unit});
        add_weights(file, "", head);
        return file;
      };
      const auto collapses = [&](analysis::Statement& each) {
        each.add_bound(flow.relative.back(), kCollapsed * flow.relative.front());
      };
      const std::string name = fmt::format("the flow collapses, N = {}, {}, {}, {}", settings.order,
                                           arm.norm(), arm.values(), arm.method());
      if (!flow.blew_up) verdicts.test(name, file, collapses);
      write({{"flow", fmt::format("{}, {}", arm.norm(), arm.values())},
             {"order", settings.order},
             {"method", arm.method()},
             {"norm", arm.norm()},
             {"values", arm.values()},
             {"seed", seed},
             {"blew_up", flow.blew_up},
             {"time", flow.time},
             {"dirichlet_energy", flow.energy},
             {"distance", flow.distance},
             {"relative_distance", flow.relative}});
    }
  }
}

}  // namespace nsimplex::cli
