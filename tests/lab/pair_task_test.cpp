// Which pairs of a set are edges: batches, loss and figures by hand.
#include "lab/graphs/pair_task.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/graph.h>

#include <cmath>
#include <vector>

#include "input_error_of.h"

namespace nsimplex::training {
namespace {

using at::Tensor;
using ::testing::HasSubstr;

TupleBatch graph(const std::vector<int64_t>& edges, int64_t nodes) {
  return edge_tuples(at::tensor(edges, at::kLong).view({-1, 2}), nodes,
                     {.symmetry = Symmetry::undirected})
      .batch;
}

// A path on three points, two points that are joined, one alone.
PairSets sets() {
  return {at::arange(12, at::kFloat).view({6, 2}),
          concatenate_graphs({graph({0, 1, 1, 2}, 3), graph({0, 1}, 2), graph({}, 1)}),
          at::tensor({0, 2, 2}, at::kLong)};
}

GraphBatch batch_of(PairTask& task, const std::vector<int64_t>& examples) {
  return task.batch(GraphSplit::train, examples, at::Generator());
}

TEST(PairTask, ABatchHoldsTheChosenSetsInTheirOrder) {
  PairTask task({sets(), sets(), sets()}, {});
  EXPECT_EQ(task.size(GraphSplit::test), 3);
  const GraphBatch batch = batch_of(task, {1, 0});
  EXPECT_TRUE(batch.features.select(1, 0).equal(at::tensor({6.0F, 8.0F, 0.0F, 2.0F, 4.0F})));
  EXPECT_EQ(batch.input.order(), 1);
  EXPECT_EQ(batch.output.size(), 4 + 9);
  EXPECT_TRUE(batch.targets.equal(
      at::tensor({0.0F, 1.0F, 1.0F, 0.0F, 0.0F, 1.0F, 0.0F, 1.0F, 0.0F, 1.0F, 0.0F, 1.0F, 0.0F})));
  EXPECT_EQ(batch_of(task, {2}).targets.sum().item<float>(), 0);
}

TEST(PairTask, TheLossLeavesLoopsOut) {
  PairTask task({sets(), sets(), sets()}, {});
  const GraphBatch batch = batch_of(task, {1});
  const Tensor logits = at::tensor({50.0F, 1.0F, -2.0F, 50.0F}).unsqueeze(1);
  EXPECT_NEAR(task.loss(logits, batch).item<double>(),
              (std::log1p(std::exp(-1.0)) + std::log1p(std::exp(2.0))) / 2, 1e-6);
}

TEST(PairTask, PointsWithoutPairsHaveNoLoss) {
  PairTask task({sets(), sets(), sets()}, {});
  const Tensor logit = at::full({1, 1}, 50.0).requires_grad_();
  const Tensor loss = task.loss(logit, batch_of(task, {2}));
  loss.backward();
  EXPECT_EQ(loss.item<double>(), 0);
  EXPECT_EQ(logit.grad().item<double>(), 0);
}

TEST(PairTask, SoftF1OfEachSet) {
  PairTask task({sets(), sets(), sets()}, {.soft_f1 = 3}), plain({sets(), sets(), sets()}, {});
  const GraphBatch batch = batch_of(task, {1, 0});
  // Even odds everywhere: 2 (2/2) / (2/2 + 2) and 2 (4/2) / (6/2 + 4).
  const Tensor logits = at::zeros({13, 1});
  const double added =
      task.loss(logits, batch).item<double>() - plain.loss(logits, batch).item<double>();
  EXPECT_NEAR(added, 3 * ((1 - 2.0 / 3) + (1 - 4.0 / 7)), 1e-5);
}

TEST(PairTask, FiguresCountOrderedPairs) {
  PairTask task({sets(), sets(), sets()}, {});
  const auto scorer = task.scorer();
  // Of the path: told (0,1), (1,0), (0,2); edges (0,1), (1,0), (1,2), (2,1).
  scorer->add(at::tensor({9.0F, 1.0F, 1.0F, 1.0F, 9.0F, -1.0F, -1.0F, 0.0F, -1.0F}).unsqueeze(1),
              batch_of(task, {0}));
  const Scores scores = scorer->scores();
  ASSERT_EQ(scores.size(), 5U);
  EXPECT_EQ(scores[0].first, "f1");
  EXPECT_DOUBLE_EQ(scores[0].second, 2 * 2.0 / (3 + 4));
  EXPECT_DOUBLE_EQ(scores[1].second, 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores[2].second, 2.0 / 4);
  EXPECT_DOUBLE_EQ(scores[3].second, 3.0 / 6);
  EXPECT_DOUBLE_EQ(scores[4].second, 6.0 / 9);
  EXPECT_EQ(task.scorer()->scores()[0].second, 0);
}

TEST(PartitionTask, PredictionsAreCompletedAndKindsToldApart) {
  PartitionTask task({sets(), sets(), sets()}, {}, {"light", "charm", "bottom"});
  const auto scorer = task.scorer();
  // The path is one part; (0,1) and (0,2) make one part of all three as well.
  scorer->add(at::tensor({-9.0F, 1.0F, 1.0F, 1.0F, -9.0F, -1.0F, 1.0F, -1.0F, -9.0F}).unsqueeze(1),
              batch_of(task, {0}));
  // Two that belong together are told apart; one alone can only be right.
  scorer->add(at::tensor({9.0F, -1.0F, -1.0F, 9.0F, 9.0F}).unsqueeze(1), batch_of(task, {1, 2}));
  const Scores scores = scorer->scores();
  ASSERT_EQ(scores.size(), 9U);  // of all, light and bottom: there is no charm
  const auto of = [&](const std::string& name) {
    for (const auto& [each, value] : scores) {
      if (each == name) return value;
    }
    return -1.0;
  };
  EXPECT_EQ(scores[0].first, "f1");
  EXPECT_DOUBLE_EQ(of("f1"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(of("rand_index"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(of("light_f1"), 1);
  EXPECT_DOUBLE_EQ(of("bottom_f1"), 0.5);
  EXPECT_DOUBLE_EQ(of("bottom_rand_index"), 0.5);
}

TEST(PairTask, SetsThatDoNotFitAreRefused) {
  PairSets ordered = sets(), short_of_one = sets();
  ordered.edges = all_orders(ordered.edges).batch;
  short_of_one.features = short_of_one.features.slice(0, 1);
  const auto message = [](const PairSets& bad) {
    return test::input_error_of([&] { PairTask({sets(), bad, sets()}, {}); });
  };
  EXPECT_THAT(message(ordered), HasSubstr("undirected"));
  EXPECT_THAT(message(short_of_one), HasSubstr("one row per point"));
}

}  // namespace
}  // namespace nsimplex::training
