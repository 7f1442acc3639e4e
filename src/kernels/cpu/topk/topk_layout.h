// Arrays of a task of the top-k kernel, and their sizes.

#pragma once

#include "kernels/common/rounding.h"
#include "kernels/common/tile_table.h"
#include "kernels/common/topk_problem.h"
#include "kernels/cpu/shared/geometry.h"

// The arrays of a task of the top-k kernel. Sizes count elements of R.

namespace nsimplex::kernels::topk {

/// Panels of keys that one task of the packing phase transposes.
inline constexpr int64_t kPackPanels = 32;

/// Candidates that a query may have besides the k it keeps, as a multiple of k; it prunes when its
/// buffer is full. With n keys in random order there are about 1 + log(n / 4k) / 3 prunings per
/// query, and twice as many if the buffer holds 2 k.
inline constexpr int64_t kBufferFactor = 4;

template <class R>
int64_t panels(const TopkProblem<R>& problem) {
  return ceil_div(problem.visible.length, kPanelKeys);
}

/// Numbers of one key head's packed panels, each [dim, kPanelKeys].
template <class R>
int64_t packed_head(const TopkProblem<R>& problem) {
  return panels(problem) * problem.dim * kPanelKeys;
}

/// Candidates in a query's buffer: a whole panel fits after the last k, and a whole vector, which
/// compressing writes, after that.
template <class R>
int64_t buffer_size(const TopkProblem<R>& problem) {
  const int64_t most = std::min(kBufferFactor * problem.k, problem.visible.length);
  return round_up(std::max(problem.k, most) + 2 * kPanelKeys, kPanelKeys);
}

/// Offsets into a task's scratch, in bytes, each on a cache line.
template <class R>
struct Scratch {
  size_t query, scores, weights, lse, values, indices, order, best, size;

  explicit Scratch(const TopkProblem<R>& problem) {
    const int64_t rows = kBlockRows, buffer = buffer_size(problem);
    size_t next = 0;
    const auto take = [&](int64_t count, size_t bytes) {
      const size_t begin = next;
      next += static_cast<size_t>(round_up(count * static_cast<int64_t>(bytes), 64));
      return begin;
    };
    query = take(problem.heads * rows * problem.dim, sizeof(R));
    scores = take(rows * kPanelKeys, sizeof(R));
    weights = take(problem.heads * rows, sizeof(R));
    lse = take(problem.heads * rows, sizeof(R));
    values = take(rows * buffer, sizeof(R));
    indices = take(rows * buffer, sizeof(R));
    order = take(buffer, sizeof(R));
    best = take(problem.k, 2 * sizeof(R));
    size = next;
  }
};

}  // namespace nsimplex::kernels::topk
