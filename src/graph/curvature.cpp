// Computes discrete Ricci curvatures of the edges of a graph and of its line graph.

#include "graph/curvature.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "graph/adjacency.h"

namespace nsimplex::graph {
namespace {

// The surroundings of an edge {u, v}, found by marking the neighbours of both ends.
class Surroundings {
 public:
  explicit Surroundings(const Adjacency& graph) : graph_(graph), marks_(graph.nodes(), 0) {}

  // Calls body() while the neighbours of u and v are marked.
  template <class Body>
  double around(int64_t u, int64_t v, const Body& body) {
    for (const int64_t node : graph_[u]) marks_[node] |= kOfFirst;
    for (const int64_t node : graph_[v]) marks_[node] |= kOfSecond;
    const double value = body();
    for (const int64_t end : {u, v}) {
      for (const int64_t node : graph_[end]) marks_[node] = 0;
    }
    return value;
  }

  int64_t triangles(int64_t u) const {
    return std::ranges::count(graph_[u], kOfBoth, [&](int64_t node) { return marks_[node]; });
  }

  // Squares u, k, w, v without a diagonal. `corners`: the number of k. `most`: the largest number
  // of w for one k.
  struct Squares {
    int64_t corners = 0, most = 0;
  };

  Squares squares(int64_t u, int64_t v, bool from_second) const {
    const uint8_t near = from_second ? kOfSecond : kOfFirst,
                  far = from_second ? kOfFirst : kOfSecond;
    Squares found;
    for (const int64_t k : graph_[u]) {
      if (k == v || marks_[k] != near) continue;
      const int64_t count =
          std::ranges::count_if(graph_[k], [&](int64_t w) { return w != u && marks_[w] == far; });
      found.corners += count > 0;
      found.most = std::max(found.most, count);
    }
    return found;
  }

 private:
  static constexpr uint8_t kOfFirst = 1, kOfSecond = 2, kOfBoth = 3;

  const Adjacency& graph_;
  std::vector<uint8_t> marks_;  // which ends of the edge a node is a neighbour of
};

double balanced_curvature(const Surroundings& around, int64_t u, int64_t v, double degree_u,
                          double degree_v) {
  const double small = std::min(degree_u, degree_v), large = std::max(degree_u, degree_v);
  if (small == 1) return 0;
  const auto triangles = static_cast<double>(around.triangles(u));
  const auto at_u = around.squares(u, v, false), at_v = around.squares(v, u, true);
  double value = 2 / degree_u + 2 / degree_v - 2 + 2 * triangles / large + triangles / small;
  if (const int64_t most = std::max(at_u.most, at_v.most); most > 0) {
    value += static_cast<double>(at_u.corners + at_v.corners) / (static_cast<double>(most) * large);
  }
  return value;
}

std::optional<CurvatureSummary> summary_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return CurvatureSummary{
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()),
      *std::ranges::min_element(values)};
}

Adjacency neighbours_of(const Rows& edges, int64_t nodes) {
  const std::array<int64_t, 2> rows{0, edges.count}, all{0, nodes};
  return adjacency_of({edges, rows, all, Symmetry::undirected});
}

}  // namespace

std::vector<double> edge_curvatures(const Rows& edges, const Adjacency& graph, Curvature kind) {
  std::vector<double> values;
  values.reserve(edges.count);
  Surroundings around(graph);
  for (int64_t edge = 0; edge < edges.count; ++edge) {
    const int64_t u = edges[edge][0], v = edges[edge][1];
    const auto degree_u = static_cast<double>(graph.degree(u));
    const auto degree_v = static_cast<double>(graph.degree(v));
    const double plain = 4 - degree_u - degree_v;
    values.push_back(kind == Curvature::plain ? plain : around.around(u, v, [&] {
      return kind == Curvature::augmented ? plain + 3 * static_cast<double>(around.triangles(u))
                                          : balanced_curvature(around, u, v, degree_u, degree_v);
    }));
  }
  return values;
}

CurvatureComparison compare_with_line_graph(const Rows& edges, int64_t nodes) {
  const TupleList lines = line_graph_of(edges, nodes);
  const Adjacency graph = neighbours_of(edges, nodes);
  const Adjacency line_graph = neighbours_of(lines.rows(), edges.count);
  CurvatureComparison result{.graph = {},
                             .line_graph = {},
                             .nodes = nodes,
                             .edges = edges.count,
                             .line_edges = lines.count()};
  for (const Curvature kind : kCurvatures) {
    const auto place = static_cast<size_t>(kind);
    result.graph[place] = summary_of(edge_curvatures(edges, graph, kind));
    result.line_graph[place] = summary_of(edge_curvatures(lines.rows(), line_graph, kind));
  }
  return result;
}

}  // namespace nsimplex::graph
