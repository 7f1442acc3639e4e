#include "kernels/common/softmax_state.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

namespace nsimplex::kernels {
namespace {

// State of some logits (base 2) whose values are all 1, so that the weighted value is the sum.
SoftmaxState<float> state_of(const std::vector<int>& logits) {
  SoftmaxState<float> state;
  state.init();
  for (const int logit : logits) {
    const auto x = static_cast<float>(logit);
    if (state.exceeded_by(x)) state.raise(x);
    state.sum += std::exp2(x - state.max);
  }
  return state;
}

TEST(SoftmaxState, MergeOfPartsIsTheStateOfAll) {
  const bool passed = rc::check([] {
    const auto logits = rc::gen::container<std::vector<int>>(rc::gen::inRange(-2000, 2000));
    const std::vector<int> first = *logits, second = *logits;
    std::vector<int> all = first;
    all.insert(all.end(), second.begin(), second.end());
    SoftmaxState<float> merged = state_of(first);
    merged.merge(state_of(second));
    const SoftmaxState<float> whole = state_of(all);
    if (all.empty()) {
      RC_ASSERT(merged.fresh());
      RC_ASSERT(merged.sum == 0.0f);
    } else {
      RC_ASSERT(std::abs(merged.log_sum_exp() - whole.log_sum_exp()) <=
                2e-6 * (1.0 + std::abs(whole.log_sum_exp())));
    }
  });
  EXPECT_TRUE(passed);
}

TEST(SoftmaxState, FactorsBringBothSidesToOneScale) {
  SoftmaxState<float> low = state_of({0}), high = state_of({7});
  const SoftmaxState<float>::Factors factors = low.merge(high);
  EXPECT_FLOAT_EQ(factors.own, 1.0f / 128.0f);
  EXPECT_FLOAT_EQ(factors.other, 1.0f);
  EXPECT_FLOAT_EQ(low.sum, 1.0f + 1.0f / 128.0f);
  EXPECT_FLOAT_EQ(low.normalizer(), 1.0f / low.sum);
}

TEST(SoftmaxState, EmptyStatesMergeWithoutNaN) {
  SoftmaxState<float> empty;
  const SoftmaxState<float>::Factors factors = empty.merge(SoftmaxState<float>{});
  EXPECT_EQ(factors.own, 1.0f);
  EXPECT_EQ(factors.other, 1.0f);
  EXPECT_EQ(empty.log_sum_exp(), -std::numeric_limits<float>::infinity());
}

TEST(SoftmaxState, MaximumLagsBehindBySlackOnly) {
  SoftmaxState<float> state = state_of({0});
  EXPECT_FALSE(state.exceeded_by(SoftmaxState<float>::kSlack));
  EXPECT_TRUE(state.exceeded_by(SoftmaxState<float>::kSlack + 1.0f));
  EXPECT_FALSE(state.exceeded_by(std::numeric_limits<float>::quiet_NaN()));
}

}  // namespace
}  // namespace nsimplex::kernels
