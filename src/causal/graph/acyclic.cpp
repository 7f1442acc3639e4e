// Orders the nodes of a graph and removes edges that close cycles.

#include "causal/graph/acyclic.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <tuple>

#include "kernels/common/rounding.h"

namespace nsimplex::causal {

AdjacencyLists effects_of(const Matrix& graph) {
  AdjacencyLists effects(static_cast<size_t>(graph.rows()));
  for (Eigen::Index cause = 0; cause < graph.rows(); ++cause) {
    for (Eigen::Index effect = 0; effect < graph.cols(); ++effect) {
      if (graph(cause, effect) != 0.0) effects[static_cast<size_t>(cause)].push_back(effect);
    }
  }
  return effects;
}

AdjacencyLists causes_of(const Matrix& graph) {
  AdjacencyLists causes(static_cast<size_t>(graph.cols()));
  for (Eigen::Index cause = 0; cause < graph.rows(); ++cause) {
    for (Eigen::Index effect = 0; effect < graph.cols(); ++effect) {
      if (graph(cause, effect) != 0.0) causes[static_cast<size_t>(effect)].push_back(cause);
    }
  }
  return causes;
}

std::optional<std::vector<int64_t>> causal_order(const Matrix& graph) {
  const AdjacencyLists effects = effects_of(graph);
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

std::vector<CausalEdge> path_between(const Matrix& graph, int64_t cause, int64_t effect) {
  std::vector<int64_t> from(static_cast<size_t>(graph.rows()), -1);
  std::vector<int64_t> reached{cause};
  for (size_t next = 0; next < reached.size(); ++next) {
    const int64_t node = reached[next];
    for (int64_t other = 0; other < graph.cols(); ++other) {
      if (graph(node, other) == 0 || other == cause || from[static_cast<size_t>(other)] >= 0) {
        continue;
      }
      from[static_cast<size_t>(other)] = node;
      reached.push_back(other);
    }
  }
  std::vector<CausalEdge> path;
  for (int64_t node = effect; from[static_cast<size_t>(node)] >= 0;) {
    const int64_t before = from[static_cast<size_t>(node)];
    path.push_back({before, node});
    node = before;
  }
  return path;
}

Paths::Paths(int64_t features)
    : features_(features),
      words_(ceil_div(features, 64)),
      bits_(static_cast<size_t>(features * words_), 0) {
  for (int64_t column = 0; column < features; ++column) bits_[word(column, column)] |= bit(column);
}

void Paths::add(const CausalEdge& edge) {
  if (leads(edge.cause, edge.effect)) return;
  for (int64_t column = 0; column < features_; ++column) {
    if (!leads(column, edge.cause)) continue;
    for (int64_t k = 0; k < words_; ++k) {
      bits_[static_cast<size_t>(column * words_ + k)] |=
          bits_[static_cast<size_t>(edge.effect * words_ + k)];
    }
  }
}

std::vector<CausalEdge> repair_cycles(Matrix& weights, const AllowedEdges& edges) {
  const int64_t features = weights.rows();
  struct Weighted {
    bool optional;
    double weakness;  // -|weight|
    CausalEdge edge;
  };
  std::vector<Weighted> all;
  for (int64_t cause = 0; cause < features; ++cause) {
    for (int64_t effect = 0; effect < features; ++effect) {
      const double weight = weights(cause, effect);
      if (weight == 0) continue;
      all.push_back({!edges.required(cause, effect), -std::abs(weight), {cause, effect}});
    }
  }
  const auto key = [](const Weighted& each) {
    return std::tuple(each.optional, each.weakness, each.edge.cause, each.edge.effect);
  };
  std::sort(all.begin(), all.end(),
            [&](const Weighted& a, const Weighted& b) { return key(a) < key(b); });
  Paths paths(features);
  std::vector<CausalEdge> removed;
  for (const Weighted& each : all) {
    if (!paths.leads(each.edge.effect, each.edge.cause)) {
      paths.add(each.edge);
      continue;
    }
    weights(each.edge.cause, each.edge.effect) = 0;
    removed.push_back(each.edge);
  }
  return removed;
}

}  // namespace nsimplex::causal
