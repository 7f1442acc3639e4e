#include "causal/graphs/acyclic.h"

#include <functional>
#include <queue>

namespace nsimplex::causal {

Neighbours effects_of(const Matrix& graph) {
  Neighbours effects(static_cast<size_t>(graph.rows()));
  for (Eigen::Index cause = 0; cause < graph.rows(); ++cause) {
    for (Eigen::Index effect = 0; effect < graph.cols(); ++effect) {
      if (graph(cause, effect) != 0.0) effects[static_cast<size_t>(cause)].push_back(effect);
    }
  }
  return effects;
}

Neighbours causes_of(const Matrix& graph) {
  Neighbours causes(static_cast<size_t>(graph.cols()));
  for (Eigen::Index cause = 0; cause < graph.rows(); ++cause) {
    for (Eigen::Index effect = 0; effect < graph.cols(); ++effect) {
      if (graph(cause, effect) != 0.0) causes[static_cast<size_t>(effect)].push_back(cause);
    }
  }
  return causes;
}

std::optional<std::vector<int64_t>> causal_order(const Matrix& graph) {
  const Neighbours effects = effects_of(graph);
  std::vector<int64_t> waits_for(effects.size(), 0), order;
  for (const std::vector<int64_t>& each : effects) {
    for (const int64_t effect : each) ++waits_for[static_cast<size_t>(effect)];
  }
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> open;
  for (size_t node = 0; node < effects.size(); ++node) {
    if (waits_for[node] == 0) open.push(static_cast<int64_t>(node));
  }
  while (!open.empty()) {
    order.push_back(open.top());
    open.pop();
    for (const int64_t effect : effects[static_cast<size_t>(order.back())]) {
      if (--waits_for[static_cast<size_t>(effect)] == 0) open.push(effect);
    }
  }
  if (order.size() != effects.size()) return std::nullopt;
  return order;
}

}  // namespace nsimplex::causal
