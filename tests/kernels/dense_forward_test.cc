#include <gtest/gtest.h>

#include <cmath>

#include "kernels/dense_case.h"
#include "kernels/dense_oracle.h"

namespace nsimplex::kernels::testing {
namespace {

class DenseForwardTest : public ::testing::TestWithParam<DenseCase> {
 protected:
  void TearDown() override { take_way(""); }
};

TEST_P(DenseForwardTest, MatchesTheDefinitionOnEveryLevel) {
  DenseData data(GetParam());
  const DenseForward<float> problem = data.forward();
  const DenseOracle oracle = dense_oracle<float>(problem, nullptr, nullptr);
  for (const std::string& level : kernel_ways()) {
    SCOPED_TRACE(level);
    take_way(level);
    run_forward(problem);
    EXPECT_LE(relative_error(data.out.values(), oracle.out), 2e-6);
    ASSERT_EQ(data.lse.size(), oracle.lse.size());
    for (size_t i = 0; i < data.lse.size(); ++i) {
      if (std::isinf(oracle.lse[i])) {
        EXPECT_EQ(data.lse[i], oracle.lse[i]);
      } else {
        EXPECT_NEAR(data.lse[i], oracle.lse[i], 4e-6 * (1.0 + std::abs(oracle.lse[i])));
      }
    }
    EXPECT_TRUE(data.out.outside_untouched());
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DenseForwardTest, ::testing::ValuesIn(dense_cases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Options, DenseForwardTest, ::testing::ValuesIn(option_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace nsimplex::kernels::testing
