// Sets of points and their triangulations: tensors around the Torch-free code of this folder.

#include <ATen/ATen.h>
#include <nsimplex/graph.h>
#include <torch/library.h>

#include "graph/delaunay.h"
#include "graph/graph_view.h"
#include "graph/random_graphs.h"
#include "support/as_function.h"
#include "support/parallel.h"
#include "support/plain_tensor.h"
#include "support/size_limits.h"

namespace nsimplex {

using at::Tensor;

namespace {

constexpr const char* kDelaunay = "delaunay_graph";

// The edges of the points first .. first + count - 1, numbered through all sets.
std::vector<int64_t> edges_of_set(std::span<const double> coordinates, int64_t first) {
  const std::vector<graph::GridPoint> points = graph::snap_to_grid(coordinates);
  const graph::Coincidence same = graph::find_coincidence(points);
  TORCH_CHECK_VALUE(same.second < 0, "[", kDelaunay,
                    "] points: expected points that differ by a step of the grid, got equal ones ",
                    "in rows ", first + same.first, " and ", first + same.second);
  std::vector<int64_t> edges = graph::delaunay_edges(points);
  for (int64_t& node : edges) node += first;
  return edges;
}

}  // namespace

PointSets random_point_sets(int64_t sets, int64_t least, int64_t most, int64_t seed) {
  TORCH_CHECK_VALUE(sets >= 0, "[random_point_sets] sets: expected at least 0, got ", sets);
  TORCH_CHECK_VALUE(least >= 0, "[random_point_sets] least: expected at least 0, got ", least);
  TORCH_CHECK_VALUE(least <= most && most <= graph::kMostPoints,
                    "[random_point_sets] most: expected ", least, " to ", graph::kMostPoints,
                    ", got ", most);
  as_function("random_point_sets", [&] { require_room("sets", {sets, 2 * most + 1}); });
  graph::PointSets drawn = graph::random_points(sets, least, most, static_cast<uint64_t>(seed));
  return {at::tensor(drawn.coordinates, at::kFloat).view({-1, 2}),
          graph::to_tensor(std::move(drawn.offsets))};
}

TupleBatch delaunay_graph(const Tensor& points, const std::optional<Tensor>& node_offsets) {
  TORCH_CHECK_TYPE(is_floating(points), "[", kDelaunay,
                   "] points: expected a floating point dtype, got ", points.scalar_type());
  TORCH_CHECK_VALUE(points.dim() == 2 && points.size(1) == 2, "[", kDelaunay,
                    "] points: expected shape [n, 2], got ", points.sizes());
  TORCH_CHECK_VALUE(points.is_cpu(), "[", kDelaunay,
                    "] points: expected a tensor on the CPU, got one on ", points.device());
  graph::check_finite(kDelaunay, "points", points);
  const int64_t count = points.size(0);
  const Tensor offsets = node_offsets ? graph::checked_offsets(kDelaunay, *node_offsets, count)
                                      : at::tensor({int64_t{0}, count});
  const Tensor coordinates = points.detach().to(at::kDouble).contiguous();
  const std::span<const double> all(coordinates.const_data_ptr<double>(),
                                    static_cast<size_t>(coordinates.numel()));
  const auto nodes = graph::view_numbers(offsets);
  const int64_t sets = std::ssize(nodes) - 1;

  std::vector<std::vector<int64_t>> edges(sets);
  parallel_tasks(sets, [&](int64_t set, int) {
    edges[set] =
        edges_of_set(all.subspan(2 * nodes[set], 2 * (nodes[set + 1] - nodes[set])), nodes[set]);
  });
  std::vector<int64_t> tuples, tuple_offsets = {0};
  for (const auto& each : edges) {
    tuples.insert(tuples.end(), each.begin(), each.end());
    tuple_offsets.push_back(std::ssize(tuples) / 2);
  }
  return {graph::to_tensor(std::move(tuples)).view({-1, 2}),
          graph::to_tensor(std::move(tuple_offsets)), offsets, Symmetry::undirected};
}

namespace {

std::tuple<Tensor, Tensor> point_sets(int64_t sets, int64_t least, int64_t most, int64_t seed) {
  PointSets drawn = random_point_sets(sets, least, most, seed);
  return {std::move(drawn.points), std::move(drawn.node_offsets)};
}

std::tuple<Tensor, Tensor, Tensor> delaunay(const Tensor& points,
                                            const std::optional<Tensor>& node_offsets) {
  TupleBatch batch = delaunay_graph(points, node_offsets);
  return {batch.tuples, batch.tuple_offsets, batch.node_offsets};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("graph_point_sets(int sets, int least, int most, int seed) -> (Tensor, Tensor)",
        TORCH_FN(point_sets));
  m.def("graph_delaunay(Tensor points, Tensor? node_offsets) -> (Tensor, Tensor, Tensor)",
        TORCH_FN(delaunay));
}

}  // namespace
}  // namespace nsimplex
