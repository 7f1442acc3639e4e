#include "training/match3.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/error.h"

namespace nsimplex::training {
namespace {

at::Generator generator(uint64_t seed) { return at::make_generator<at::CPUGeneratorImpl>(seed); }

TEST(Match3, LabelsAreWhatTheDefinitionSays) {
  const auto data = draw_match3(200, 6, 11, Match3Labels::natural, generator(1));
  const at::Tensor& x = data.tokens;
  const at::Tensor sums = x.view({200, 6, 1, 1}) + x.view({200, 1, 6, 1}) + x.view({200, 1, 1, 6});
  const at::Tensor expected = (sums.remainder(11) == 0).flatten(2).any(-1);
  EXPECT_TRUE(at::equal(data.labels > 0, expected));
  EXPECT_EQ(x.min().item<int64_t>(), 0);
  EXPECT_EQ(x.max().item<int64_t>(), 10);
}

TEST(Match3, BalancedSequencesHaveHalfOfTheirLabelsSet) {
  const auto even = draw_match3(100, 8, 37, Match3Labels::balanced, generator(2));
  EXPECT_TRUE(at::equal(even.labels.sum(1), at::full({100}, 4.0F)));
  const auto odd = draw_match3(100, 5, 13, Match3Labels::balanced, generator(3));
  EXPECT_EQ(odd.labels.sum().item<float>(), 250.0F);
}

TEST(Match3, TheSameGeneratorGivesTheSameSequences) {
  const auto draw = [](uint64_t seed) {
    return draw_match3(50, 8, 37, Match3Labels::balanced, generator(seed)).tokens;
  };
  EXPECT_TRUE(at::equal(draw(4), draw(4)));
  EXPECT_FALSE(at::equal(draw(4), draw(5)));
}

TEST(Match3, ImpossibleBalanceIsRefused) {
  EXPECT_THROW(draw_match3(10, 8, 1000000, Match3Labels::balanced, generator(1)), InputError);
  EXPECT_THROW(draw_match3(10, 1, 37, Match3Labels::balanced, generator(1)), InputError);
}

TEST(Match3, OrdersHaveEqualParametersAndTheSameDataAndRepeat) {
  Match3Options options;
  options.dim = 16;
  options.steps = 20;
  options.batch = 32;
  options.evaluate_every = 10;
  options.held_out = 64;
  std::vector<Match3Point> curve;
  const auto train = [&](int64_t order) {
    curve.clear();
    return train_match3(options, order, 5, [&](const Match3Point& p) { curve.push_back(p); });
  };
  const Match3Result first = train(1), second = train(2);
  EXPECT_EQ(first.parameters, second.parameters);
  EXPECT_EQ(first.majority, 0.5);
  ASSERT_EQ(curve.size(), 20U);
  EXPECT_TRUE(std::isnan(curve[0].accuracy));
  EXPECT_FALSE(std::isnan(curve[9].accuracy));
  EXPECT_EQ(curve.back().accuracy, second.accuracy);
  EXPECT_LT(curve.back().loss, curve.front().loss);
  const double loss = curve.back().loss;
  EXPECT_EQ(train(2).accuracy, second.accuracy);
  EXPECT_EQ(curve.back().loss, loss);
}

}  // namespace
}  // namespace nsimplex::training
