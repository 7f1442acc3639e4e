// Adds up the look-ups of each class for every output tuple, and the transpose.

#include "kernels/cpu/equivariant/class_kernels.h"

#include "kernels/cpu/equivariant/equivariant_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/equivariant/class_sums.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/equivariant/channels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {

/// 1 / count, or 0 for an empty class; 1 if nothing is divided.
HWY_INLINE double share(const int32_t* counts, int64_t place) {
  if (counts == nullptr) return 1;
  return counts[place] == 0 ? 0 : 1 / static_cast<double>(counts[place]);
}

template <class T>
void sum_classes(const ClassSums<T>& problem, int64_t task) {
  const int64_t channels = problem.channels;
  for_task_rows(problem.rows, task, [&](int64_t row) HWY_ATTR {
    const int32_t* const lookup = problem.lookup + row * problem.lookups;
    const ClassTerm* const end = problem.term + problem.terms;
    for_channels(channels, [&](auto sum, int64_t c) HWY_ATTR {
      const ClassTerm* term = problem.term;
      for (int64_t to = 0; to < problem.classes; ++to) {
        sum.clear();
        for (; term != end && term->to_class == to; ++term) {
          const int64_t source = lookup[term->lookup];
          if (source < 0) continue;
          const double factor = term->coefficient;
          if (source < problem.sources) {
            sum.add_scaled(factor, problem.features + source * channels + c);
          } else {
            sum.add_scaled(factor, problem.tables + (source - problem.sources) * channels + c);
          }
        }
        const int64_t place = row * problem.classes + to;
        sum.write(share(problem.count, place), problem.sums + place * channels + c);
      }
    });
  });
}

template <class T>
void sum_lookups(const ClassSumsTransposed<T>& problem, int64_t task) {
  const int64_t channels = problem.channels;
  for_task_rows(problem.rows, task, [&](int64_t row) HWY_ATTR {
    T* const to = problem.grad_lookups + row * problem.lookups * channels;
    const T* const from = problem.grad_sums + row * problem.classes * channels;
    const ClassTerm* const end = problem.term + problem.terms;
    for (const ClassTerm *term = problem.term, *next; term != end; term = next) {
      const int64_t t = term->lookup;
      for (next = term; next != end && next->lookup == t; ++next) {
      }
      // Only entries that some source will add up.
      if (problem.lookup[row * problem.lookups + t] < 0) continue;
      for_channels(channels, [&](auto sum, int64_t c) HWY_ATTR {
        sum.clear();
        for (const ClassTerm* each = term; each != next; ++each) {
          const double factor =
              each->coefficient * share(problem.count, row * problem.classes + each->to_class);
          sum.add_scaled(factor, from + each->to_class * channels + c);
        }
        sum.write(1, to + t * channels + c);
      });
    }
  });
}

void class_sums_f32(const ClassSums<float>& problem, int64_t task) { sum_classes(problem, task); }
void class_sums_f64(const ClassSums<double>& problem, int64_t task) { sum_classes(problem, task); }
void transposed_f32(const ClassSumsTransposed<float>& problem, int64_t task) {
  sum_lookups(problem, task);
}
void transposed_f64(const ClassSumsTransposed<double>& problem, int64_t task) {
  sum_lookups(problem, task);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace equivariant {
HWY_EXPORT(class_sums_f32);
HWY_EXPORT(class_sums_f64);
HWY_EXPORT(transposed_f32);
HWY_EXPORT(transposed_f64);
}  // namespace equivariant

void run_class_sums(const ClassSums<float>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(class_sums_f32)(problem, task);
}
void run_class_sums(const ClassSums<double>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(class_sums_f64)(problem, task);
}
void run_class_sums_transposed(const ClassSumsTransposed<float>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(transposed_f32)(problem, task);
}
void run_class_sums_transposed(const ClassSumsTransposed<double>& problem, int64_t task) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(transposed_f64)(problem, task);
}

}  // namespace nsimplex::kernels
#endif
