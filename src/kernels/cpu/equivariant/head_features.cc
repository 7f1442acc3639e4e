// Computes random features of queries and keys, and their gradients.

#include "kernels/cpu/equivariant/class_kernels.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/cpu/equivariant/equivariant_layout.h"
#include "kernels/cpu/shared/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/equivariant/head_features.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/equivariant/channels-inl.h"
#include "kernels/cpu/shared/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls finish(vector of sums, row, first column) for all columns of rows [inner] times matrix
/// [inner, columns], whose rows are padded to kChannelStep. It takes several rows at once, since
/// each alone would wait for its own sums.
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

/// Rows of heads that are processed at once.
constexpr int kHeadRows = 4;

/// Calls visit(number of head rows as a constant, first row x head) for all heads of a task's rows.
template <class Visit>
HWY_INLINE void for_head_rows(int64_t rows, int64_t heads, int64_t task, Visit&& visit) {
  const int64_t end = std::min((task + 1) * kTaskRows, rows) * heads;
  int64_t at = task * kTaskRows * heads;
  for (; at + kHeadRows <= end; at += kHeadRows)
    visit(std::integral_constant<int, kHeadRows>(), at);
  for (; at < end; ++at) visit(std::integral_constant<int, 1>(), at);
}

/// The part of a vector that fits into `count` places.
template <class D, class T>
HWY_INLINE void store_some(D d, hn::Vec<D> value, T* to, int64_t count) {
  if (count >= static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(value, d, to);
  HWY_ALIGN T all[kChannelStep];
  hn::Store(value, d, all);
  std::copy(all, all + count, to);
}

template <class T>
HWY_INLINE T dot_self(const T* row, int64_t width) {
  T sum = 0;
  for (int64_t c = 0; c < width; ++c) sum += row[c] * row[c];
  return sum;
}

/// Features of the rectifier, or the exponents of exponentials and their maximum per head row.
template <class T>
void features(const HeadFeatures<T>& problem, int64_t task) {
  const int64_t features = problem.features, heads = problem.heads;
  const bool relu = problem.map == HeadFeatureMap::relu;
  for_head_rows(problem.rows, heads, task, [&](auto count, int64_t first) HWY_ATTR {
    const T* rows[count];
    T less[count];
    for (int r = 0; r < count; ++r) {
      rows[r] = problem.x.row((first + r) / heads, (first + r) % heads);
      less[r] = relu ? T{0} : problem.half_square * dot_self(rows[r], problem.x.width);
    }
    times_matrix<count>(
        rows, problem.x.width, problem.directions, features,
        [&](auto d, auto sum, int r, int64_t f) HWY_ATTR {
          T* const to = problem.to + (first + r) * features + f;
          if (!relu) {
            return store_some(d, hn::Sub(sum, hn::Set(d, less[r])), to, features - f);
          }
          // this order propagates a NaN
          const auto zero = hn::Zero(d);
          const auto positive = hn::IfThenElse(hn::Lt(sum, zero), zero, sum);
          store_some(d, hn::Add(positive, hn::Set(d, problem.floor)), to, features - f);
        });
    if (relu) return;
    for (int r = 0; r < count; ++r) {
      const T* const exponents = problem.to + (first + r) * features;
      T most = -std::numeric_limits<T>::infinity();
      for (int64_t f = 0; f < features; ++f) most = std::max(most, exponents[f]);
      problem.shift[first + r] = most;
    }
  });
}

/// Turns exponents into exponentials, in place.
template <class T>
void exponentials(const HeadFeatures<T>& problem, int64_t task) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t features = problem.features;
  const auto base = hn::Set(d, static_cast<T>(1.4426950408889634074));  // log2(e)
  const auto floor = hn::Set(d, problem.floor);
  const int64_t end = std::min((task + 1) * kTaskRows, problem.rows) * problem.heads;
  for (int64_t row = task * kTaskRows * problem.heads; row < end; ++row) {
    T* const to = problem.to + row * features;
    const auto shift = hn::Set(d, problem.shift[row]);
    const auto finished = [&](auto exponents) HWY_ATTR {
      const auto power = dense::HWY_NAMESPACE::exp2(hn::Mul(hn::Sub(exponents, shift), base));
      return hn::Add(power, floor);
    };
    int64_t f = 0;
    for (; f + lanes <= features; f += lanes) hn::StoreU(finished(hn::LoadU(d, to + f)), d, to + f);
    if (f == features) continue;
    HWY_ALIGN T last[hn::MaxLanes(hn::ScalableTag<T>())] = {};
    std::copy(to + f, to + features, last);
    hn::Store(finished(hn::Load(d, last)), d, last);
    std::copy_n(last, features - f, to + f);
  }
}

