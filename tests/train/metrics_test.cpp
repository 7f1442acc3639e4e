#include "train/scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/random.h"

namespace nsimplex::training {
namespace {

using Numbers = std::vector<int64_t>;
using Flags = std::vector<uint8_t>;

TEST(BinaryCounts, OfTenAnswers) {
  BinaryCounts counts;
  for (int i = 0; i < 3; ++i) counts.add(true, true);
  counts.add(true, false);
  for (int i = 0; i < 2; ++i) counts.add(false, true);
  for (int i = 0; i < 4; ++i) counts.add(false, false);
  EXPECT_DOUBLE_EQ(counts.accuracy(), 0.7);
  EXPECT_DOUBLE_EQ(counts.precision(), 0.75);
  EXPECT_DOUBLE_EQ(counts.recall(), 0.6);
  EXPECT_DOUBLE_EQ(counts.f1(), 2 * 0.75 * 0.6 / 1.35);
  EXPECT_EQ(BinaryCounts{}.f1(), 0.0);
  EXPECT_EQ(BinaryCounts{}.accuracy(), 0.0);
}

// The example in scikit-learn's documentation of f1_score.
TEST(ClassF1, OfThreeClasses) {
  const ClassF1 f1 = class_f1(Numbers{0, 2, 1, 0, 0, 1}, Numbers{0, 1, 2, 0, 1, 2});
  EXPECT_DOUBLE_EQ(f1.micro, 1. / 3);
  EXPECT_DOUBLE_EQ(f1.macro, 0.8 / 3);
}

TEST(ClassF1, OfOneClassPredicted) {
  const ClassF1 f1 = class_f1(Numbers{1, 1, 1, 1}, Numbers{1, 1, 1, 0});
  EXPECT_DOUBLE_EQ(f1.micro, 0.75);
  EXPECT_DOUBLE_EQ(f1.macro, 6. / 7 / 2);
  EXPECT_DOUBLE_EQ(class_f1(Numbers{1, 1}, Numbers{1, 1}).macro, 1.0);
  EXPECT_TRUE(std::isnan(class_f1(Numbers{}, Numbers{}).micro));
}

// The example of roc_auc_score and average_precision_score in scikit-learn's documentation.
TEST(Ranking, OfFourScores) {
  const std::vector<double> scores{0.1, 0.4, 0.35, 0.8};
  const Flags positive{0, 0, 1, 1};
  EXPECT_DOUBLE_EQ(area_under_roc(scores, positive), 0.75);
  EXPECT_DOUBLE_EQ(average_precision(scores, positive), (1 + 2. / 3) / 2);
}

TEST(Ranking, EqualScoresAreOneStep) {
  const std::vector<double> same(5, 1.0);
  for (const Flags& positive : {Flags{1, 1, 0, 0, 0}, Flags{0, 0, 0, 1, 1}}) {
    EXPECT_DOUBLE_EQ(area_under_roc(same, positive), 0.5);
    EXPECT_DOUBLE_EQ(average_precision(same, positive), 0.4);
  }
  const std::vector<double> two{3, 2, 2, 1};
  EXPECT_DOUBLE_EQ(area_under_roc(two, Flags{1, 1, 0, 0}), 0.875);
  EXPECT_DOUBLE_EQ(average_precision(two, Flags{1, 1, 0, 0}), 0.5 + 0.5 * 2 / 3);
}

TEST(Ranking, NeedsBothKinds) {
  const std::vector<double> scores{1, 2};
  EXPECT_TRUE(std::isnan(area_under_roc(scores, Flags{1, 1})));
  EXPECT_TRUE(std::isnan(area_under_roc(scores, Flags{0, 0})));
  EXPECT_TRUE(std::isnan(average_precision(scores, Flags{0, 0})));
  EXPECT_EQ(average_precision(scores, Flags{1, 1}), 1.0);
  EXPECT_TRUE(std::isnan(area_under_roc({}, {})));
}

TEST(Ranking, OfAScoreThatIsNoNumberIsNone) {
  const std::vector<double> scores{0.1, std::nan(""), 0.35, 0.8};
  EXPECT_TRUE(std::isnan(area_under_roc(scores, Flags{0, 0, 1, 1})));
  EXPECT_TRUE(std::isnan(average_precision(scores, Flags{0, 0, 1, 1})));
}

TEST(Ranking, IsTheChanceOfAPairInOrder) {
  RandomStream draws(3);
  for (int round = 0; round < 30; ++round) {
    std::vector<double> scores(40);
    Flags positive(40);
    for (size_t i = 0; i < scores.size(); ++i) {
      positive[i] = draws.below(3) == 0;
      scores[i] = static_cast<double>(draws.below(12) + 2 * positive[i]);
    }
    double ordered = 0, pairs = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      for (size_t j = 0; j < scores.size(); ++j) {
        if (!positive[i] || positive[j]) continue;
        ++pairs;
        ordered += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
      }
    }
    EXPECT_NEAR(area_under_roc(scores, positive), ordered / pairs, 1e-12);
  }
}

// The examples of adjusted_rand_score and rand_score in scikit-learn's documentation.
TEST(PartitionScores, OfFourThings) {
  const PartitionScores split = partition_scores(Numbers{0, 0, 1, 2}, Numbers{0, 0, 1, 1});
  EXPECT_NEAR(split.adjusted_rand_index, 0.5714285714, 1e-9);
  EXPECT_DOUBLE_EQ(split.rand_index, 5. / 6);
  EXPECT_DOUBLE_EQ(split.f1, 2. / 3);
  const PartitionScores crossed = partition_scores(Numbers{0, 1, 0, 1}, Numbers{0, 0, 1, 1});
  EXPECT_DOUBLE_EQ(crossed.adjusted_rand_index, -0.5);
  EXPECT_EQ(crossed.f1, 0.0);
}

TEST(PartitionScores, OfEqualAndOfTrivialPartitions) {
  const auto all_one = [](const Numbers& a, const Numbers& b) {
    const PartitionScores scores = partition_scores(a, b);
    return scores.f1 == 1 && scores.rand_index == 1 && scores.adjusted_rand_index == 1;
  };
  EXPECT_TRUE(all_one({5, 5, 9}, {1, 1, 0}));
  EXPECT_TRUE(all_one({1, 2, 3}, {7, 8, 9}));
  EXPECT_TRUE(all_one({0}, {4}));
  EXPECT_TRUE(all_one({}, {}));
  const PartitionScores opposite = partition_scores(Numbers{0, 0, 0}, Numbers{0, 1, 2});
  EXPECT_EQ(opposite.f1, 0.0);
  EXPECT_EQ(opposite.rand_index, 0.0);
  EXPECT_EQ(opposite.adjusted_rand_index, 0.0);
}

TEST(PartitionScores, AreThoseOfPairsAndZeroOnAverage) {
  RandomStream draws(1);
  double sum = 0;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    Numbers one(10), other(10);
    for (int64_t& part : one) part = draws.below(3);
    for (int64_t& part : other) part = draws.below(4);
    BinaryCounts pairs;
    for (size_t i = 0; i < one.size(); ++i) {
      for (size_t j = 0; j < i; ++j) pairs.add(one[i] == one[j], other[i] == other[j]);
    }
    const PartitionScores scores = partition_scores(one, other);
    EXPECT_DOUBLE_EQ(scores.rand_index, pairs.accuracy());
    EXPECT_DOUBLE_EQ(scores.f1, pairs.f1());
    sum += scores.adjusted_rand_index;
  }
  EXPECT_NEAR(sum / kRounds, 0, 0.01);  // standard error 0.003
}

}  // namespace
}  // namespace nsimplex::training
