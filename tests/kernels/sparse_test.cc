// The sparse kernels against the dense one under the mask of the same tuples, on every SIMD level,
// with tasks in any order on several threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "kernels/common/sparse_problem.h"
#include "kernels/cpu/shared/simd.h"
#include "kernels/cpu/sparse_attention/sparse_attention.h"
#include "kernels/dense_case.h"
#include "kernels/drive.h"

namespace nsimplex::kernels::testing {
namespace {

// Lists for a case, owned, and the mask [batch, heads, queries, axes..] of their tuples.
struct Lists {
  std::vector<int64_t> indices, offsets;
  TupleLists view;
  std::unique_ptr<bool[]> mask;

  Lists(const DenseCase& shape, ListPattern pattern, int64_t groups, int64_t size, unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](int64_t bound) { return static_cast<int64_t>(random() % bound); };
    const int64_t numbers = shape.batch * groups;
    view = {.pattern = pattern, .entries = shape.batch, .groups = groups};
    if (pattern == ListPattern::list) {
      view.size = shape.order();
      for (int64_t number = 0; number < numbers; ++number) {
        offsets.push_back(static_cast<int64_t>(indices.size()) / view.size);
        for (int64_t i = 0; i < shape.queries; ++i) {
          add_tuples(shape, i == 1 ? 0 : size, below);
          offsets.push_back(static_cast<int64_t>(indices.size()) / view.size);
        }
      }
      view.offsets = offsets.data();
    } else {
      view.size = size;
      view.rows = pattern == ListPattern::path ? shape.lengths[0] : shape.queries;
      const int64_t length = *std::min_element(shape.lengths.begin(), shape.lengths.end());
      for (int64_t set = 0; set < numbers * view.rows; ++set) add_set(length, size, below);
    }
    view.indices = indices.data();
    make_mask(shape);
  }

 private:
  // Distinct tuples: a mask cannot count one twice. Runs of several last keys among them.
  template <class Below>
  void add_tuples(const DenseCase& shape, int64_t count, Below&& below) {
    std::vector<std::vector<int64_t>> tuples;
    for (int64_t t = 0; t < count; ++t) {
      std::vector<int64_t> tuple =
          tuples.empty() || below(2) ? std::vector<int64_t>(shape.order()) : tuples.back();
      const size_t first = tuples.empty() || below(2) ? 0 : tuple.size() - 1;
      for (size_t m = first; m < tuple.size(); ++m) tuple[m] = below(shape.lengths[m]);
      if (std::find(tuples.begin(), tuples.end(), tuple) != tuples.end()) continue;
      tuples.push_back(tuple);
      indices.insert(indices.end(), tuple.begin(), tuple.end());
    }
  }

