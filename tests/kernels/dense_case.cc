#include "kernels/dense_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "kernels/cpu/shared/simd.h"
#include "kernels/dense_oracle.h"

namespace nsimplex::kernels::testing {
namespace {

constexpr float kSentinel = 1.0e30f;

Array random_array(std::mt19937& generator, int64_t batch, int64_t heads, int64_t rows,
                   int64_t channels, bool strided, float spread) {
  Array array(batch, heads, rows, channels, strided, std::numeric_limits<float>::quiet_NaN());
  std::normal_distribution<float> normal(0.0f, spread);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < channels; ++c) array.at(b, h, r, c) = normal(generator);
  return array;
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const DenseCase& value) {
  return stream << value.name;
}

Array::Array(int64_t batch, int64_t heads, int64_t rows, int64_t channels, bool strided, float fill)
    : batch(batch), heads(heads), rows(rows), channels(channels), fill_(fill) {
  if (strided) {  // rows of all heads side by side, nothing aligned
    head_stride_ = channels + 3;
    row_stride_ = heads * head_stride_ + 1;
    batch_stride_ = rows * row_stride_ + 5;
  } else {
    row_stride_ = channels;
    head_stride_ = rows * row_stride_;
    batch_stride_ = heads * head_stride_;
  }
  start_ = 7;  // not aligned to a vector
  data_.assign(start_ + batch * batch_stride_ + 16, fill);
}

int64_t Array::offset(int64_t b, int64_t h, int64_t r, int64_t c) const {
  return start_ + b * batch_stride_ + h * head_stride_ + r * row_stride_ + c;
}
Rows<float> Array::view() {
  return {data_.data() + start_, batch_stride_, head_stride_, row_stride_};
}
Rows<const float> Array::view() const {
  return {data_.data() + start_, batch_stride_, head_stride_, row_stride_};
}
float& Array::at(int64_t b, int64_t h, int64_t r, int64_t c) { return data_[offset(b, h, r, c)]; }
float Array::at(int64_t b, int64_t h, int64_t r, int64_t c) const {
  return data_[offset(b, h, r, c)];
}

std::vector<bool> Array::inside() const {
  std::vector<bool> inside(data_.size(), false);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < channels; ++c) inside[offset(b, h, r, c)] = true;
  return inside;
}

std::vector<float> Array::values() const {
  std::vector<float> values;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < channels; ++c) values.push_back(at(b, h, r, c));
  return values;
}

bool Array::outside_untouched() const {
  const std::vector<bool> mine = inside();
  for (size_t i = 0; i < data_.size(); ++i) {
    if (!mine[i] && std::memcmp(&data_[i], &fill_, sizeof(float)) != 0) return false;
  }
  return true;
}

DenseData::DenseData(const DenseCase& shape, unsigned seed) : shape(shape) {
  std::mt19937 generator(seed);
  const auto& s = shape;
  query = random_array(generator, s.batch, s.heads, s.queries, s.dim, s.strided, s.key_spread);
  grad_out = random_array(generator, s.batch, s.heads, s.queries, s.value_dim, s.strided, 1.0f);
  out = Array(s.batch, s.heads, s.queries, s.value_dim, s.strided, kSentinel);
  grad_query = Array(s.batch, s.heads, s.queries, s.dim, s.strided, kSentinel);
  for (const int64_t length : s.lengths) {
    keys.push_back(
        random_array(generator, s.batch, s.kv_heads, length, s.dim, s.strided, s.key_spread));
    values.push_back(
        random_array(generator, s.batch, s.kv_heads, length, s.value_dim, s.strided, 1.0f));
    grad_keys.emplace_back(s.batch, s.kv_heads, length, s.dim, s.strided, kSentinel);
    grad_values.emplace_back(s.batch, s.kv_heads, length, s.value_dim, s.strided, kSentinel);
  }
  lse.assign(s.batch * s.heads * s.queries, kSentinel);
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < lse.size(); ++i) grad_lse.push_back(normal(generator));
  make_options(seed);
}

void DenseData::fill(DenseProblem<float>& problem) const {
  problem.order = shape.order();
  problem.reduce = shape.reduce;
  problem.batch = shape.batch;
  problem.heads = shape.heads;
  problem.kv_heads = shape.kv_heads;
  problem.queries = shape.queries;
  problem.dim = shape.dim;
  problem.value_dim = shape.value_dim;
  problem.logit_scale = shape.logit_scale;
  problem.output_scale = shape.output_scale;
  problem.softcap = shape.softcap;
  problem.query = query.view();
  for (int m = 0; m < problem.order; ++m) {
    DenseAxis<float>& axis = problem.axes[m];
    axis.key = keys[m].view();
    axis.value = values[m].view();
    axis.visible.length = shape.lengths[m];
    axis.visible.offset = shape.lengths[m] - shape.queries;
    axis.visible.causal = shape.causal;
    if (!shape.window.empty()) {
      axis.visible.left = shape.window[m].left;
      axis.visible.right = shape.window[m].right;
    }
    if (!shape.key_lengths.empty() && !shape.key_lengths[m].empty()) {
      axis.visible.lengths = shape.key_lengths[m].data();
    }
  }
  fill_options(problem);
}

