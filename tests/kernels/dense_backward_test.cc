#include <gtest/gtest.h>

#include "kernels/dense_case.h"
#include "kernels/dense_oracle.h"

namespace nsimplex::kernels::testing {
namespace {

class DenseBackwardTest : public ::testing::TestWithParam<DenseCase> {
 protected:
  void TearDown() override { take_way(""); }
};

TEST_P(DenseBackwardTest, MatchesTheDefinitionOnEveryLevel) {
  constexpr double kGate = 2e-5;
  DenseData data(GetParam());
  const DenseBackward<float> given = data.backward();
  const DenseOracle oracle = dense_oracle<float>(given, &given.grad_out, given.grad_lse);
  for (const std::string& level : kernel_ways()) {
    SCOPED_TRACE(level);
    take_way(level);
    run_forward(data.forward());
    const DenseBackward<float> problem = data.backward();
    run_backward(problem);
    EXPECT_LE(relative_error(data.grad_query.values(), oracle.grad_query), kGate);
    EXPECT_TRUE(data.grad_query.outside_untouched());
    ASSERT_EQ(data.grad_masks.size(), oracle.grad_masks.size());
    for (size_t k = 0; k < oracle.grad_masks.size(); ++k) {
      EXPECT_LE(relative_error(data.grad_masks[k], oracle.grad_masks[k]), kGate);
    }
    EXPECT_LE(relative_error(data.grad_sink, oracle.grad_sink), kGate);
    for (int m = 0; m < problem.order; ++m) {
      SCOPED_TRACE(m);
      EXPECT_LE(relative_error(data.grad_keys[m].values(), oracle.grad_key[m]), kGate);
      EXPECT_LE(relative_error(data.grad_values[m].values(), oracle.grad_value[m]), kGate);
      EXPECT_TRUE(data.grad_keys[m].outside_untouched());
      EXPECT_TRUE(data.grad_values[m].outside_untouched());
    }
  }
}

TEST_P(DenseBackwardTest, NullGradientsAreLeftOutAndChangeNoOther) {
  DenseData all(GetParam());
  run_forward(all.forward());
  run_backward(all.backward(/*with_grad_lse=*/false));
  const int order = all.shape.order();
  for (int wanted = 0; wanted < 2 * order + 1; ++wanted) {  // one gradient at a time
    DenseData one(GetParam());
    one.out = all.out;
    one.lse = all.lse;
    DenseBackward<float> problem = one.backward(/*with_grad_lse=*/false);
    if (wanted != 2 * order) problem.grad_query = {};
    for (int m = 0; m < order; ++m) {
      if (wanted != m) problem.grad_key[m] = {};
      if (wanted != order + m) problem.grad_value[m] = {};
    }
    run_backward(problem);
    if (wanted == 2 * order) {
      EXPECT_EQ(one.grad_query.values(), all.grad_query.values());
    } else if (wanted < order) {
      EXPECT_EQ(one.grad_keys[wanted].values(), all.grad_keys[wanted].values());
    } else {
      EXPECT_EQ(one.grad_values[wanted - order].values(), all.grad_values[wanted - order].values());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DenseBackwardTest, ::testing::ValuesIn(dense_cases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Options, DenseBackwardTest, ::testing::ValuesIn(option_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace nsimplex::kernels::testing
