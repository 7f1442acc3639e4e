#include "lab/smoothing/masked_collapse.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace nsimplex::analysis {
namespace {

using at::Tensor;

Tensor column(std::vector<double> values) { return at::tensor(values, at::kDouble).unsqueeze(1); }

// One channel, keys of 0: every tuple weighs the same, values are multiplied by `value`.
PureHead averaging(int64_t order, double value) {
  const Tensor zero = at::zeros({1, 1}, at::kDouble), own = at::full({1, 1}, value, at::kDouble);
  return {std::vector<Tensor>(order + 1, zero), std::vector<Tensor>(order, own)};
}

// Each position sees itself and the one before.
TupleMask chain(int64_t nodes) { return tuple_mask(product_mask(window_keys(nodes, 2), 1)); }

TEST(MaskedCollapse, AveragesAlongAChain) {
  const MaskedStack stack =
      run_stack({averaging(1, 1), averaging(1, 1)}, column({1, 2, 4}), chain(3));
  EXPECT_TRUE(at::allclose(stack.tokens[1], column({1, 1.5, 3})));
  EXPECT_TRUE(at::allclose(stack.tokens[2], column({1, 1.25, 2.25})));
  EXPECT_NEAR(stack.least_weight, 0.5, 1e-15);
  EXPECT_NEAR(stack.value_product, 1, 1e-15);
  EXPECT_TRUE(stack.assumption_holds());
  EXPECT_EQ(stack.floor, 3);
  EXPECT_NEAR(stack.largest_norm, std::sqrt(7.0 * 4), 1e-12);  // 1 + 2 + 4 down, 4 across

  // m = 1 - 1/2 at all times; M = 4 and 9/4; rho of the centre, token 0, is 3 / 3.5 at first.
  const MaskedSteps steps = masked_steps(stack, 0, 2);
  EXPECT_EQ(steps.theorem[0].compared, 1);
  EXPECT_NEAR(steps.theorem[0].left, 1.75, 1e-12);
  EXPECT_NEAR(steps.theorem[0].right, (1 - 3 / 3.5 / 4) * 3.5, 1e-12);
  EXPECT_EQ(steps.theorem[1].compared, 0);
  EXPECT_EQ(steps.lemma[0].compared, 3);  // t = 0, T = 1, 2; t = 1, T = 1
  EXPECT_LT(steps.lemma[0].left, steps.lemma[0].right);
}

// Tokens near -1/2: their products are near 1/4, above all that was there.
TEST(MaskedCollapse, StepFailsForNegativeColumnsOfOrderTwo) {
  const TupleMask pairs = tuple_mask(product_mask(window_keys(3, 2), 2));
  const MaskedStack stack =
      run_stack({averaging(2, 1), averaging(2, 1)}, column({-0.5, -0.501, -0.502}), pairs);
  EXPECT_NEAR(stack.least_weight, 0.25, 1e-15);
  EXPECT_TRUE(stack.assumption_holds());
  const MaskedSteps steps = masked_steps(stack, 0, 2);
  ASSERT_EQ(steps.lemma[1].compared, 2);
  EXPECT_GT(steps.lemma[1].left, steps.lemma[1].right);
}

TEST(MaskedCollapse, StopsAtTheFloor) {
  const MaskedStack stack = run_stack(std::vector<PureHead>(3, averaging(1, 1)), column({2, 2}),
                                      tuple_mask(product_mask({{0, 1}, {0, 1}}, 1)));
  EXPECT_EQ(stack.floor, 0);
  EXPECT_EQ(masked_steps(stack, 0, 1).theorem[0].compared, 0);
}

TEST(MaskedCollapse, KeepsTheClosestSides) {
  ClosestSides sides;
  sides.add(1, 3);
  sides.add(2, 3);
  sides.add(0, 1);
  EXPECT_EQ(sides.left, 2);
  EXPECT_EQ(sides.right, 3);
  EXPECT_EQ(sides.compared, 3);
}

}  // namespace
}  // namespace nsimplex::analysis
