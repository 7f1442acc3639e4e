#include "kernels/cpu/equivariant/class_rows.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/equivariant/layout.h"
#include "kernels/cpu/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/equivariant/class_rows.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/equivariant/channels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// finish(vector of sums, row, first column) for all columns of rows [inner] times matrix [inner,
/// columns], whose rows are padded to kChannelStep. Several rows at once: each alone would wait for
/// its own sums.
template <int kRows, class T, class Finish>
HWY_INLINE void times_matrix(const T* const* rows, int64_t inner, const T* matrix, int64_t columns,
                             Finish&& finish) {
  const hn::CappedTag<T, kChannelStep> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = padded_row(columns);
  for (int64_t c = 0; c < columns; c += lanes) {
    hn::Vec<decltype(d)> sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
    for (int64_t k = 0; k < inner; ++k) {
      const auto right = hn::LoadU(d, matrix + k * stride + c);
      for (int r = 0; r < kRows; ++r) {
        sums[r] = hn::MulAdd(hn::Set(d, rows[r][k]), right, sums[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) finish(d, sums[r], r, c);
  }
}

/// Rows of heads that are taken at once.
constexpr int kHeadRows = 4;

/// visit(number of head rows as a constant, first row x head) for all heads of the rows of a task.
template <class Visit>
HWY_INLINE void for_head_rows(int64_t rows, int64_t heads, int64_t task, Visit&& visit) {
  const int64_t end = std::min((task + 1) * kTaskRows, rows) * heads;
  int64_t at = task * kTaskRows * heads;
  for (; at + kHeadRows <= end; at += kHeadRows)
    visit(std::integral_constant<int, kHeadRows>(), at);
  for (; at < end; ++at) visit(std::integral_constant<int, 1>(), at);
}

/// As much of a vector as fits into `count` places.
template <class D, class T>
HWY_INLINE void store_some(D d, hn::Vec<D> value, T* to, int64_t count) {
  if (count >= static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(value, d, to);
  HWY_ALIGN T all[kChannelStep];
  hn::Store(value, d, all);
  std::copy(all, all + count, to);
}

template <class T>
void relu_features(const ReluFeatures<T>& problem, int64_t task) {
  const int64_t features = problem.features, heads = problem.heads;
  for_head_rows(problem.rows, heads, task, [&](auto count, int64_t first) HWY_ATTR {
    const T* rows[count];
    for (int r = 0; r < count; ++r) {
      rows[r] = problem.x.row((first + r) / heads, (first + r) % heads);
    }
    times_matrix<count>(rows, problem.x.width, problem.directions, features,
                        [&](auto d, auto sum, int r, int64_t f) HWY_ATTR {
                          // This order lets a NaN through.
                          const auto zero = hn::Zero(d);
                          const auto positive = hn::IfThenElse(hn::Lt(sum, zero), zero, sum);
                          store_some(d, hn::Add(positive, hn::Set(d, problem.floor)),
                                     problem.to + (first + r) * features + f, features - f);
                        });
  });
}

/// The gradients of products from those of features: 0 where the rectifier was flat.
template <class T>
HWY_INLINE void find_slopes(const double* grad, const T* features, T floor, int64_t count, T* to) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto flat = hn::Set(d, static_cast<double>(floor));
  int64_t f = 0;
  for (; f + lanes <= count; f += lanes) {
    const auto is_flat = hn::Le(load(d, features + f), flat);
    store(d, hn::IfThenZeroElse(is_flat, hn::LoadU(d, grad + f)), to + f);
  }
  for (; f < count; ++f) to[f] = features[f] <= floor ? T{0} : static_cast<T>(grad[f]);
}

template <class T>
void relu_features_backward(const ReluFeaturesBackward<T>& problem, int64_t task) {
  const int64_t features = problem.features, width = problem.width, heads = problem.heads;
  for_head_rows(problem.rows, heads, task, [&](auto count, int64_t first) HWY_ATTR {
    T slopes[count * kSlopes];
    const T* rows[count];
    T* to[count];
    for (int r = 0; r < count; ++r) {
      rows[r] = slopes + r * kSlopes;
      to[r] = problem.to + (first + r) / heads * problem.to_stride + (first + r) % heads * width;
    }
    for (int64_t begin = 0; begin < features; begin += kSlopes) {
      const int64_t own = std::min(kSlopes, features - begin);
      for (int r = 0; r < count; ++r) {
        const int64_t place = (first + r) * features + begin;
        find_slopes(problem.grad + place, problem.of_x + place, problem.floor, own,
                    slopes + r * kSlopes);
      }
      times_matrix<count>(rows, own, problem.directions + begin * padded_row(width), width,
                          [&](auto d, auto sum, int r, int64_t c) HWY_ATTR {
                            if (begin == 0) return store_some(d, sum, to[r] + c, width - c);
                            HWY_ALIGN T all[kChannelStep];
                            hn::Store(sum, d, all);
                            const int64_t end = std::min<int64_t>(hn::Lanes(d), width - c);
                            for (int64_t i = 0; i < end; ++i) to[r][c + i] += all[i];
                          });
    }
  });
}

template <class T>
void class_output(const ClassOutput<T>& problem, int64_t task) {
  const int64_t values = problem.values, wide = values + 1;
  for_task_rows(problem.rows, task, [&](int64_t row) HWY_ATTR {
    for (int64_t h = 0; h < problem.heads; ++h) {
      const double* const sums = problem.sums + (row * problem.heads + h) * wide;
      const double all = sums[values];
      // Exactly 0 without an admissible key: not what differences of tables leave.
      const bool empty = problem.counts != nullptr ? problem.counts[row] == 0 : all == 0;
      const double inverse = empty ? 0 : problem.normalise ? 1 / all : problem.factor;
      T* const out = problem.out + row * problem.out_stride + h * values;
      for (int64_t c = 0; c < values; ++c) out[c] = static_cast<T>(sums[c] * inverse);
      if (problem.grad_out == nullptr) continue;
      // With out = a / b the gradients of a and b.
      const T* const grad_out = problem.grad_out + row * problem.grad_out_stride + h * values;
      T* const grad = problem.grad + (row * problem.heads + h) * wide;
      const double scale = problem.weights_are_shares ? 1 : inverse;
      double of_weights = 0;
      for (int64_t c = 0; c < values; ++c) {
        const double own = static_cast<double>(grad_out[c]) * scale;
        grad[c] = static_cast<T>(own);
        of_weights -= own * static_cast<double>(out[c]);
      }
      if (!problem.normalise) of_weights = 0;
      grad[values] = static_cast<T>(of_weights);
      if (problem.grad_query == nullptr) continue;
      const int64_t place = (row * problem.heads + h) * problem.features;
      double* const grad_query = problem.grad_query + place;
      const double* const key_sums = problem.key_sums + place;
      for (int64_t f = 0; f < problem.features; ++f) {
        grad_query[f] = grad_query[f] * scale + of_weights * key_sums[f];
      }
    }
  });
}

template <class T>
void add_rows(const SeenRows<T>& problem) {
  const hn::ScalableTag<T> d;
  const int64_t width = problem.width;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < problem.rows; ++row) {
    T* const to = problem.to + row * width;
    const int32_t* const places = problem.places + row * problem.columns;
    for (int64_t column = 0; column < problem.columns; ++column) {
      if (places[column] < 0) continue;
      const T* const from = problem.products + places[column] * width;
      int64_t c = 0;
      for (; c + lanes <= width; c += lanes) {
        hn::StoreU(hn::Add(hn::LoadU(d, to + c), hn::LoadU(d, from + c)), d, to + c);
      }
      for (; c < width; ++c) to[c] += from[c];
    }
  }
}

void features_f32(const ReluFeatures<float>& problem, int64_t task) {
  relu_features(problem, task);
}
void features_f64(const ReluFeatures<double>& problem, int64_t task) {
  relu_features(problem, task);
}
void features_backward_f32(const ReluFeaturesBackward<float>& problem, int64_t task) {
  relu_features_backward(problem, task);
}
void features_backward_f64(const ReluFeaturesBackward<double>& problem, int64_t task) {
  relu_features_backward(problem, task);
}
void class_output_f32(const ClassOutput<float>& problem, int64_t task) {
  class_output(problem, task);
}
void class_output_f64(const ClassOutput<double>& problem, int64_t task) {
  class_output(problem, task);
}

void add_rows_f32(const SeenRows<float>& problem) { add_rows(problem); }
void add_rows_f64(const SeenRows<double>& problem) { add_rows(problem); }

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace equivariant {
HWY_EXPORT(features_f32);
HWY_EXPORT(features_f64);
HWY_EXPORT(features_backward_f32);
HWY_EXPORT(features_backward_f64);
HWY_EXPORT(class_output_f32);
HWY_EXPORT(class_output_f64);
HWY_EXPORT(add_rows_f32);
HWY_EXPORT(add_rows_f64);
}  // namespace equivariant

int64_t class_row_tasks(int64_t rows) {
  read_simd_environment();
  return equivariant::row_tasks(rows);
}

int64_t padded_channels(int64_t channels) { return equivariant::padded_row(channels); }

void run_features(const ReluFeatures<float>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(features_f32)(problem, task);
}
void run_features(const ReluFeatures<double>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(features_f64)(problem, task);
}
void run_features_backward(const ReluFeaturesBackward<float>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(features_backward_f32)(problem, task);
}
void run_features_backward(const ReluFeaturesBackward<double>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(features_backward_f64)(problem, task);
}
void run_class_output(const ClassOutput<float>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(class_output_f32)(problem, task);
}
void run_class_output(const ClassOutput<double>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(class_output_f64)(problem, task);
}

void add_seen_rows(const SeenRows<float>& problem) {
  using namespace equivariant;
  read_simd_environment();
  HWY_DYNAMIC_DISPATCH(add_rows_f32)(problem);
}
void add_seen_rows(const SeenRows<double>& problem) {
  using namespace equivariant;
  read_simd_environment();
  HWY_DYNAMIC_DISPATCH(add_rows_f64)(problem);
}

}  // namespace nsimplex::kernels
#endif
