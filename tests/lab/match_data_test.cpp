#include "lab/match/match_data.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/error.h"

namespace nsimplex::training {
namespace {

using ::testing::HasSubstr;

at::Generator generator(uint64_t seed) { return at::make_generator<at::CPUGeneratorImpl>(seed); }

// Sums over every tuple of positions, without any shortcut: [count, length].
at::Tensor labels_by_definition(const at::Tensor& x, const MatchTask& task) {
  at::Tensor sums = x;  // [count, length, tuples of the positions so far]
  sums = sums.unsqueeze(-1);
  for (int64_t j = 1; j < task.arity; ++j) {
    sums = (sums.unsqueeze(-1) + x.unsqueeze(1).unsqueeze(1)).flatten(2);
  }
  return (sums.remainder(task.modulus) == 0).any(-1);
}

class EveryArity : public ::testing::TestWithParam<int64_t> {};

TEST_P(EveryArity, LabelsAreWhatTheDefinitionSays) {
  for (const auto& [modulus, length] : {std::pair{11, 6}, {16, 5}, {127, 8}, {2, 2}}) {
    const MatchTask task{GetParam(), modulus, length, MatchLabels::natural};
    const auto data = draw_match(200, task, generator(1));
    EXPECT_TRUE(at::equal(data.labels > 0, labels_by_definition(data.tokens, task)))
        << modulus << ", " << length;
    EXPECT_GE(data.tokens.min().item<int64_t>(), 0);
    EXPECT_LT(data.tokens.max().item<int64_t>(), modulus);
  }
}

TEST_P(EveryArity, UsualTasksAreBalancedAndNotSeenFromANumberAlone) {
  const MatchTask task = match_task(GetParam());
  const auto data = draw_match(2000, task, generator(2));
  EXPECT_TRUE(at::equal(data.labels.sum(1), at::full({2000}, task.length / 2.0F)));
  EXPECT_TRUE(at::equal(data.labels > 0, labels_by_definition(data.tokens, task)));
  // Who answers by the number at the position alone, with the commoner label of each, is not far
  // above one half.
  int64_t right = 0;
  for (int64_t value = 0; value < task.modulus; ++value) {
    const at::Tensor labels = data.labels.masked_select(data.tokens == value);
    const auto ones = labels.sum().item<int64_t>();
    right += std::max(ones, labels.numel() - ones);
  }
  EXPECT_LT(static_cast<double>(right) / static_cast<double>(data.labels.numel()), 0.6);
}

INSTANTIATE_TEST_SUITE_P(Match, EveryArity, ::testing::Values(2, 3, 4));

TEST(MatchData, OddLengthsAreBalancedOverTwoSequences) {
  const auto odd = draw_match(100, {.modulus = 13, .length = 5}, generator(3));
  EXPECT_EQ(odd.labels.sum().item<float>(), 250.0F);
}

TEST(MatchData, TheSameGeneratorGivesTheSameSequences) {
  const auto draw = [](uint64_t seed) { return draw_match(50, {}, generator(seed)).tokens; };
  EXPECT_TRUE(at::equal(draw(4), draw(4)));
  EXPECT_FALSE(at::equal(draw(4), draw(5)));
}

std::string refusal(const MatchTask& task) {
  try {
    draw_match(10, task, generator(1));
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(MatchData, WhatCannotBeDrawnIsRefused) {
  EXPECT_THAT(refusal({.modulus = 1000000}), HasSubstr("[match3] modulus: sequences of length 8"));
  EXPECT_THAT(refusal({.modulus = 1000000}), HasSubstr("try a modulus near length^2 / 2"));
  EXPECT_THAT(refusal({.arity = 4, .modulus = 1000000}), HasSubstr("length^3 / 6"));
  EXPECT_THAT(refusal({.arity = 2, .modulus = 1000000}), HasSubstr("near length^1"));
  EXPECT_THAT(refusal({.length = 1}), HasSubstr("length: expected at least 2, got 1"));
  EXPECT_THAT(refusal({.modulus = 1}), HasSubstr("modulus: expected at least 2, got 1"));
  EXPECT_THAT(refusal({.arity = 1}), HasSubstr("arity: expected at least 2, got 1"));
  EXPECT_THROW(match_task(5), InputError);
}

}  // namespace
}  // namespace nsimplex::training
