#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nsimplex/graph.h>

#include "error_of.h"
#include "support/tensors.h"

namespace nsimplex {
namespace {

at::Tensor points(std::vector<double> coordinates) {
  return at::tensor(coordinates, at::kDouble).view({-1, 2});
}

using test::numbers;

TEST(DelaunayGraph, OfABatchIsThatOfItsSets) {
  const PointSets sets = random_point_sets(5, 0, 30, 3);
  const TupleBatch batch = delaunay_graph(sets.points, sets.node_offsets);
  check_tuples(batch);
  EXPECT_EQ(batch.symmetry, Symmetry::undirected);
  EXPECT_TRUE(batch.node_offsets.equal(sets.node_offsets));
  for (int64_t set = 0; set < 5; ++set) {
    const int64_t first = sets.node_offsets[set].item<int64_t>(),
                  last = sets.node_offsets[set + 1].item<int64_t>();
    const TupleBatch alone = delaunay_graph(sets.points.slice(0, first, last));
    EXPECT_TRUE((alone.tuples + first)
                    .equal(batch.tuples.slice(0, batch.tuple_offsets[set].item<int64_t>(),
                                              batch.tuple_offsets[set + 1].item<int64_t>())));
  }
}

TEST(DelaunayGraph, TakesAnyDtypeStridesAndScale) {
  const at::Tensor drawn = random_point_sets(1, 50, 50, 1).points;
  const at::Tensor edges = delaunay_graph(drawn).tuples;
  EXPECT_GT(edges.size(0), 100);
  EXPECT_TRUE(delaunay_graph(drawn.to(at::kDouble)).tuples.equal(edges));
  EXPECT_TRUE(delaunay_graph(drawn.t().contiguous().t()).tuples.equal(edges));
  EXPECT_TRUE(delaunay_graph(drawn.to(at::kDouble) * 1024 - 300).tuples.equal(edges));
  EXPECT_TRUE(delaunay_graph(drawn.clone().requires_grad_()).tuples.equal(edges));
  EXPECT_EQ(delaunay_graph(at::empty({0, 2})).size(), 0);
  EXPECT_EQ(delaunay_graph(at::empty({0, 2}), numbers({0, 0, 0})).graphs(), 2);
}

TEST(DelaunayGraph, RefusesWhatItCannotTriangulate) {
  const auto error = [](const at::Tensor& p, std::optional<at::Tensor> offsets = std::nullopt) {
    return error_of([&] { delaunay_graph(p, offsets); });
  };
  EXPECT_EQ(error(points({0, 0, 1, NAN})),
            "[delaunay_graph] points: expected finite numbers, got nan in row 1, column 1");
  EXPECT_EQ(error(points({0, 0, INFINITY, 1})),
            "[delaunay_graph] points: expected finite numbers, got inf in row 1, column 0");
  const std::string equal =
      "[delaunay_graph] points: expected points that differ by a step of the grid, got equal ones "
      "in rows ";
  EXPECT_EQ(error(points({3, 4, 0, 1, 3, 4})), equal + "0 and 2");
  EXPECT_EQ(error(points({0, 0, 1, 1, 1 + 1e-9, 1})), equal + "1 and 2");
  EXPECT_EQ(error(points({3, 4, 0, 1, 0, 1}), numbers({0, 1, 3})), equal + "1 and 2");
  EXPECT_EQ(error(at::zeros({4, 3})), "[delaunay_graph] points: expected shape [n, 2], got [4, 3]");
  EXPECT_EQ(error(at::zeros({4, 2}, at::kLong)),
            "[delaunay_graph] points: expected a floating point dtype, got Long");
  EXPECT_EQ(error(points({0, 1}), numbers({0, 2})),
            "[delaunay_graph] node_offsets: expected the number of nodes, 1, last, got 2");
  EXPECT_EQ(error(points({0, 1}), numbers({1, 1})),
            "[delaunay_graph] node_offsets: expected 0 first, got 1");
}

TEST(RandomPointSets, RefuseSizesThatAreNone) {
  EXPECT_EQ(error_of([] { random_point_sets(-1, 1, 2, 0); }),
            "[random_point_sets] sets: expected at least 0, got -1");
  EXPECT_EQ(error_of([] { random_point_sets(1, -1, 2, 0); }),
            "[random_point_sets] least: expected at least 0, got -1");
  EXPECT_EQ(error_of([] { random_point_sets(1, 3, 2, 0); }),
            "[random_point_sets] most: expected 3 to 1048576, got 2");
}

}  // namespace
}  // namespace nsimplex
