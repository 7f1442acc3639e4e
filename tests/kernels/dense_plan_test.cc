// What a plan promises: every mask is an interval, memory is O(T), and bits depend neither on the
// order of tasks nor on the number of threads.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>

#include "kernels/dense_case.h"

namespace nsimplex::kernels::testing {
namespace {

// Random masks of one axis, small enough to count by hand.
Visibility random_visibility(int64_t queries) {
  Visibility visible;
  visible.length = *rc::gen::inRange<int64_t>(0, 9);
  visible.offset = visible.length - queries;
  visible.left = *rc::gen::element<int64_t>(-1, 1, 2, 5, 20);
  visible.right = *rc::gen::element<int64_t>(-1, 0, 1, 4, 20);
  visible.causal = *rc::gen::arbitrary<bool>();
  return visible;
}

TEST(Visibility, QueriesAreThoseThatSeeAKey) {
  const bool passed = rc::check([] {
    const int64_t queries = *rc::gen::inRange<int64_t>(0, 12);
    Visibility visible = random_visibility(queries);
    const int64_t valid = *rc::gen::inRange<int64_t>(0, 9);
    if (*rc::gen::arbitrary<bool>()) visible.lengths = &valid;
    const Range seeing = visible.queries(0, queries);
    for (int64_t query = 0; query < queries; ++query) {
      const bool inside = query >= seeing.begin && query < seeing.end;
      RC_ASSERT(inside == (visible.of(0, query).size() > 0));
    }
  });
  EXPECT_TRUE(passed);
}

TEST(Visibility, VisibleKeysAreTheUnionOverQueries) {
  const bool passed = rc::check([] {
    const int64_t queries = *rc::gen::inRange<int64_t>(1, 12);
    const Visibility visible = random_visibility(queries);
    const Range seeing = visible.queries(0, queries);
    const Range keys = visible_keys(visible, 0, seeing.size() > 0 ? seeing : Range{0, 0});
    for (int64_t key = 0; key < visible.length; ++key) {
      bool seen = false;
      for (int64_t query = 0; query < queries; ++query) {
        const Range range = visible.of(0, query);
        seen |= key >= range.begin && key < range.end;
      }
      RC_ASSERT(seen == (key >= keys.begin && key < keys.end));
    }
  });
  EXPECT_TRUE(passed);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

class DensePlanTest : public ::testing::TestWithParam<DenseCase> {};

TEST_P(DensePlanTest, SameBitsForAnyOrderOfTasksAndAnyThreads) {
  DenseData expected(GetParam());
  run_forward(expected.forward());
  run_backward(expected.backward());
  for (const Drive drive : {Drive{1, true}, Drive{2}, Drive{3}, Drive{5, true}}) {
    DenseData data(GetParam());
    run_forward(data.forward(), drive);
    run_backward(data.backward(), drive);
    EXPECT_TRUE(same_bits(data.out.values(), expected.out.values()));
    EXPECT_TRUE(same_bits(data.lse, expected.lse));
    EXPECT_TRUE(same_bits(data.grad_query.values(), expected.grad_query.values()));
    EXPECT_TRUE(same_bits(data.grad_sink, expected.grad_sink));
    for (int m = 0; m < data.shape.order(); ++m) {
      EXPECT_TRUE(same_bits(data.grad_keys[m].values(), expected.grad_keys[m].values()));
      EXPECT_TRUE(same_bits(data.grad_values[m].values(), expected.grad_values[m].values()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DensePlanTest, ::testing::ValuesIn(dense_cases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Options, DensePlanTest, ::testing::ValuesIn(option_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(DensePlan, MemoryGrowsLinearlyAndTheInnerAxisHasTheLongestWindow) {
  for (const int64_t length : {2048, 4096, 8192}) {
    DenseData data({.name = "",
                    .queries = length,
                    .dim = 16,
                    .value_dim = 16,
                    .lengths = {length, length},
                    .window = {{512, 0}, {32, 0}},
                    .causal = true});
    const DensePlan forward = plan_dense_forward(data.forward());
    const DensePlan backward = plan_dense_backward(data.backward());
    EXPECT_EQ(forward.inner_axis, 0);
    EXPECT_EQ(backward.inner_axis, 0);
    const size_t inputs = static_cast<size_t>(length) * 4 * 16 * sizeof(float);
    EXPECT_LE(forward.workspace_bytes, inputs + 4096);
    // Packed inputs, the inner axis twice, and at most four private rows a key.
    EXPECT_LE(backward.workspace_bytes, inputs * 3 / 2 + 4 * inputs + 4096);
    EXPECT_GE(backward.tasks[1], 2);
  }
}

TEST(DensePlan, FewQueriesAgainstManyKeysAreCutAlongTheKeys) {
  DenseData data({.name = "", .heads = 4, .kv_heads = 2, .lengths = {4096}});
  const DensePlan plan = plan_dense_forward(data.forward());
  EXPECT_EQ(plan.splits, 16);
  EXPECT_EQ(plan.tasks[0], 2 * 16);
  EXPECT_EQ(plan.tasks[1], 2);
}

TEST(DensePlan, ProblemsWithoutOutputHaveNoTasks) {
  DenseData data({.name = "", .queries = 0, .lengths = {3}});
  const DensePlan plan = plan_dense_forward(data.forward());
  for (int phase = 0; phase < plan.phases; ++phase) EXPECT_EQ(plan.tasks[phase], 0);
}

TEST(DensePlan, WithoutQueriesGradientsAreZero) {
  DenseData data({.name = "", .kv_heads = 1, .queries = 0, .lengths = {3, 700}});
  run_backward(data.backward());
  for (int m = 0; m < 2; ++m) {
    for (const float value : data.grad_keys[m].values()) EXPECT_EQ(value, 0.0f);
    for (const float value : data.grad_values[m].values()) EXPECT_EQ(value, 0.0f);
  }
}

TEST(DensePlan, RefusesWhatTheKernelCannotCompute) {
  DenseData data({.name = "", .lengths = {3}});
  DenseForward<float> problem = data.forward();
  EXPECT_TRUE(dense_supported(problem));
  problem.order = kMaxOrder + 1;
  EXPECT_FALSE(dense_supported(problem));
  problem.order = 1;
  problem.heads = 3;
  problem.kv_heads = 2;
  EXPECT_FALSE(dense_supported(problem));
}

}  // namespace
}  // namespace nsimplex::kernels::testing
