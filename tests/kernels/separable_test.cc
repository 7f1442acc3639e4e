#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/simd.h"
#include "kernels/separable_case.h"

namespace nsimplex::kernels::testing {
namespace {

class SeparableTest : public ::testing::TestWithParam<SeparableCase> {
 protected:
  void TearDown() override { set_simd_level(""); }
};

template <class T>
void expect_near(const char* what, const std::vector<T>& ours, const std::vector<double>& exact,
                 double error) {
  SCOPED_TRACE(what);
  ASSERT_EQ(ours.size(), exact.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    difference += (ours[i] - exact[i]) * (ours[i] - exact[i]);
    norm += exact[i] * exact[i];
  }
  EXPECT_LE(std::sqrt(difference), error * std::sqrt(norm));
}

template <class T>
void expect_definition(const SeparableCase& shape, double out_error, double grad_error) {
  SeparableData<double> exact(shape);
  exact.define();
  for (const std::string& level : simd_levels()) {
    SCOPED_TRACE(level);
    set_simd_level(level);
    SeparableData<T> ours(shape);
    ours.run();
    expect_near("out", ours.out, exact.out, out_error);
    expect_near("normalizer", ours.normalizer, exact.normalizer, out_error);
    expect_near("grad_query", ours.grad_query, exact.grad_query, grad_error);
    for (size_t m = 0; m < shape.lengths.size(); ++m) {
      expect_near("grad_key", ours.grad_keys[m], exact.grad_keys[m], grad_error);
      expect_near("grad_value", ours.grad_values[m], exact.grad_values[m], grad_error);
    }
  }
}

TEST_P(SeparableTest, MatchesTheDefinitionInDouble) {
  expect_definition<double>(GetParam(), 1e-14, 1e-12);
}

TEST_P(SeparableTest, MatchesTheDefinitionInFloat) {
  expect_definition<float>(GetParam(), 3e-6, 2e-5);
}

TEST_P(SeparableTest, BitsDoNotDependOnThreads) {
  SeparableData<float> one(GetParam()), other(GetParam());
  one.run(1);
  for (const int threads : {2, 3}) {
    other.run(threads);
    EXPECT_EQ(one.out, other.out);
    EXPECT_EQ(one.normalizer, other.normalizer);
    EXPECT_EQ(one.grad_query, other.grad_query);
    EXPECT_EQ(one.grad_keys, other.grad_keys);
    EXPECT_EQ(one.grad_values, other.grad_values);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, SeparableTest, ::testing::ValuesIn(separable_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(SeparablePlanTest, MemoryOfATaskGrowsWithTheLengthAndNotWithLengthTimesState) {
  const auto scratch = [](int64_t length, int64_t window) {
    SeparableBackward<float> problem;
    problem.order = 2;
    problem.batch = problem.heads = problem.kv_heads = 8;
    problem.queries = length;
    problem.features = problem.value_dim = 64;
    for (int m = 0; m < 2; ++m) problem.axes[m].visible = {length, 0, window, 0, true};
    return static_cast<double>(plan_separable_backward(problem).scratch_bytes);
  };
  for (const int64_t window : {int64_t{-1}, int64_t{1}, int64_t{300}}) {
    const double growth = scratch(1 << 16, window) - scratch(1 << 15, window);
    const double states = double{1 << 15} * 64 * 80 * 2 * sizeof(float);
    EXPECT_LE(growth, states / 16);
  }
}

TEST(SeparableWindowTest, ASumThatHasLeftTheWindowLeavesNoTrace) {
  // Values of 1e8 in the first keys: a running sum less its old terms would keep their rounding.
  SeparableCase shape{
      .name = "", .queries = 200, .lengths = {200}, .left = {10}, .right = {0}, .causal = true};
  SeparableData<float> loud(shape), quiet(shape);
  for (size_t k = 0; k < 50 * 8; ++k) loud.values[0][k] = 1e8f;
  loud.run();
  quiet.run();
  EXPECT_TRUE(std::equal(loud.out.begin() + 70 * 8, loud.out.end(), quiet.out.begin() + 70 * 8));
}

}  // namespace
}  // namespace nsimplex::kernels::testing