  template <class Below>
  void add_set(int64_t length, int64_t size, Below&& below) {
    std::vector<int64_t> keys;
    for (int64_t i = below(size + 1); i > 0; --i) {
      const int64_t key = below(length);
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
    keys.resize(size, -1);
    indices.insert(indices.end(), keys.begin(), keys.end());
  }

  void make_mask(const DenseCase& shape) {
    int64_t tuples = 1;
    for (const int64_t length : shape.lengths) tuples *= length;
    const int64_t rows = shape.batch * shape.heads * shape.queries;
    mask = std::make_unique<bool[]>(rows * tuples);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t batch = row / shape.queries / shape.heads;
      const int64_t head = row / shape.queries % shape.heads / (shape.heads / shape.kv_heads);
      const auto admit = [&](const TupleRun& run) {
        int64_t place = row;
        for (int m = 0; m + 1 < shape.order(); ++m)
          place = place * shape.lengths[m] + run.leading[m];
        for (int64_t i = 0; i < run.count; ++i)
          mask[place * shape.lengths.back() + run.last[i * run.stride]] = true;
      };
      for_each_run(view, shape.order(), view.number(batch, head, shape.kv_heads), shape.queries,
                   row % shape.queries, admit);
    }
  }
};

void set_mask(DenseProblem<float>& problem, const Lists& lists) {
  problem.masks = 1;
  TupleMask<float>& mask = problem.mask[0];
  mask.admissible = lists.mask.get();
  int64_t stride = 1;
  for (int m = problem.order - 1; m >= 0; --m) {
    mask.axis_stride[m] = stride;
    stride *= problem.axes[m].visible.length;
  }
  mask.query_stride = stride;
  mask.head_stride = stride * problem.queries;
  mask.batch_stride = stride * problem.queries * problem.heads;
}

void run_sparse(DenseData& data, const Lists& lists, Drive drive) {
  const SparseForward<float> forward{data.forward(), lists.view};
  const DensePlan plan = plan_sparse_forward(forward);
  drive_plan(plan, drive, [&](int phase, int64_t task, void* workspace, void* scratch) {
    run_sparse_forward(forward, plan, phase, task, workspace, scratch);
  });
  const SparseBackward<float> backward{data.backward(), lists.view};
  const DensePlan back = plan_sparse_backward(backward);
  drive_plan(back, drive, [&](int phase, int64_t task, void* workspace, void* scratch) {
    run_sparse_backward(backward, back, phase, task, workspace, scratch);
  });
}

void run_masked(DenseData& data, const Lists& lists) {
  DenseForward<float> forward = data.forward();
  set_mask(forward, lists);
  run_forward(forward);
  DenseBackward<float> backward = data.backward();
  set_mask(backward, lists);
  run_backward(backward);
}

std::vector<double> wide(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

struct SparseCase {
  DenseCase shape;
  ListPattern pattern;
  int64_t groups, size;
};

std::vector<SparseCase> sparse_cases() {
  using enum ListPattern;
  const DenseCase pair{.batch = 2,
                       .heads = 4,
                       .kv_heads = 2,
                       .queries = 9,
                       .dim = 20,
                       .value_dim = 12,
                       .lengths = {17, 17}};
  const auto with = [&](const char* name, auto&& change) {
    DenseCase shape = pair;
    shape.name = name;
    change(shape);
    return shape;
  };
  const auto single = [](DenseCase& s) { s.lengths = {40}; };
  const auto triple = [](DenseCase& s) { s.lengths = {9, 9, 9}; };
  const auto uneven = [](DenseCase& s) { s.lengths = {31, 7}; };
  const auto sum = [](DenseCase& s) { s.reduce = ValueReduce::sum; };
  const auto mean3 = [](DenseCase& s) { s.lengths = {9, 9, 9}, s.reduce = ValueReduce::mean; };
  const auto determinant = [](DenseCase& s) { s.dim = 21, s.form = Form::determinant; };
  const auto strided = [](DenseCase& s) { s.strided = true; };
  const auto large = [](DenseCase& s) { s.lengths = {150, 150}, s.heads = s.kv_heads = 1; };
  return {{with("list", [](DenseCase&) {}), list, 1, 30},
          {with("list_order1", single), list, 2, 70},
          {with("list_order3", triple), list, 2, 40},
          {with("list_uneven_determinant", [&](DenseCase& s) { determinant(s), uneven(s); }), list,
           1, 20},
          {with("list_sum", sum), list, 1, 30},
          {with("product", [](DenseCase&) {}), product, 2, 11},
          {with("product_order1", single), product, 1, 36},
          {with("product_order1_groups", [&](DenseCase& s) { single(s), s.heads = 16; }), product,
           1, 36},
          {with("product_order3", triple), product, 1, 5},
          {with("product_uneven", uneven), product, 1, 6},
          {with("product_sum_strided", [&](DenseCase& s) { sum(s), strided(s); }), product, 2, 9},
          {with("product_determinant", determinant), product, 1, 12},
          {with("product_large", large), product, 1, 131},
          {with("product_one_key", [](DenseCase&) {}), product, 1, 1},
          {with("path", [](DenseCase&) {}), path, 2, 6},
          {with("path_order1", single), path, 1, 34},
          {with("path_mean_order3", mean3), path, 1, 3},
          {with("path_determinant", determinant), path, 1, 5}};
}

class SparseTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(""); }
};

