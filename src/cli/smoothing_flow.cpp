#include "cli/smoothing_flow.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/analysis_smoothing.h>

#include <cmath>

#include "analysis/collapse.h"
#include "analysis/norms.h"
#include "cli/head_weights.h"
#include "cli/interrupt.h"

namespace nsimplex::cli {
namespace {

using analysis::PureHead;
using at::Tensor;

constexpr int64_t kPoints = 10;
constexpr double kCollapsed = 0.1;
constexpr double kLargest = 1e100;  // of an entry: orders above 1 reach infinity in finite time

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
  const auto slope = [&](const Tensor& at) { return analysis::apply(head, at); };
  Tensor change = slope(tokens);
  if (arm.runge_kutta) {
    const Tensor second = slope(tokens + step / 2 * change);
    const Tensor third = slope(tokens + step / 2 * second);
    const Tensor fourth = slope(tokens + step * third);
    change = (change + 2 * second + 2 * third + fourth) / 6;
  }
  const Tensor next = tokens + step * change;
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
