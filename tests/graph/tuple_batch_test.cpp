#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nsimplex/graph.h>

#include <limits>

#include "error_of.h"
#include "support/tensors.h"

namespace nsimplex {
namespace {

using test::numbers;

at::Tensor pairs(std::vector<int64_t> values) { return at::tensor(values).view({-1, 2}); }

TEST(TupleBatch, CountsItsParts) {
  const TupleBatch batch = tuple_batch(pairs({0, 1, 2, 2, 3, 4}), numbers({0, 2, 3, 3}),
                                       numbers({0, 3, 5, 6}), Symmetry::undirected);
  EXPECT_EQ(batch.size(), 3);
  EXPECT_EQ(batch.order(), 2);
  EXPECT_EQ(batch.graphs(), 3);
  EXPECT_EQ(batch.nodes(), 6);
  EXPECT_EQ(batch.symmetry, Symmetry::undirected);
}

TEST(TupleBatch, OneGraphNeedsItsNodesOnly) {
  const TupleBatch batch = tuple_batch(pairs({1, 0}), 7);
  EXPECT_EQ(batch.nodes(), 7);
  EXPECT_EQ(batch.graphs(), 1);
}

TEST(TupleBatch, TakesStridedTensors) {
  const at::Tensor columns = at::tensor({0, 1, 2, 1, 2, 0}, at::kLong).view({2, 3}).t();
  const TupleBatch batch = tuple_batch(columns, 3);
  EXPECT_TRUE(batch.tuples.is_contiguous());
  EXPECT_TRUE(batch.tuples.equal(columns));
  check_tuples({columns, numbers({0, 3}), numbers({0, 3})});
}

TEST(TupleBatch, RefusesWhatItDoesNotMean) {
  EXPECT_EQ(error_of([] { tuple_batch(pairs({0, 3}), 3); }),
            "[tuple_batch] tuples: expected nodes 0 to 2 in graph 0, got 3 in row 0");
  EXPECT_EQ(error_of([] { tuple_batch(pairs({0, 1}).to(at::kInt), 3); }),
            "[tuple_batch] tuples: expected int64, got Int");
  EXPECT_EQ(error_of([] { tuple_batch(numbers({0, 1}), 3); }),
            "[tuple_batch] tuples: expected shape [m, k], got [2]");
  EXPECT_EQ(error_of([] { tuple_batch(pairs({0, 1}), -1); }),
            "[tuple_batch] nodes: expected at least 0, got -1");
  const TupleBatch twice{pairs({0, 1, 0, 1}), numbers({0, 2}), numbers({0, 2})};
  EXPECT_EQ(error_of([&] { check_tuples(twice, "edges"); }),
            "[edges] tuples: expected every tuple once, got (0, 1) in rows 0 and 1");
}

TEST(TupleBatch, RefusesFeaturesThatDoNotFit) {
  const TupleBatch batch = tuple_batch(pairs({0, 1, 1, 0}), 2);
  at::Tensor features = at::zeros({2, 3});
  check_features(batch, features);
  EXPECT_EQ(error_of([&] { check_features(batch, at::zeros({3, 2})); }),
            "[features] features: expected shape [2, d], got [3, 2]");
  EXPECT_EQ(error_of([&] { check_features(batch, features.to(at::kLong)); }),
            "[features] features: expected a floating point dtype, got Long");
  features[1][2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of([&] { check_features(batch, features, "encoder"); }),
            "[encoder] features: expected finite numbers, got nan in row 1, column 2");
}

}  // namespace
}  // namespace nsimplex