TEST_P(SparseTest, EqualsDenseUnderTheSameMask) {
  for (const SparseCase& each : sparse_cases()) {
    SCOPED_TRACE(each.shape.name);
    const Lists lists(each.shape, each.pattern, each.groups, each.size, 3);
    DenseData expected(each.shape), data(each.shape);
    run_masked(expected, lists);
    run_sparse(data, lists, {.threads = 2, .reversed = true});
    const auto near = [&](const char* name, const Array& value, const Array& exact, double gate) {
      EXPECT_LE(relative_error(value.values(), wide(exact.values())), gate) << name;
      EXPECT_TRUE(value.outside_untouched()) << name;
    };
    near("out", data.out, expected.out, 2e-6);
    for (size_t i = 0; i < data.lse.size(); ++i) {
      if (data.lse[i] == expected.lse[i]) continue;  // both minus infinity, for one
      EXPECT_NEAR(data.lse[i], expected.lse[i], 4e-6) << i;
    }
    near("grad_query", data.grad_query, expected.grad_query, 2e-5);
    for (int m = 0; m < each.shape.order(); ++m) {
      near("grad_key", data.grad_keys[m], expected.grad_keys[m], 2e-5);
      near("grad_value", data.grad_values[m], expected.grad_values[m], 2e-5);
    }
  }
}

TEST_P(SparseTest, BitsDoNotDependOnThreadsOrOrderOfTasks) {
  for (const SparseCase& each : sparse_cases()) {
    SCOPED_TRACE(each.shape.name);
    const Lists lists(each.shape, each.pattern, each.groups, each.size, 4);
    DenseData first(each.shape), second(each.shape);
    run_sparse(first, lists, {});
    run_sparse(second, lists, {.threads = 3, .reversed = true});
    EXPECT_EQ(first.out.values(), second.out.values());
    EXPECT_EQ(first.lse, second.lse);
    EXPECT_EQ(first.grad_query.values(), second.grad_query.values());
    for (int m = 0; m < each.shape.order(); ++m) {
      EXPECT_EQ(first.grad_keys[m].values(), second.grad_keys[m].values());
      EXPECT_EQ(first.grad_values[m].values(), second.grad_values[m].values());
    }
  }
}

TEST(SparsePlan, BackwardMemoryGrowsWithTheKeysAndNotWithTheTuples) {
  const auto bytes = [](int64_t length, int64_t size, int64_t heads) {
    const DenseCase shape{
        .heads = heads, .kv_heads = heads, .queries = 64, .lengths = {length, length}};
    DenseData data(shape);
    const std::vector<int64_t> indices(64 * size * heads, 0);
    const SparseBackward<float> problem{
        data.backward(),
        {.pattern = ListPattern::product, .indices = indices.data(), .rows = 64, .size = size}};
    return static_cast<double>(plan_sparse_backward(problem).workspace_bytes);
  };
  EXPECT_NEAR(bytes(4096, 32, 1) / bytes(1024, 32, 1), 4.0, 0.2);
  EXPECT_EQ(bytes(1024, 64, 1), bytes(1024, 8, 1));
  // A head has at most 8 segments, each with rows of 16 channels for every key and value.
  EXPECT_LE(bytes(4096, 32, 1), 8.0 * 4 * (4096 + 72) * 16 * sizeof(float));
  EXPECT_LE(bytes(4096, 32, 64), 64.0 * 4 * (4096 + 72) * 16 * sizeof(float));
}

INSTANTIATE_TEST_SUITE_P(Levels, SparseTest, ::testing::ValuesIn(simd_levels()));

}  // namespace
}  // namespace nsimplex::kernels::testing
