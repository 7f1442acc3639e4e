#pragma once

#include <cstdint>

// Plain description of the sums of an equivariant layer over lists of tuples. No ownership;
// matrices are contiguous, one row after the other. Sums run in double.

namespace nsimplex::kernels {

/// to[s] = sum of from[rows[e]] over offsets[s] <= e < offsets[s + 1].
template <class From, class To>
struct SegmentSums {
  const int32_t* offsets = nullptr;  ///< [segments + 1]
  const int32_t* rows = nullptr;     ///< [entries]
  int64_t segments = 0, entries = 0, channels = 0;
  const From* from = nullptr;  ///< [.., channels]
  To* to = nullptr;            ///< [segments, channels]
};

/// One term: a class and a look-up of the same output row, and how often the latter counts.
struct ClassTerm {
  int32_t to_class, lookup, coefficient;
};

/// Outputs of one pattern: their classes' sums from their look-ups, or the transpose.
struct ClassPart {
  int64_t rows = 0, classes = 0, lookups = 0, terms = 0;
  const ClassTerm* term = nullptr;  ///< [terms], by class; of the transpose by look-up
  const int32_t* lookup = nullptr;  ///< [rows, lookups]: a source or -1
  const int32_t* count = nullptr;   ///< [rows, classes]; null: no division
};

/// sums[j, c] = sum of coefficient * source(lookup[j, t]) over the terms of class c, divided by
/// count[j, c]; 0 where that is 0. A source below `sources` is a row of features, else of tables.
template <class T>
struct ClassSums : ClassPart {
  int64_t channels = 0, sources = 0;
  const T* features = nullptr;     ///< [sources, channels]
  const double* tables = nullptr;  ///< [groups, channels]
  T* sums = nullptr;               ///< [rows, classes, channels]
};

/// The transpose: grad_lookups[j, t] = sum of coefficient / count[j, c] * grad_sums[j, c] over the
/// terms of look-up t, where lookup[j, t] names a source; what does not is not written.
template <class T>
struct ClassSumsTransposed : ClassPart {
  int64_t channels = 0;
  const T* grad_sums = nullptr;  ///< [rows, classes, channels]
  T* grad_lookups = nullptr;     ///< [rows, lookups, channels]
};

}  // namespace nsimplex::kernels
