#include "train/perturbation_task.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "input_error_of.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

Perturbation did(std::vector<int64_t> features, std::vector<double> after) {
  const Tensor row = at::tensor(after, at::kFloat).unsqueeze(0);
  return {std::move(features), row, at::zeros({1}, at::kLong)};
}

// Four features whose mean is (1, 1, 1, 1) before.
PerturbationData by_hand() {
  PerturbationData data{
      .table = {},
      .graph = {},
      .control = at::tensor({0.0, 2.0, 1.0, 3.0, 2.0, 0.0, 1.0, -1.0}, at::kFloat).reshape({2, 4}),
      .dose = 3.0,
      .starts = 2};
  data.learned = {did({0}, {9, 2, 1, 1}), did({1}, {1, 9, 4, 1}), did({0, 2}, {9, 2, 9, 3})};
  data.singles = {did({3}, {1, 3, 1, 9})};
  data.doubles = {did({0, 1}, {9, 9, 4, 2}), did({2, 3}, {2, 1, 9, 9})};
  return data;
}

TEST(PerturbationBaselines, AreWhatAHandComputes) {
  const PerturbationData data = by_hand();
  const PerturbationBaselines baselines(data);
  // Responses: (8, 1, 0, 0), (0, 8, 3, 0), (8, 1, 8, 2); a target does not count.
  EXPECT_TRUE(at::allclose(baselines.mean(), at::tensor({0.0, 1.0, 1.5, 2.0 / 3}, at::kDouble)));
  EXPECT_TRUE(
      at::allclose(baselines.additive({0, 1}), at::tensor({8.0, 9.0, 3.0, 0.0}, at::kDouble)));
  // The pair of 0 and 2 was learned, the single of 2 was not.
  EXPECT_TRUE(at::equal(baselines.additive({0, 2}), baselines.mean()));
  EXPECT_TRUE(at::equal(baselines.additive({3}), baselines.mean()));
}

TEST(PerturbationBaselines, ScoresAreThoseOfTheirAnswers) {
  const PerturbationData data = by_hand();
  PerturbationOptions options;
  options.most_changed = 2;
  const auto scores = [&](const char* name) {
    return perturbation_baseline_scores(name, data, options);
  };
  // Of the pair (0, 1) features 2 and 3 are judged, which change by 3 and 1; of (2, 3) it is 0 and
  // 1, which change by 1 and 0; of 3 it is 1, which changes by 2, and one that does not change.
  EXPECT_NEAR(scores("unchanged").doubles, ((9 + 1) / 2.0 + (1 + 0) / 2.0) / 2, 1e-6);
  EXPECT_NEAR(scores("unchanged").singles, 4 / 2.0, 1e-6);
  const double of_mean = ((3 - 1.5) * (3 - 1.5) + (1 - 2.0 / 3) * (1 - 2.0 / 3)) / 2,
               other = (1 + 1) / 2.0;
  EXPECT_NEAR(scores("mean response").doubles, (of_mean + other) / 2, 1e-6);
  EXPECT_NEAR(scores("additive").doubles, ((0 + 1) / 2.0 + other) / 2, 1e-6);
  EXPECT_NEAR(scores("additive").doubles_by_seen[2], 0.5, 1e-6);
  EXPECT_NEAR(scores("additive").doubles_by_seen[0], other, 1e-6);
  EXPECT_TRUE(std::isnan(scores("additive").doubles_by_seen[1]));
  EXPECT_EQ(test::input_error_of([&] { scores("best"); }),
            "expected the name of a baseline, got best");
}

// Two independent groups of features that move together: a target moves its own group.
TEST(PerturbationBaselines, LinearLearnsFromFeaturesThatMoveTogether) {
  constexpr int64_t kFeatures = 12;
  at::manual_seed(1);
  const Tensor factors = at::randn({400, 2});
  const Tensor noise = at::randn({400, kFeatures}) * 0.1;
  PerturbationData data{.table = {}, .graph = {}, .control = {}, .dose = 3.0, .starts = 400};
  data.control = noise.clone();
  for (int64_t feature = 0; feature < kFeatures; ++feature) {
    data.control.select(1, feature).add_(factors.select(1, feature % 2));
  }
  data.control = data.control - data.control.mean(0);
  const auto moved = [&](std::vector<int64_t> features) {
    std::vector<double> after(kFeatures, 0.0);
    for (const int64_t target : features) {
      for (int64_t other = target % 2; other < kFeatures; other += 2) after[other] += 1;
    }
    return did(std::move(features), after);
  };
  for (int64_t feature = 0; feature < 8; ++feature) data.learned.push_back(moved({feature}));
  for (int64_t feature = 8; feature < kFeatures; ++feature)
    data.singles.push_back(moved({feature}));
  data.doubles = {moved({0, 9}), moved({8, 10})};
  PerturbationOptions options;
  options.most_changed = 5;
  const auto linear = perturbation_baseline_scores("linear", data, options),
             mean = perturbation_baseline_scores("mean response", data, options);
  EXPECT_LT(linear.singles, 0.05 * mean.singles);
  EXPECT_LT(linear.doubles, 0.05 * mean.doubles);
}

// Without anything to tell targets apart the answer is the mean response.
TEST(PerturbationBaselines, LinearIsTheMeanWherePlacesSayNothing) {
  at::manual_seed(2);
  PerturbationData data{
      .table = {}, .graph = {}, .control = at::randn({500, 30}), .dose = 3.0, .starts = 500};
  for (int64_t feature = 0; feature < 20; ++feature) {
    const Tensor after = at::randn({1, 30});
    data.learned.push_back({{feature}, after, at::zeros({1}, at::kLong)});
  }
  const PerturbationBaselines baselines(data);
  const double apart = (baselines.linear({25}) - baselines.mean()).square().mean().item<double>();
  EXPECT_LT(apart, 0.02);
}

}  // namespace
}  // namespace nsimplex::training
