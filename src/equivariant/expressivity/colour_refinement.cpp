// Refines colours of graphs by the Weisfeiler-Leman test, and draws pairs of control graphs.

#include "equivariant/expressivity/colour_refinement.h"

#include <algorithm>
#include <set>
#include <utility>

#include "equivariant/expressivity/palette.h"
#include "support/random.h"

namespace nsimplex::equivariant {
namespace {

// A graph and the colours of its nodes or pairs.
struct Coloured {
  int64_t nodes = 0;
  std::vector<int32_t> relation;  // [n, n]
  std::vector<int32_t> colours;   // [n] or [n, n]
};

Coloured begin(const io::SimpleGraph& graph, int64_t order) {
  Coloured coloured{graph.nodes, {}, {}};
  for (const PairRelation relation : pair_relations(graph)) {
    coloured.relation.push_back(static_cast<int32_t>(relation));
  }
  coloured.colours = order == 2 ? std::vector<int32_t>(graph.nodes, 0) : coloured.relation;
  return coloured;
}

// The old colour (entry 0 of a signature) and the multiset that refines it.
void sign_node(const Coloured& graph, int64_t node, Signature& signature) {
  const int64_t n = graph.nodes;
  for (int64_t w = 0; w < n; ++w) {
    signature[w + 1] = join(graph.relation[node * n + w], graph.colours[w]);
  }
}

void sign_pair(const Coloured& graph, int64_t pair, Signature& signature) {
  const int64_t n = graph.nodes, u = pair / n, v = pair % n;
  for (int64_t w = 0; w < n; ++w) {
    signature[w + 1] = join(graph.colours[u * n + w], graph.colours[w * n + v]);
  }
}

std::vector<int32_t> refined(const Coloured& graph, int64_t order, Palette& palette) {
  std::vector<int32_t> colours(graph.colours.size());
  Signature signature(graph.nodes + 1);
  for (size_t i = 0; i < colours.size(); ++i) {
    signature[0] = static_cast<uint64_t>(graph.colours[i]);
    const auto index = static_cast<int64_t>(i);
    order == 2 ? sign_node(graph, index, signature) : sign_pair(graph, index, signature);
    std::sort(signature.begin() + 1, signature.end());
    colours[i] = palette.colour(signature);
  }
  return colours;
}

}  // namespace

std::vector<int64_t> refine_colours(std::span<const io::SimpleGraph> graphs, int64_t order,
                                    const std::function<void()>& between_rounds) {
  std::vector<Coloured> coloured;
  for (const io::SimpleGraph& graph : graphs) coloured.push_back(begin(graph, order));
  // The colours of all graphs are counted together. Colours are only ever divided, so the first
  // round without a new one is the last.
  for (size_t count = 0;;) {
    Palette palette;
    for (Coloured& graph : coloured) {
      if (between_rounds) between_rounds();
      graph.colours = refined(graph, order, palette);
    }
    if (palette.size() == count) break;
    count = palette.size();
  }
  std::vector<std::vector<int32_t>> colours;
  colours.reserve(coloured.size());
  for (Coloured& graph : coloured) colours.push_back(std::move(graph.colours));
  return number_kinds(colours);
}

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

// Edges (a, b), (c, d) become (a, d), (c, b) if these are not edges yet. Degrees do not change.
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
