// Masks that are large numbers and not minus infinity, and rows of large scores: weights and
// gradients as without rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/dense_case.h"
#include "kernels/dense_oracle.h"

namespace nsimplex::kernels::testing {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kNothing = -std::numeric_limits<float>::infinity();

// What a query's mask holds for its tuple number t of n.
using MaskOfTuple = std::function<float(int64_t t, int64_t n)>;

MaskOfTuple everywhere(float value) {
  return [=](int64_t, int64_t) { return value; };
}
MaskOfTuple by_turns(float even, float odd) {
  return [=](int64_t t, int64_t) { return t % 2 == 0 ? even : odd; };
}
MaskOfTuple until_last(float value, float last) {
  return [=](int64_t t, int64_t n) { return t + 1 < n ? value : last; };
}

// One query each.
const std::vector<MaskOfTuple> kRows{
    everywhere(0.0f),
    everywhere(-1e4f),
    everywhere(-1e9f),
    everywhere(kLowest),
    everywhere(-3.3895314e38f),  // of bf16
    everywhere(-65504.0f),       // of fp16
    everywhere(1e9f),
    everywhere(-kLowest),
    by_turns(-1e9f, -2e9f),
    by_turns(-1e9f, 0.0f),
    by_turns(kNothing, -1e9f),
    by_turns(-1e30f, -1e32f),
    by_turns(kLowest, kLowest / 2),
    until_last(kLowest, 0.0f),
    until_last(0.0f, -kLowest),
    until_last(-1e9f, -1e9f + 64.0f),
    until_last(kNothing, kLowest),
    everywhere(kNothing),
    [](int64_t t, int64_t) { return -1e4f - 0.5f * static_cast<float>(t); },
    [](int64_t t, int64_t n) { return 0.25f * static_cast<float>(t - n); },
    [](int64_t t, int64_t n) { return -40.0f * static_cast<float>(n - t); },
};

// A case with a mask whose rows are kRows, the same for every head.
struct MaskedData : DenseData {
  explicit MaskedData(DenseCase shape) : DenseData(with_queries(std::move(shape))) {
    for (const int64_t length : this->shape.lengths) tuples *= length;
    for (const MaskOfTuple& row : kRows) {
      for (int64_t t = 0; t < tuples; ++t) logits.push_back(row(t, tuples));
    }
  }

  static DenseCase with_queries(DenseCase shape) {
    shape.queries = static_cast<int64_t>(kRows.size());
    return shape;
  }

  void add_mask(DenseProblem<float>& problem) const {
    problem.masks = 1;
    TupleMask<float>& mask = problem.mask[0] = {};
    mask.logits = logits.data();
    mask.query_stride = tuples;
    int64_t stride = 1;
    for (int m = problem.order; m-- > 0; stride *= shape.lengths[m]) {
      mask.axis_stride[m] = stride;
    }
  }

  int64_t tuples = 1;
  std::vector<float> logits;
};

// Forward, the states of large rows, and backward, as the operator calls them.
void run_both(const DenseForward<float>& forward, DenseBackward<float> backward) {
  run_forward(forward);
  std::vector<SoftmaxState<float>> states(forward.batch * forward.heads * forward.queries);
  DenseForward<float> measured = forward;
  measured.states = states.data();
  measured.known_lse = forward.lse;
  run_forward(measured);
  backward.states = states.data();
  run_backward(backward);
}

std::vector<float> row_of(const std::vector<float>& all, int64_t row, int64_t width) {
  return {all.begin() + row * width, all.begin() + (row + 1) * width};
}
std::vector<double> row_of(const std::vector<double>& all, int64_t row, int64_t width) {
  return {all.begin() + row * width, all.begin() + (row + 1) * width};
}

void expect_rows_match(const DenseData& data, const DenseOracle& oracle, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row) {
    SCOPED_TRACE("row " + std::to_string(row));
    const int64_t width = data.shape.value_dim, dim = data.shape.dim;
    EXPECT_LE(relative_error(row_of(data.out.values(), row, width), row_of(oracle.out, row, width)),
              2e-5);
    // What is exactly 0 comes out as the rounding of terms that cancel.
    double error = 0;
    for (int64_t c = 0; c < dim; ++c) {
      error = std::max(error, std::abs(data.grad_query.values()[row * dim + c] -
                                       oracle.grad_query[row * dim + c]));
    }
    EXPECT_LE(error, 1e-4);
    const double lse = oracle.lse[row];
    if (std::isinf(lse)) {
      EXPECT_EQ(data.lse[row], static_cast<float>(lse));
    } else {
      EXPECT_LE(std::abs(data.lse[row] - lse), 1e-5 + 1.2e-7 * std::abs(lse));
    }
  }
  for (int m = 0; m < data.shape.order(); ++m) {
    EXPECT_LE(relative_error(data.grad_keys[m].values(), oracle.grad_key[m]), 1e-4);
    EXPECT_LE(relative_error(data.grad_values[m].values(), oracle.grad_value[m]), 1e-4);
  }
}

class DenseMasksTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { take_way(GetParam()); }
  void TearDown() override { take_way(""); }

  static void expect_match(const DenseCase& shape, float sink = 0.0f) {
    MaskedData data(shape);
    std::fill(data.sink.begin(), data.sink.end(), sink);
    DenseForward<float> forward = data.forward();
    DenseBackward<float> backward = data.backward();
    data.add_mask(forward);
    data.add_mask(backward);
    run_both(forward, backward);
    const Rows<const float> grad_out = backward.grad_out;
    const DenseOracle oracle = dense_oracle<float>(forward, &grad_out, backward.grad_lse);
    expect_rows_match(data, oracle, forward.batch * forward.heads * forward.queries);
    for (size_t h = 0; h < oracle.grad_sink.size(); ++h) {
      EXPECT_NEAR(data.grad_sink[h], oracle.grad_sink[h],
                  1e-4 * (1 + std::abs(oracle.grad_sink[h])));
    }
  }
};

TEST_P(DenseMasksTest, LargeMasksOfWholeAndPartialRows) {
  expect_match({.name = "", .heads = 2, .lengths = {70}});
  expect_match({.name = "", .heads = 2, .lengths = {5, 70}});
  expect_match({.name = "", .heads = 2, .lengths = {70, 3}, .reduce = ValueReduce::sum});
  expect_match({.name = "", .lengths = {3, 4, 20}, .reduce = ValueReduce::mean});
  expect_match({.name = "", .dim = 6, .lengths = {4, 33}, .form = Form::determinant});
}

TEST_P(DenseMasksTest, LargeMasksBesideOtherOptions) {
  expect_match({.name = "", .lengths = {9, 70}, .window = {{4, 3}, {40, 20}}});
  expect_match({.name = "", .lengths = {22, 22}, .distinct = Distinct::with_query});
  expect_match({.name = "", .lengths = {30, 60}, .key_masks = true});
  expect_match({.name = "", .lengths = {30, 60}, .dropout = 0.3});
  expect_match({.name = "", .lengths = {70}, .normalizer = Normalizer::sigmoid});
}

TEST_P(DenseMasksTest, SinksAtTheExtremes) {
  for (const float sink : {0.0f, -1e4f, -1e9f, kLowest, 1e4f, 1e9f, -kLowest, kNothing}) {
    SCOPED_TRACE(sink);
    expect_match({.name = "", .heads = 2, .lengths = {40}, .normalizer = Normalizer::softmax_sink},
                 sink);
  }
}

// Few queries and many keys: the keys are cut, and the parts' states merged.
TEST_P(DenseMasksTest, PartsOfARowMerge) {
  expect_match({.name = "", .lengths = {1200}});
  MaskedData data({.name = "", .lengths = {1200}});
  EXPECT_GT(plan_dense_forward(data.forward()).splits, 1);
}

// Without a mask the scores alone may leave lse no digit for the logarithm of a sum.
TEST_P(DenseMasksTest, EqualScoresOfAnySizeWeighAlike) {
  for (const float size : {1e2f, 1e4f, 1e9f, 1e12f, -1e9f}) {
    SCOPED_TRACE(size);
    DenseData data({.name = "", .queries = 40, .dim = 1, .lengths = {4, 70}, .logit_scale = 1.0});
    const auto fill = [](Array& array, float value) {
      for (int64_t row = 0; row < array.rows; ++row) array.at(0, 0, row, 0) = value;
    };
    fill(data.query, size);
    for (Array& key : data.keys) fill(key, 1.0f);
    const DenseBackward<float> backward = data.backward();
    run_both(data.forward(), backward);
    const Rows<const float> grad_out = backward.grad_out;
    const DenseOracle oracle = dense_oracle<float>(data.forward(), &grad_out, backward.grad_lse);
    EXPECT_LE(relative_error(data.out.values(), oracle.out), 2e-6);
    for (int m = 0; m < 2; ++m) {
      EXPECT_LE(relative_error(data.grad_values[m].values(), oracle.grad_value[m]), 2e-5);
    }
  }
}

// The backward of some of a row's tuples is given the lse of all of them.
TEST_P(DenseMasksTest, AnLseOfMoreTuplesScalesTheGradients) {
  MaskedData data({.name = "", .lengths = {70}}), whole({.name = "", .lengths = {70}});
  DenseForward<float> forward = data.forward();
  DenseBackward<float> backward = data.backward(), own = whole.backward();
  data.add_mask(forward);
  data.add_mask(backward);
  DenseForward<float> whole_forward = whole.forward();
  whole.add_mask(whole_forward);
  whole.add_mask(own);
  backward.grad_lse = own.grad_lse = nullptr;
  run_both(whole_forward, own);
  run_forward(forward);
  std::vector<SoftmaxState<float>> states(kRows.size());
  DenseForward<float> measured = forward;
  measured.states = states.data();
  measured.known_lse = forward.lse;
  run_forward(measured);
  backward.states = states.data();
  std::vector<float> lse = data.lse;
  for (float& each : lse) each += std::log(2.0f);
  backward.lse = lse.data();
  run_backward(backward);
  // The second is of -1e4, where fp32 has the logarithm of 2 to 5e-4.
  for (const int64_t row : {0, 1}) {
    for (int64_t c = 0; c < 8; ++c) {
      EXPECT_NEAR(data.grad_query.at(0, 0, row, c), 0.5 * whole.grad_query.at(0, 0, row, c), 1e-3);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, DenseMasksTest, ::testing::ValuesIn(kernel_ways()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace nsimplex::kernels::testing
