#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "kernels/cpu/shared/simd.h"
#include "kernels/separable_case.h"

namespace nsimplex::kernels::testing {
namespace {

const std::vector<SeparableCase>& separable_cases() {
  static const std::vector<SeparableCase> cases = {
      {.name = "one_token", .lengths = {1}, .causal = true},
      {.name = "linear_attention",
       .batch = 2,
       .heads = 2,
       .kv_heads = 2,
       .queries = 100,
       .features = 12,
       .value_dim = 20,
       .lengths = {100},
       .causal = true},
      {.name = "two_axes",
       .heads = 2,
       .kv_heads = 1,
       .queries = 97,
       .features = 19,
       .value_dim = 33,
       .lengths = {97, 97},
       .causal = true},
      {.name = "three_axes",
       .batch = 3,
       .heads = 4,
       .kv_heads = 4,
       .queries = 40,
       .features = 8,
       .value_dim = 7,
       .lengths = {40, 40, 40},
       .causal = true},
      {.name = "four_axes",
       .queries = 33,
       .features = 3,
       .value_dim = 2,
       .lengths = {33, 33, 33, 33},
       .causal = true},
      {.name = "wide",
       .queries = 35,
       .features = 40,
       .value_dim = 64,
       .lengths = {35, 35},
       .causal = true},
      {.name = "unmasked", .heads = 2, .kv_heads = 2, .queries = 50, .lengths = {70, 130}},
      {.name = "longer_axes", .queries = 30, .lengths = {100, 30}, .causal = true},
      {.name = "shorter_axes", .queries = 70, .lengths = {40, 70}, .causal = true},
      {.name = "no_keys", .queries = 5, .lengths = {0, 5}, .causal = true},
      {.name = "no_queries", .queries = 0, .lengths = {3}},
      {.name = "windows",
       .heads = 2,
       .kv_heads = 2,
       .queries = 300,
       .features = 9,
       .value_dim = 17,
       .lengths = {300, 300},
       .left = {5, 130},
       .right = {0, 0},
       .causal = true},
      {.name = "window_of_one",
       .queries = 60,
       .lengths = {60, 60},
       .left = {1, -1},
       .right = {0, 0},
       .causal = true},
      {.name = "both_sides",
       .queries = 260,
       .lengths = {260, 200},
       .left = {70, 100},
       .right = {3, 90}},
      {.name = "left_only", .queries = 90, .lengths = {200}, .left = {20}, .right = {-1}},
      {.name = "right_only", .queries = 90, .lengths = {90}, .left = {-1}, .right = {20}},
      {.name = "decode",
       .heads = 4,
       .kv_heads = 2,
       .queries = 1,
       .lengths = {200, 90},
       .left = {64, -1},
       .right = {-1, -1},
       .causal = true},
      {.name = "silent", .queries = 4, .lengths = {4}, .causal = true, .silent_query = true},
      // One axis that only gathers: chunks of 16 queries as matrix products.
      {.name = "linear_groups",
       .batch = 2,
       .heads = 6,
       .kv_heads = 2,
       .queries = 75,
       .features = 20,
       .value_dim = 16,
       .lengths = {75},
       .causal = true,
       .silent_query = true},
      {.name = "linear_slices",
       .queries = 64,
       .features = 64,
       .value_dim = 48,
       .lengths = {64},
       .causal = true,
       .grad_normalizer = false},
      {.name = "linear_wide",
       .heads = 5,
       .kv_heads = 5,
       .queries = 33,
       .features = 70,
       .value_dim = 130,
       .lengths = {33},
       .causal = true},
      {.name = "linear_unmasked", .heads = 2, .kv_heads = 2, .queries = 70, .lengths = {100}},
      {.name = "linear_longer", .queries = 40, .lengths = {133}, .causal = true},
      {.name = "linear_shorter", .heads = 2, .queries = 130, .lengths = {40}, .causal = true},
      {.name = "linear_right",
       .queries = 90,
       .features = 17,
       .lengths = {100},
       .left = {-1},
       .right = {20}},
      {.name = "linear_decode", .heads = 4, .kv_heads = 2, .lengths = {200}, .causal = true},
      {.name = "linear_no_keys", .queries = 5, .lengths = {0}},
      {.name = "linear_no_queries", .queries = 0, .lengths = {40}, .causal = true},
  };
  return cases;
}

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

TEST(SeparablePlanTest, MemoryOfLinearAttentionDoesNotGrowWithTheLength) {
  const auto scratch = [](int64_t length) {
    SeparableBackward<float> problem;
    problem.batch = problem.heads = problem.kv_heads = 8;
    problem.queries = length;
    problem.features = problem.value_dim = 64;
    problem.axes[0].visible = {length, 0, -1, -1, true};
    return plan_separable_backward(problem).scratch_bytes;
  };
  EXPECT_EQ(scratch(100), scratch(1 << 16));
}

TEST(SeparableNormalizerTest, DividesByTheSmallestAndTheLargest) {
  // den is 1e-39 and 1e38, one over which is infinite and subnormal in fp32.
  for (const auto& [query, key] : {std::pair{1e-20f, 1.25e-20f}, {1e19f, 1.25e18f}}) {
    SeparableData<float> data({.name = "", .lengths = {1}});
    std::fill(data.query.begin(), data.query.end(), query);
    std::fill(data.keys[0].begin(), data.keys[0].end(), key);
    for (float& each : data.values[0]) each = each > 0 ? 1.5f : -0.75f;
    data.run();
    for (size_t c = 0; c < data.out.size(); ++c) {
      EXPECT_NEAR(data.out[c], data.values[0][c], 1e-5);
    }
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
