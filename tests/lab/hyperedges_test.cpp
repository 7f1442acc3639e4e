#include "lab/graphs/hyperedges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "input_error_of.h"

namespace nsimplex::data {
namespace {

using test::input_error_of;
using testing::ElementsAre;

// Users 0 to 1, places 2 to 4, acts 5 to 8.
io::Tuples typed(std::vector<int64_t> values) { return {3, std::move(values), {2, 3, 4}}; }
io::Tuples untyped(int64_t width, std::vector<int64_t> values) {
  return {width, std::move(values), {}};
}

// All tuples of one user, half of those of the other.
io::Tuples many() {
  std::vector<int64_t> values;
  for (int64_t place = 2; place < 5; ++place) {
    for (int64_t act = 5; act < 9; ++act) {
      values.insert(values.end(), {0, place, act});
      if ((place + act) % 2 == 0) values.insert(values.end(), {1, place, act});
    }
  }
  return typed(values);
}

TEST(SplitHyperedges, HoldsOutDifferentTuplesWithTheirCopies) {
  io::Tuples train = many();
  const std::vector<int64_t> once = train.values;
  train.values.insert(train.values.end(), once.begin(), once.end());  // each twice
  const HyperedgeSplits splits = split_hyperedges(train, many(), 0.25, 1);
  EXPECT_EQ(splits.validation.count(), 2 * 4);  // of 18
  EXPECT_EQ(splits.train.count(), 2 * 14);
  EXPECT_EQ(splits.nodes, 9);
  KnownTuples kept(true);
  for (int64_t row = 0; row < splits.train.count(); ++row)
    kept.insert(splits.row(splits.train, row));
  for (int64_t row = 0; row < splits.validation.count(); ++row) {
    EXPECT_FALSE(kept.contains(splits.row(splits.validation, row)));
  }
  EXPECT_EQ(split_hyperedges(train, many(), 0.25, 1).validation.values, splits.validation.values);
  EXPECT_NE(split_hyperedges(train, many(), 0.25, 2).validation.values, splits.validation.values);
}

TEST(SplitHyperedges, KnowsWhichTestTuplesAreNew) {
  const io::Tuples train = typed({0, 2, 5, 0, 2, 6, 1, 2, 5}),
                   test = typed({0, 2, 6, 1, 3, 6, 0, 4, 5, 1, 3, 6});
  EXPECT_THAT(split_hyperedges(train, test, 0.4, 1).unseen, ElementsAre(0, 1, 1, 0));
  // Without types the order of a tuple's nodes does not matter.
  EXPECT_THAT(
      split_hyperedges(untyped(2, {0, 1, 2, 3, 1, 3}), untyped(2, {3, 2, 0, 2}), 0.4, 1).unseen,
      ElementsAre(0, 1));
}

TEST(SplitHyperedges, ChosenByTestLearnsFromAllTrainingTuples) {
  const io::Tuples train = typed({0, 2, 5, 0, 2, 6, 1, 2, 5}), test = typed({0, 2, 6, 1, 3, 6});
  const HyperedgeSplits splits = splits_chosen_by_test(train, test);
  EXPECT_EQ(splits.train.values, train.values);
  EXPECT_EQ(splits.validation.values, test.values);
  EXPECT_EQ(splits.test.values, test.values);
  EXPECT_THAT(splits.unseen, ElementsAre(0, 1));
  EXPECT_EQ(input_error_of([&] { splits_chosen_by_test(train, untyped(2, {0, 1})); }),
            "[hyperedges] test: expected tuples of 3 nodes as in train, got 2");
}

TEST(SplitHyperedges, RefusesFilesThatDoNotFit) {
  const auto error = [](const io::Tuples& train, const io::Tuples& test, double share = 0.5) {
    return input_error_of([&] { split_hyperedges(train, test, share, 1); });
  };
  EXPECT_EQ(error(untyped(3, {0, 1, 2}), untyped(2, {0, 1})),
            "[hyperedges] test: expected tuples of 3 nodes as in train, got 2");
  EXPECT_EQ(error(many(), untyped(3, {0, 1, 2})),
            "[hyperedges] test: expected the nums_type of train: types and their numbers of nodes "
            "differ");
  EXPECT_EQ(error(many(), typed({})), "[hyperedges] train, test: expected a tuple in each");
  EXPECT_EQ(error(untyped(2, {0, 1, 1, 2}), untyped(2, {0, 3})),
            "[hyperedges] test: expected nodes 0 to 2 as in train, got 3");
  EXPECT_EQ(error(untyped(2, {0, 1, 1, 1}), untyped(2, {0, 1})),
            "[hyperedges] train: row 1: expected different nodes in a tuple");
  EXPECT_EQ(error(many(), many(), 0.001),
            "[hyperedges] validation: expected a share that leaves tuples to both, got 0.001000 of "
            "18");
}

std::shared_ptr<KnownTuples> known(const HyperedgeSplits& splits) {
  auto known = std::make_shared<KnownTuples>(splits.typed);
  for (const io::Tuples* of : {&splits.train, &splits.validation, &splits.test}) {
    for (int64_t row = 0; row < of->count(); ++row) known->insert(splits.row(*of, row));
  }
  return known;
}

TEST(NegativeSampler, KeepsTypesAndAvoidsWhatIsKnown) {
  const HyperedgeSplits splits = split_hyperedges(many(), many(), 0.2, 1);
  const auto all = known(splits);
  const NegativeSampler sampler(splits, all);
  RandomStream draws(1);
  for (int round = 0; round < 500; ++round) {
    const std::vector<int64_t> positive{1, 2, 6};
    const std::vector<int64_t> negative = sampler.draw(positive, draws);
    EXPECT_TRUE(negative[0] < 2 && negative[1] >= 2 && negative[1] < 5 && negative[2] >= 5 &&
                negative[2] < 9);
    EXPECT_FALSE(all->contains(negative));
    EXPECT_EQ(negative[0], 1);  // all tuples of user 0 are known
  }
}

TEST(NegativeSampler, SwapsOneNodeNineTimesInTen) {
  io::Tuples wide{3, {}, {1000, 1000, 1000}};
  wide.values = {1, 1001, 2001, 2, 1002, 2002};
  const HyperedgeSplits splits = split_hyperedges(wide, wide, 0.5, 1);
  const NegativeSampler sampler(splits, known(splits));
  RandomStream draws(7);
  std::array<int, 4> differing{};
  std::array<int, 3> swapped{};
  constexpr int kRounds = 20000;
  const std::vector<int64_t> positive{1, 1001, 2001};
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<int64_t> negative = sampler.draw(positive, draws);
    int count = 0, which = 0;
    for (int column = 0; column < 3; ++column) {
      if (negative[column] == positive[column]) continue;
      ++count;
      which = column;
    }
    ++differing[count];
    if (count == 1) ++swapped[which];
  }
  EXPECT_EQ(differing[0], 0);
  EXPECT_NEAR(differing[1], 0.9 * kRounds, 5 * 42);  // a standard deviation of 42
  EXPECT_NEAR(differing[3], 0.1 * kRounds, 5 * 42);
  for (const int count : swapped) EXPECT_NEAR(count, 0.3 * kRounds, 5 * 65);
}

TEST(NegativeSampler, GivesUpInOneLineWhereThereIsNone) {
  const io::Tuples all = untyped(2, {0, 1, 0, 2, 1, 2});
  const HyperedgeSplits splits = split_hyperedges(all, all, 0.4, 1);
  const NegativeSampler sampler(splits, known(splits));
  RandomStream draws(1);
  EXPECT_EQ(input_error_of([&] { sampler.draw(std::vector<int64_t>{0, 1}, draws); }),
            "[hyperedges] negatives: nearly every tuple of these nodes is a hyperedge");
}

// Two users, two places, one act: by hand.
TEST(Cooccurrence, IsScaledByColumn) {
  HyperedgeSplits splits;
  splits.typed = true;
  splits.nodes = 5;
  splits.train = {3, {0, 2, 4, 0, 2, 4, 0, 3, 4, 1, 3, 4}, {2, 2, 1}};
  const Cooccurrence shared = cooccurrence(splits);
  ASSERT_EQ(shared.types.size(), 3u);
  EXPECT_EQ(shared.types[0].columns, 3);  // places 2, 3 and act 4
  EXPECT_EQ(shared.types[1].columns, 3);  // users 0, 1 and act 4
  EXPECT_EQ(shared.types[2].columns, 4);
  EXPECT_EQ(shared.types[2].first, 4);
  EXPECT_THAT(shared.offsets, ElementsAre(0, 3, 5, 7, 10, 14));
  EXPECT_THAT(shared.columns, ElementsAre(0, 1, 2, 1, 2, 0, 2, 0, 1, 2, 0, 1, 2, 3));
  // User 0 shares 2, 1 and 3 tuples with nodes 2, 3 and 4; user 1 shares 1 and 1 with 3 and 4.
  EXPECT_THAT(shared.values, ElementsAre(1, 1, 1, 1, 1.F / 3, 1, 1, 0.5F, 1, 1, 1, 1, 1, 1));
}

TEST(Cooccurrence, OfUntypedTuplesIsOneMatrix) {
  HyperedgeSplits splits;
  splits.nodes = 4;
  splits.train = untyped(2, {0, 1, 1, 0, 1, 2});
  const Cooccurrence shared = cooccurrence(splits);
  ASSERT_EQ(shared.types.size(), 1u);
  EXPECT_EQ(shared.types[0].columns, 3);  // node 3 shares nothing
  EXPECT_THAT(shared.offsets, ElementsAre(0, 1, 3, 4, 4));
  EXPECT_THAT(shared.columns, ElementsAre(1, 0, 2, 1));
  EXPECT_THAT(shared.values, ElementsAre(1, 1, 1, 0.5F));
}

TEST(SplitHyperedges, RefusesMoreNodesThanTuplesCanUse) {
  const io::Tuples far = untyped(2, {0, 1, 1, 1'000'000'000'000});
  EXPECT_EQ(input_error_of([&] { split_hyperedges(far, far, 0.25, 1); }),
            "[hyperedges] train: expected nodes that are numbered from 0 on, got 1000000000001 of "
            "them for 2 tuples");
}

}  // namespace
}  // namespace nsimplex::data
