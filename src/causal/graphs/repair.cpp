#include "causal/graphs/repair.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "causal/graphs/paths.h"

namespace nsimplex::causal {
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
