// Layout of a sparse attention call during computation, and the choice between tiles and single
// tuples.

#pragma once

#include "kernels/cpu/shared/geometry.h"
#include "kernels/cpu/shared/simd.h"
#include "kernels/cpu/sparse_attention/sparse_attention.h"

// The layout of a sparse problem during computation. Sizes and offsets count elements of the
// computing type.

namespace nsimplex::kernels::sparse {

/// The same problem with `length` keys on every axis. Its working order is that of the list. For a
/// set with that many keys it is the problem of one query.
template <class Problem>
Problem with_length(Problem problem, int64_t length) {
  for (int m = 0; m < problem.order; ++m) problem.axes[m].visible.length = length;
  return problem;
}

/// Whether the register tiles pay: their rows are the pairs of a query head and a leading tuple of
/// one query, and a strip of them shares every key. Otherwise tuples are processed one by one.
template <class T>
bool takes_tiles(const DenseProblem<T>& problem, const TupleLists& lists) {
  if (lists.pattern != ListPattern::product) return false;
  int64_t rows = problem.heads / problem.kv_heads;
  for (int m = 1; m < problem.order && rows < kStripRows; ++m) rows *= lists.size;
  return rows >= kStripRows;
}

/// Whether sets in bf16 use matrix tiles: only where somebody named that level, since no machine with
/// AMX has measured them.
inline bool sets_take_matrix_tiles() { return bf16_products(0) == Bf16Products::tiles; }

/// Offsets of one key head's packed rows, for tuples that are processed one by one.
struct RowLayout {
  int64_t keys[kMaxOrder], values[kMaxOrder];
  int64_t size = 0;

  template <class T>
  RowLayout(const DenseProblem<T>& problem, const dense::Geometry& geometry) {
    for (int m = 0; m < problem.order; ++m) {
      const int64_t length = problem.axes[m].visible.length;
      keys[m] = size;
      size += length * geometry.key_depth(m);
      values[m] = size;
      size += length * geometry.value_depth;
    }
  }
};

/// One head's packed rows.
template <class R>
struct HeadRows {
  const R *keys[kMaxOrder], *values[kMaxOrder];

  HeadRows(const RowLayout& layout, int order, const R* base) {
    for (int m = 0; m < order; ++m) {
      keys[m] = base + layout.keys[m];
      values[m] = base + layout.values[m];
    }
  }
};

/// Tuples of a run that are weighted at a time: their rows stay in the first-level cache from the
/// scores to the sums.
inline constexpr int kRunKeys = 32;

/// Elements of scratch for tuples that are processed one by one.
inline int64_t run_scratch(const dense::Geometry& geometry) {
  return 2 * round_up(kRunKeys, kLineChannels) + 2 * geometry.lead_depth + 2 * geometry.depth +
         (4 + geometry.inner()) * geometry.value_depth + 2 * geometry.levels_size();
}

/// Elements of the private gradients of one set's keys: the size of the halo of the problem of one
/// query.
template <class T>
dense::HaloLayout set_gradients(const DenseBackward<T>& of_set, const dense::Geometry& geometry) {
  return dense::HaloLayout(of_set, geometry, dense::make_segments(of_set, 1), 0, 0);
}

}  // namespace nsimplex::kernels::sparse
