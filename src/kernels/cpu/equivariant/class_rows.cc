// Turns the sums over a query's keys into the outputs of a class, and adds rows that several
// outputs share.

#include "kernels/cpu/equivariant/class_kernels.h"

#include <algorithm>

#include "kernels/cpu/equivariant/equivariant_layout.h"
#include "kernels/cpu/shared/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/equivariant/class_rows.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/equivariant/channels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void class_output(const ClassOutput<T>& problem, int64_t task) {
  const int64_t values = problem.values, wide = values + 1;
  for_task_rows(problem.rows, task, [&](int64_t row) HWY_ATTR {
    for (int64_t h = 0; h < problem.heads; ++h) {
      const double* const sums = problem.sums + (row * problem.heads + h) * wide;
      const double all = sums[values];
      // Exactly 0 without an admissible key, since differences of tables leave rounding errors.
      // Also 0 if the difference has lost the positive sum of w. A NaN is not below 0 and stays.
      const bool none = problem.counts != nullptr ? problem.counts[row] == 0 : all == 0;
      const bool empty = none || (problem.normalise && all <= 0);
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
HWY_EXPORT(class_output_f32);
HWY_EXPORT(class_output_f64);
HWY_EXPORT(add_rows_f32);
HWY_EXPORT(add_rows_f64);
}  // namespace equivariant

int64_t class_row_tasks(int64_t rows) {
  read_simd_environment();
  return equivariant::row_tasks(rows);
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
