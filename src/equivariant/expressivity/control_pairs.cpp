#include "equivariant/expressivity/control_pairs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "equivariant/expressivity/colour_refinement.h"
#include "support/random.h"

namespace nsimplex::equivariant {
namespace {

constexpr int64_t kFewestNodes = 8, kMostNodes = 16;
constexpr uint64_t kInverseDensity = 3;  // a third of all pairs are edges
constexpr int64_t kSwitchesAnEdge = 4;

class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_below(bound, random_bits(seed_, index_++)));
  }

 private:
  uint64_t seed_, index_ = 0;
};

using Edge = std::pair<int64_t, int64_t>;
Edge edge(int64_t a, int64_t b) { return std::minmax(a, b); }

io::SimpleGraph graph_of(int64_t nodes, const std::vector<Edge>& edges) {
  io::SimpleGraph graph{nodes, {}};
  for (const auto& [i, j] : edges) graph.edges.insert(graph.edges.end(), {i, j});
  return graph;
}

// Edges (a, b), (c, d) become (a, d), (c, b) where these are edges not yet: degrees stay.
void switch_edges(std::vector<Edge>& edges, Random& random) {
  const auto count = std::ssize(edges);
  std::set<Edge> present(edges.begin(), edges.end());
  for (int64_t s = 0; s < kSwitchesAnEdge * count; ++s) {
    Edge& first = edges[random.below(count)];
    Edge& second = edges[random.below(count)];
    const auto [a, b] = first;
    auto [c, d] = second;
    if (random.below(2) == 1) std::swap(c, d);
    if (a == d || c == b || present.contains(edge(a, d)) || present.contains(edge(c, b))) continue;
    present.erase(first);
    present.erase(second);
    present.insert(first = edge(a, d));
    present.insert(second = edge(c, b));
  }
}

}  // namespace

std::vector<io::SimpleGraph> control_pairs(int64_t pairs, uint64_t seed) {
  std::vector<io::SimpleGraph> graphs;
  Random random(seed);
  while (std::ssize(graphs) < 2 * pairs) {
    const int64_t nodes = kFewestNodes + random.below(kMostNodes - kFewestNodes + 1);
    std::vector<Edge> edges;
    for (int64_t i = 0; i < nodes; ++i) {
      for (int64_t j = i + 1; j < nodes; ++j) {
        if (random.below(kInverseDensity) == 0) edges.emplace_back(i, j);
      }
    }
    if (edges.empty()) continue;
    const io::SimpleGraph graph = graph_of(nodes, edges);
    switch_edges(edges, random);
    const std::vector<io::SimpleGraph> both{graph, graph_of(nodes, edges)};
    const std::vector<int64_t> kinds = refine_colours(both, 2);
    if (kinds[0] != kinds[1]) graphs.insert(graphs.end(), both.begin(), both.end());
  }
  return graphs;
}

}  // namespace nsimplex::equivariant
