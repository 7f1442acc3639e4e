#include "lab/graphs/hyperedge_task.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace nsimplex::training {
namespace {

at::Generator generator(uint64_t seed) { return at::make_generator<at::CPUGeneratorImpl>(seed); }

// 4 x 5 x 6 nodes; a tuple is positive where its numbers add up to a multiple of 4. Every fourth
// test tuple is one of the training file as well.
data::HyperedgeSplits splits() {
  io::Tuples train{3, {}, {4, 5, 6}}, test = train;
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      for (int64_t k = 0; k < 6; ++k) {
        if ((i + j + k) % 4 != 0) continue;
        const bool tested = (i + 2 * j + 3 * k) % 5 == 0;
        io::Tuples& to = tested ? test : train;
        to.values.insert(to.values.end(), {i, 4 + j, 9 + k});
      }
    }
  }
  for (int64_t row = 0; row < 2; ++row) {
    test.values.insert(test.values.end(), train.values.begin() + 3 * row,
                       train.values.begin() + 3 * row + 3);
  }
  return data::split_hyperedges(train, test, 0.2, 1);
}

GraphBatch all_of(HyperedgeTask& task, GraphSplit split, uint64_t seed = 1) {
  std::vector<int64_t> examples(task.size(split));
  std::iota(examples.begin(), examples.end(), int64_t{0});
  return task.batch(split, examples, generator(seed));
}

TEST(HyperedgeTask, GivesPositivesAndTheirNegatives) {
  HyperedgeTask task(splits(), {}, 7);
  for (const GraphSplit split : {GraphSplit::train, GraphSplit::validation, GraphSplit::test}) {
    const GraphBatch batch = all_of(task, split);
    check_tuples(batch.output);
    EXPECT_EQ(batch.input.size(), 15);
    EXPECT_EQ(batch.output.symmetry, Symmetry::loop_free);
    const at::Tensor positive = batch.targets.select(1, 0), times = batch.targets.select(1, 1);
    const auto examples = static_cast<float>(task.size(split));
    EXPECT_EQ((positive * times).sum().item<float>(), examples);
    EXPECT_EQ(times.sum().item<float>(), 6 * examples);
    // What a tuple is says its sum, in validation and test always.
    const at::Tensor rest = (batch.output.tuples.sum(1) - 13).remainder(4);
    const at::Tensor truly = rest == 0;
    if (split == GraphSplit::train) {
      EXPECT_TRUE(truly.masked_select(positive > 0).all().item<bool>());
    } else {
      EXPECT_TRUE(truly.equal(positive > 0));
    }
  }
}

TEST(HyperedgeTask, FixesNegativesOfTestAndRedrawsThoseOfTraining) {
  HyperedgeTask task(splits(), {}, 7), other(splits(), {}, 8);
  const auto tuples = [](HyperedgeTask& of, GraphSplit split, uint64_t seed) {
    return all_of(of, split, seed).output.tuples;
  };
  EXPECT_TRUE(tuples(task, GraphSplit::test, 1).equal(tuples(task, GraphSplit::test, 2)));
  EXPECT_FALSE(tuples(task, GraphSplit::test, 1).equal(tuples(other, GraphSplit::test, 1)));
  EXPECT_FALSE(tuples(task, GraphSplit::train, 1).equal(tuples(task, GraphSplit::train, 2)));
  EXPECT_TRUE(tuples(task, GraphSplit::train, 1).equal(tuples(task, GraphSplit::train, 1)));
  EXPECT_TRUE(
      tuples(task, GraphSplit::validation, 1).equal(tuples(task, GraphSplit::validation, 2)));
  HyperedgeTask redraws(splits(), {.redraw = true}, 7);
  EXPECT_FALSE(
      tuples(redraws, GraphSplit::validation, 1).equal(tuples(redraws, GraphSplit::validation, 2)));
  EXPECT_TRUE(tuples(redraws, GraphSplit::test, 1).equal(tuples(task, GraphSplit::test, 2)));
  // Those of an example do not depend on what else is in its batch.
  const std::vector<int64_t> alone{3}, two{2, 3};
  const auto rows = [&](const std::vector<int64_t>& examples) {
    return task.batch(GraphSplit::test, examples, generator(1)).output.tuples;
  };
  const at::Tensor single = rows(alone), both = rows(two);
  EXPECT_TRUE(both.slice(0, both.size(0) - single.size(0)).equal(single));
}

TEST(HyperedgeTask, ScoresAndUnseenScores) {
  HyperedgeTask task(splits(), {}, 7);
  const GraphBatch batch = all_of(task, GraphSplit::test);
  const at::Tensor positive = batch.targets.select(1, 0);
  const auto scores = [&](const at::Tensor& logits) {
    const auto scorer = task.scorer();
    scorer->add(logits, batch);
    return scorer->scores();
  };
  const Scores perfect = scores(positive.unsqueeze(1));
  ASSERT_EQ(perfect.size(), 4u);
  EXPECT_EQ(perfect[0].first, "auc");
  EXPECT_EQ(perfect[1].first, "aupr");
  EXPECT_EQ(perfect[2].first, "auc_unseen");
  EXPECT_EQ(perfect[3].first, "aupr_unseen");
  for (const auto& [name, value] : perfect) EXPECT_EQ(value, 1.0) << name;
  EXPECT_DOUBLE_EQ(scores(at::zeros_like(positive))[0].second, 0.5);
  EXPECT_DOUBLE_EQ(scores(at::zeros_like(positive))[1].second, 1.0 / 6);
  // The two test tuples of the training file count in the first figures alone.
  at::Tensor wrong_of_seen = positive.clone();
  wrong_of_seen.masked_fill_((batch.targets.select(1, 2) == 0) & (positive > 0), -1);
  EXPECT_LT(scores(wrong_of_seen)[0].second, 1.0);
  EXPECT_EQ(scores(wrong_of_seen)[2].second, 1.0);
}

TEST(HyperedgeTask, TestTuplesThatValidateAreSeenOrNotToo) {
  const data::HyperedgeSplits own = splits();
  io::Tuples all = own.train;
  all.values.insert(all.values.end(), own.validation.values.begin(), own.validation.values.end());
  HyperedgeTask task(data::splits_chosen_by_test(all, own.test), {}, 7);
  const auto unseen = [&](GraphSplit split) {
    const at::Tensor targets = all_of(task, split).targets;
    return (targets.select(1, 0) * targets.select(1, 2)).sum().item<float>();
  };
  EXPECT_EQ(unseen(GraphSplit::validation), unseen(GraphSplit::test));
  EXPECT_LT(unseen(GraphSplit::test), static_cast<float>(own.test.count()));
}

TEST(HyperedgeTask, LossWeighsPositives) {
  HyperedgeTask task(splits(), {.positive_weight = 3}, 7);
  const GraphBatch batch{{}, {}, {}, at::tensor({1.F, 1.F, 1.F, 0.F, 2.F, 2.F}).view({2, 3})};
  const double loss = task.loss(at::zeros({2, 1}), batch).item<double>();
  EXPECT_NEAR(loss, std::log(2.0) * (3 + 2) / 3, 1e-6);
}

}  // namespace
}  // namespace nsimplex::training