DenseForward<float> DenseData::forward() {
  DenseForward<float> problem;
  fill(problem);
  problem.out = out.view();
  problem.lse = lse.data();
  return problem;
}

DenseBackward<float> DenseData::backward(bool with_grad_lse) {
  DenseBackward<float> problem;
  fill(problem);
  problem.out = std::as_const(out).view();
  problem.grad_out = std::as_const(grad_out).view();
  problem.lse = lse.data();
  problem.grad_lse = with_grad_lse ? grad_lse.data() : nullptr;
  problem.grad_query = grad_query.view();
  for (int m = 0; m < shape.order(); ++m) {
    problem.grad_key[m] = grad_keys[m].view();
    problem.grad_value[m] = grad_values[m].view();
  }
  if (!grad_sink.empty()) problem.grad_sink = grad_sink.data();
  grad_masks.clear();
  for (int k = 0; k < problem.masks; ++k) {
    if (!problem.mask[k].logits) continue;
    TupleGradient<float>& gradient = problem.grad_mask[problem.mask_gradients++];
    const int64_t count = place_gradient<float>(problem, problem.mask[k], gradient);
    gradient.sum = grad_masks.emplace_back(static_cast<size_t>(count), 0.0f).data();
  }
  return problem;
}

template <class T>
void run_forward(const DenseForward<T>& problem, Drive drive) {
  const DensePlan plan = plan_dense_forward(problem);
  drive_plan(plan, drive, [&](int phase, int64_t task, void* workspace, void* scratch) {
    run_dense_forward(problem, plan, phase, task, workspace, scratch);
  });
}

template <class T>
void run_backward(const DenseBackward<T>& problem, Drive drive) {
  const DensePlan plan = plan_dense_backward(problem);
  drive_plan(plan, drive, [&](int phase, int64_t task, void* workspace, void* scratch) {
    run_dense_backward(problem, plan, phase, task, workspace, scratch);
  });
}

template void run_forward(const DenseForward<double>&, Drive);
template void run_forward(const DenseForward<float>&, Drive);
template void run_forward(const DenseForward<Bf16>&, Drive);
template void run_forward(const DenseForward<Fp16>&, Drive);
template void run_backward(const DenseBackward<double>&, Drive);
template void run_backward(const DenseBackward<float>&, Drive);
template void run_backward(const DenseBackward<Bf16>&, Drive);
template void run_backward(const DenseBackward<Fp16>&, Drive);