/// The gradients of products from those of features; for the rectifier 0 where it was flat.
template <class T>
HWY_INLINE void find_slopes(HeadFeatureMap map, const double* grad, const T* features, T floor,
                            int64_t count, T* to) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool relu = map == HeadFeatureMap::relu;
  const auto flat = hn::Set(d, static_cast<double>(floor));
  int64_t f = 0;
  for (; f + lanes <= count; f += lanes) {
    const auto own = load(d, features + f), slope = hn::LoadU(d, grad + f);
    store(d,
          relu ? hn::IfThenZeroElse(hn::Le(own, flat), slope) : hn::Mul(slope, hn::Sub(own, flat)),
          to + f);
  }
  for (; f < count; ++f) {
    const double above = static_cast<double>(features[f] - floor);
    to[f] = static_cast<T>(relu ? (above <= 0 ? 0 : grad[f]) : grad[f] * above);
  }
}

template <class T>
void features_backward(const HeadFeaturesBackward<T>& problem, int64_t task) {
  const int64_t features = problem.features, width = problem.width, heads = problem.heads;
  const bool relu = problem.map == HeadFeatureMap::relu;
  for_head_rows(problem.rows, heads, task, [&](auto count, int64_t first) HWY_ATTR {
    T slopes[count * kSlopes];
    const T* rows[count];
    T *to[count], all[count];
    for (int r = 0; r < count; ++r) {
      rows[r] = slopes + r * kSlopes;
      to[r] = problem.to + (first + r) / heads * problem.to_stride + (first + r) % heads * width;
      all[r] = 0;
    }
    for (int64_t begin = 0; begin < features; begin += kSlopes) {
      const int64_t own = std::min(kSlopes, features - begin);
      for (int r = 0; r < count; ++r) {
        const int64_t place = (first + r) * features + begin;
        T* const slope = slopes + r * kSlopes;
        find_slopes(problem.map, problem.grad + place, problem.of_x + place, problem.floor, own,
                    slope);
        if (relu) continue;
        for (int64_t f = 0; f < own; ++f) all[r] += slope[f];
      }
      times_matrix<count>(rows, own, problem.directions + begin * padded_row(width), width,
                          [&](auto d, auto sum, int r, int64_t c) HWY_ATTR {
                            if (begin == 0) return store_some(d, sum, to[r] + c, width - c);
                            HWY_ALIGN T more[kChannelStep];
                            hn::Store(sum, d, more);
                            const int64_t end = std::min<int64_t>(hn::Lanes(d), width - c);
                            for (int64_t i = 0; i < end; ++i) to[r][c + i] += more[i];
                          });
    }
    if (relu) return;
    for (int r = 0; r < count; ++r) {
      const T* const x = problem.x.row((first + r) / heads, (first + r) % heads);
      const T factor = 2 * problem.half_square * all[r];
      for (int64_t c = 0; c < width; ++c) to[r][c] -= factor * x[c];
    }
  });
}

void features_f32(const HeadFeatures<float>& problem, int64_t task) { features(problem, task); }
void features_f64(const HeadFeatures<double>& problem, int64_t task) { features(problem, task); }
void exponentials_f32(const HeadFeatures<float>& problem, int64_t task) {
  exponentials(problem, task);
}
void exponentials_f64(const HeadFeatures<double>& problem, int64_t task) {
  exponentials(problem, task);
}
void features_backward_f32(const HeadFeaturesBackward<float>& problem, int64_t task) {
  features_backward(problem, task);
}
void features_backward_f64(const HeadFeaturesBackward<double>& problem, int64_t task) {
  features_backward(problem, task);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace equivariant {
HWY_EXPORT(features_f32);
HWY_EXPORT(features_f64);
HWY_EXPORT(exponentials_f32);
HWY_EXPORT(exponentials_f64);
HWY_EXPORT(features_backward_f32);
HWY_EXPORT(features_backward_f64);
}  // namespace equivariant

int64_t padded_channels(int64_t channels) { return equivariant::padded_row(channels); }

void run_features(const HeadFeatures<float>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(features_f32)(problem, task);
}
void run_features(const HeadFeatures<double>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(features_f64)(problem, task);
}
void run_exponentials(const HeadFeatures<float>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(exponentials_f32)(problem, task);
}
void run_exponentials(const HeadFeatures<double>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(exponentials_f64)(problem, task);
}
void run_features_backward(const HeadFeaturesBackward<float>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(features_backward_f32)(problem, task);
}
void run_features_backward(const HeadFeaturesBackward<double>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(features_backward_f64)(problem, task);
}

}  // namespace nsimplex::kernels
#endif
