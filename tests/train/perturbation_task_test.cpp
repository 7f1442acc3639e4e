#include "train/perturbation_task.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "input_error_of.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

PerturbationOptions small_task() {
  return {.simulation = {.nodes = 8, .degree = 1, .observations = 100},
          .doubles = 3,
          .asked = 3,
          .rows = 20,
          .most_changed = 4};
}

TEST(DrawPerturbations, WhatIsAskedForWasNotLearned) {
  const PerturbationData data = draw_perturbations(small_task(), 1);
  EXPECT_EQ(data.control.sizes(), at::IntArrayRef({100, 8}));
  EXPECT_EQ(data.singles.size(), 2u);
  EXPECT_EQ(data.doubles.size(), 3u);
  EXPECT_EQ(data.learned.size(), 6u + 3u);
  std::set<std::vector<int64_t>> learned;
  std::set<int64_t> seen;
  for (const Perturbation& each : data.learned) {
    learned.insert(each.features);
    seen.insert(each.features.begin(), each.features.end());
  }
  for (const Perturbation& each : data.singles) EXPECT_EQ(seen.count(each.features[0]), 0u);
  for (const Perturbation& each : data.doubles) EXPECT_EQ(learned.count(each.features), 0u);
}

// do(x = v) sets x and changes what it causes, directly or not, row by row, and nothing else.
TEST(DrawPerturbations, OnlyEffectsChange) {
  const PerturbationData data = draw_perturbations(small_task(), 2);
  Tensor reach = data.graph.ne(0).to(at::kDouble) + at::eye(8, at::kDouble);
  for (int64_t hop = 0; hop < 3; ++hop) reach = reach.matmul(reach).gt(0).to(at::kDouble);
  for (const Perturbation& each : data.learned) {
    const Tensor change = (each.after - data.control.narrow(0, 0, 20)).abs().amax(0);
    Tensor reached = at::zeros({8}, at::kDouble);
    for (const int64_t feature : each.features) {
      EXPECT_NEAR((each.after.select(1, feature) - 3).abs().max().item<double>(), 0.0, 1e-5);
      reached = reached + reach[feature];
    }
    EXPECT_LT(change.masked_select(reached.eq(0)).sum().item<double>(), 1e-5);
  }
}

TEST(PerturbationScores, OfTheTruthAreZeroAndOfNothingAreNot) {
  PerturbationOptions options = small_task();
  const PerturbationData data = draw_perturbations(options, 3);
  const PerturbationScores nothing = unchanged_scores(data, options);
  EXPECT_GT(nothing.doubles, 0.0);
  // By hand: the mean change of the four features that change most, the target apart.
  double sum = 0.0;
  for (const Perturbation& each : data.singles) {
    Tensor change = each.after.mean(0) - data.control.narrow(0, 0, 20).mean(0);
    change[each.features[0]].fill_(0);
    sum += std::get<0>(change.square().topk(4)).mean().item<double>();
  }
  EXPECT_NEAR(nothing.singles, sum / static_cast<double>(data.singles.size()), 1e-6);
}

TEST(LearnPerturbations, LearnsWhatItIsShown) {
  PerturbationOptions options = small_task();
  PerturbationData data = draw_perturbations(options, 4);
  // Asked for what was learned, so that a small model in a second can know it.
  data.singles.assign(data.learned.begin(), data.learned.begin() + 6);
  data.doubles.assign(data.learned.begin() + 6, data.learned.end());
  FeatureTransformer model(FeatureTransformerOptions{.features = 8,
                                                     .dim = 16,
                                                     .heads = 2,
                                                     .layers = 1,
                                                     .values = FeatureValues::linear,
                                                     .encoding = FeatureEncoding::learned},
                           at::make_generator<at::CPUGeneratorImpl>(1));
  learn_perturbations(model, data, {.epochs = 40, .learning_rate = 5e-3}, 1);
  const PerturbationScores learned = perturbation_scores(model, data, options);
  const PerturbationScores nothing = unchanged_scores(data, options);
  EXPECT_LT(learned.singles, 0.3 * nothing.singles);
  EXPECT_LT(learned.doubles, 0.3 * nothing.doubles);
}

TEST(DrawPerturbations, NamesWhatCannotBe) {
  const auto error = [](auto change) {
    PerturbationOptions options = small_task();
    change(options);
    return test::input_error_of([&] { draw_perturbations(options, 1); });
  };
  EXPECT_EQ(error([](auto& o) { o.rows = 101; }),
            "--rows: expected 1 to 100 observations, got 101");
  EXPECT_EQ(error([](auto& o) { o.most_changed = 7; }),
            "--most-changed: expected 1 to 6 of the features, got 7");
  EXPECT_EQ(error([](auto& o) { o.unseen = 1; }),
            "--test: expected a share between 0 and 1, got 1");
  EXPECT_EQ(error([](auto& o) { o.asked = 9; }),
            "--doubles: expected 0 or more and, with --asked, at most 7 pairs, got 3 and 9");
}

}  // namespace
}  // namespace nsimplex::training
