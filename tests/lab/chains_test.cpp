// Chains: what is drawn, what a model is given, what figures say.
#include "lab/graphs/pair_task.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "input_error_of.h"

namespace nsimplex::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

GraphBatch batch_of(ChainTask& task, GraphSplit split, const std::vector<int64_t>& examples) {
  return task.batch(split, examples, at::Generator());
}

// The label of each of the first `count` chains.
std::vector<int64_t> labels_of(ChainTask& task, GraphSplit split, int64_t count) {
  std::vector<int64_t> labels;
  for (int64_t chain = 0; chain < count; ++chain) {
    labels.push_back(batch_of(task, split, {chain}).targets[0].item<int64_t>());
  }
  return labels;
}

TEST(Chains, OneEndCarriesTheLabelOfItsChain) {
  ChainTask task({.nodes = 3}, 5);
  const std::vector<int64_t> labels = labels_of(task, GraphSplit::train, 40);
  const auto find = [&](int64_t label) {
    return std::find(labels.begin(), labels.end(), label) - labels.begin();
  };
  const GraphBatch batch = batch_of(task, GraphSplit::train, {find(1), find(0)});
  // Of each chain (0,0) (0,1) (1,0) (1,1) (1,2) (2,1) (2,2).
  ASSERT_EQ(batch.input.size(), 14);
  EXPECT_TRUE(batch.input.tuples.slice(0, 0, 4).equal(
      at::tensor({0, 0, 0, 1, 1, 0, 1, 1}, at::kLong).view({4, 2})));
  EXPECT_EQ(batch.features.sum().item<float>(), 2);
  EXPECT_EQ(batch.features[0][1].item<float>(), 1);
  EXPECT_EQ(batch.features[7][0].item<float>(), 1);
  EXPECT_TRUE(batch.targets.equal(at::tensor({1, 1, 1, 0, 0, 0}, at::kLong)));
  EXPECT_EQ(batch.output.order(), 1);
  EXPECT_EQ(batch.output.size(), 6);
}

TEST(Chains, SizesOfTheSplits) {
  ChainTask task({.train = 4, .validation = 3, .test = 2, .nodes = 5, .test_nodes = 9}, 1);
  EXPECT_EQ(task.size(GraphSplit::train), 4);
  EXPECT_EQ(task.size(GraphSplit::validation), 3);
  EXPECT_EQ(task.size(GraphSplit::test), 2);
  EXPECT_EQ(batch_of(task, GraphSplit::validation, {0, 1}).output.size(), 10);
  EXPECT_EQ(batch_of(task, GraphSplit::test, {0, 1}).output.size(), 18);
  EXPECT_THAT(test::input_error_of([] { ChainTask({.nodes = 0}, 1); }), HasSubstr("nodes"));
}

TEST(Chains, LabelsComeFromTheSeed) {
  ChainTask one({}, 1), same({}, 1), other({}, 2);
  const auto labels = labels_of(one, GraphSplit::train, 40);
  EXPECT_EQ(labels, labels_of(same, GraphSplit::train, 40));
  EXPECT_NE(labels, labels_of(other, GraphSplit::train, 40));
  const auto ones = std::count(labels.begin(), labels.end(), 1);
  EXPECT_GT(ones, 8);
  EXPECT_LT(ones, 32);
}

TEST(Chains, FiguresOfAConfusion) {
  ChainTask task({.nodes = 2}, 5);
  GraphBatch batch = batch_of(task, GraphSplit::train, {0, 1, 2, 3});
  batch.targets = at::tensor({0, 0, 0, 1, 1, 1, 1, 1}, at::kLong);
  const at::Tensor told = at::tensor({0, 0, 1, 1, 1, 1, 0, 0}, at::kLong);
  const auto scorer = task.scorer();
  scorer->add(at::one_hot(told, 2).to(at::kFloat), batch);
  // Right 2 and 3, wrong 1 and 2: F1 2 2 / (2 2 + 3) and 2 3 / (2 3 + 3).
  const Scores scores = scorer->scores();
  EXPECT_EQ(scores[0].first, "micro_f1");
  EXPECT_DOUBLE_EQ(scores[0].second, 5.0 / 8);
  EXPECT_DOUBLE_EQ(scores[1].second, (4.0 / 7 + 6.0 / 9) / 2);
}

TEST(Chains, TheMajorityIsThatOfTheTestSplit) {
  ChainTask task({.test = 7}, 3);
  const auto labels = labels_of(task, GraphSplit::test, 7);
  const double ones = static_cast<double>(std::count(labels.begin(), labels.end(), 1));
  const double share = std::max(ones, 7 - ones) / 7;
  const auto [name, scores] = task.references().front();
  EXPECT_EQ(name, "majority");
  EXPECT_DOUBLE_EQ(scores[0].second, share);
  // The same from the scorer.
  std::vector<int64_t> all{0, 1, 2, 3, 4, 5, 6};
  const GraphBatch batch = batch_of(task, GraphSplit::test, all);
  const auto scorer = task.scorer();
  const at::Tensor row = ones > 3.5 ? at::tensor({0.0F, 1.0F}) : at::tensor({1.0F, 0.0F});
  scorer->add(row.expand({batch.output.size(), 2}), batch);
  EXPECT_DOUBLE_EQ(scorer->scores()[0].second, scores[0].second);
  EXPECT_DOUBLE_EQ(scorer->scores()[1].second, scores[1].second);
}

}  // namespace
}  // namespace nsimplex::training