double relative_error(const std::vector<float>& value, const std::vector<double>& expected) {
  if (value.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double error = 0.0, norm = 0.0;
  for (size_t i = 0; i < value.size(); ++i) {
    error += (value[i] - expected[i]) * (value[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(norm > 0.0 ? error / norm : error);
}

std::vector<DenseCase> dense_cases() {
  using enum ValueReduce;
  return {
      {.name = "one_key", .lengths = {1}},
      {.name = "one_pair", .lengths = {1, 1}},
      {.name = "order1_full", .queries = 40, .dim = 16, .value_dim = 16, .lengths = {70}},
      {.name = "order1_causal_gqa",
       .batch = 2,
       .heads = 6,
       .kv_heads = 2,
       .queries = 67,
       .dim = 32,
       .value_dim = 32,
       .lengths = {67},
       .causal = true},
      {.name = "order1_long_split",
       .queries = 700,
       .dim = 5,
       .value_dim = 3,
       .lengths = {650},
       .causal = true},
      {.name = "order1_window",
       .heads = 2,
       .kv_heads = 1,
       .queries = 300,
       .dim = 20,
       .value_dim = 100,
       .lengths = {600},
       .window = {{37, 9}}},
      {.name = "order2_causal_windows",
       .queries = 150,
       .dim = 64,
       .value_dim = 64,
       .lengths = {150, 150},
       .window = {{5, 0}, {70, 0}},
       .causal = true},
      {.name = "order2_first_axis_inner",
       .heads = 2,
       .kv_heads = 2,
       .queries = 90,
       .dim = 17,
       .value_dim = 33,
       .lengths = {90, 90},
       .window = {{40, 0}, {3, 0}},
       .causal = true},
      {.name = "order2_split_gqa_strided",
       .batch = 2,
       .heads = 4,
       .kv_heads = 2,
       .queries = 290,
       .dim = 24,
       .value_dim = 40,
       .lengths = {290, 290},
       .window = {{3, 0}, {20, 0}},
       .causal = true,
       .strided = true},
      {.name = "order2_two_sided",
       .queries = 45,
       .dim = 1,
       .value_dim = 1,
       .lengths = {50, 40},
       .window = {{6, 4}, {10, 12}}},
      {.name = "order2_full_sum",
       .heads = 2,
       .kv_heads = 1,
       .queries = 13,
       .dim = 16,
       .value_dim = 48,
       .lengths = {9, 45},
       .reduce = sum},
      {.name = "order2_window_mean",
       .queries = 80,
       .dim = 12,
       .value_dim = 10,
       .lengths = {80, 80},
       .window = {{33, 0}, {64, 0}},
       .causal = true,
       .reduce = mean},
      {.name = "order2_key_lengths",
       .batch = 3,
       .heads = 2,
       .kv_heads = 1,
       .queries = 37,
       .dim = 16,
       .value_dim = 16,
       .lengths = {37, 60},
       .causal = true,
       .key_lengths = {{37, 5, 0}, {60, 31, 33}}},
      {.name = "order2_cross_lengths",
       .queries = 21,
       .dim = 9,
       .value_dim = 7,
       .lengths = {11, 130},
       .strided = true},
      {.name = "order2_more_queries_than_keys",
       .queries = 50,
       .dim = 8,
       .value_dim = 8,
       .lengths = {20, 33},
       .causal = true},
      {.name = "order3_windows",
       .queries = 60,
       .dim = 32,
       .value_dim = 32,
       .lengths = {60, 60, 60},
       .window = {{3, 0}, {4, 0}, {33, 0}},
       .causal = true},
      {.name = "order3_middle_inner_gqa",
       .batch = 2,
       .heads = 3,
       .kv_heads = 1,
       .queries = 20,
       .dim = 10,
       .value_dim = 18,
       .lengths = {4, 34, 5},
       .strided = true},
      {.name = "order3_sum",
       .queries = 30,
       .dim = 16,
       .value_dim = 16,
       .lengths = {30, 30, 30},
       .window = {{2, 0}, {3, 2}, {31, 1}},
       .reduce = sum},
      {.name = "order4",
       .queries = 18,
       .dim = 8,
       .value_dim = 8,
       .lengths = {18, 18, 18, 18},
       .window = {{2, 0}, {3, 0}, {2, 1}, {12, 0}}},
      {.name = "order4_mean",
       .queries = 12,
       .dim = 5,
       .value_dim = 6,
       .lengths = {3, 4, 2, 15},
       .reduce = mean},
      {.name = "empty_axis", .queries = 5, .lengths = {4, 0}},
      {.name = "causal_without_keys", .queries = 12, .lengths = {3, 5}, .causal = true},
      {.name = "window_beside_the_keys",
       .batch = 2,
       .queries = 40,
       .lengths = {40, 40},
       .window = {{1, 0}, {4, 0}},
       .key_lengths = {{7, 40}, {40, 0}}},
      {.name = "decode_split",
       .batch = 2,
       .heads = 4,
       .kv_heads = 2,
       .queries = 1,
       .dim = 20,
       .value_dim = 12,
       .lengths = {1200},
       .key_lengths = {{1200, 301}}},
      {.name = "decode_split_order2",
       .heads = 2,
       .kv_heads = 1,
       .queries = 5,
       .dim = 16,
       .value_dim = 16,
       .lengths = {8, 900},
       .window = {{3, 0}, {700, 0}},
       .causal = true,
       .reduce = ValueReduce::sum},
      {.name = "decode",
       .batch = 2,
       .heads = 8,
       .kv_heads = 2,
       .queries = 1,
       .dim = 64,
       .value_dim = 64,
       .lengths = {40, 333},
       .window = {{16, 0}, {-1, -1}},
       .causal = true},
  };
}

namespace {

constexpr char kOtherTiles[] = "AVX3_other_tiles";

}  // namespace

std::vector<std::string> kernel_ways() {
  std::vector<std::string> ways = simd_levels();
  if (std::ranges::find(ways, "AVX3") != ways.end()) ways.emplace_back(kOtherTiles);
  return ways;
}

void take_way(const std::string& name) {
  set_wide_score_tiles(std::nullopt);
  if (name != kOtherTiles) return set_simd_level(name);
  set_simd_level("AVX3");
  set_wide_score_tiles(!wide_score_tiles());
}

}  // namespace nsimplex::kernels::testing
