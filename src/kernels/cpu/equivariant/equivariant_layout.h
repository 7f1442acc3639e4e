// Sizes that decide how the equivariant kernels cut work into tasks.

#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/rounding.h"

// Sizes that plans and tasks of this folder share.

namespace nsimplex::kernels::equivariant {

/// Entries of a task of a segment sum and output rows of a task of class sums: a few tens of
/// microseconds at 32 channels, enough to pay for starting a task. Rows before and after the loops
/// of attention are split like output rows.
inline constexpr int64_t kTaskEntries = 4096;
inline constexpr int64_t kTaskRows = 256;
inline constexpr int64_t row_tasks(int64_t rows) { return ceil_div(rows, kTaskRows); }

/// Attention by pairs: pairs of a task, the cost of a row besides its pairs, and the fewest rows of
/// a large group in a task, so that packing the other side pays.
inline constexpr int64_t kTaskPairs = 1 << 13, kRowCost = 8, kSmallestRows = 128;
/// Rows of the other side that are packed at a time.
inline constexpr int64_t kPairChunk = 256;
/// At most this number of columns are processed without vectors, most of whose lanes would be
/// empty.
inline constexpr int64_t kFewColumns = 8;
/// At most this number is summed row by row: a vector of channels needs no sum over lanes.
inline constexpr int64_t kSummedColumns = 128;
/// Channels are padded to this many, a whole number of vectors.
inline constexpr int64_t kPairStep = 8;
inline constexpr int64_t pair_padded(int64_t channels) { return round_up(channels, kPairStep); }
/// Numbers of the panels of all heads; each panel is stored twice.
inline constexpr int64_t pair_panels(int64_t heads, int64_t channels) {
  return 2 * heads * pair_padded(channels) * kPairChunk;
}

/// Attention by tables: rows of a task.
inline constexpr int64_t kTaskTableRows = 128;
/// Rows that are widened to double at a time.
inline constexpr int64_t kTableRows = 16;
/// Rows of a table are padded to this many doubles, the widest vector.
inline constexpr int64_t kTableStep = 8;
inline constexpr int64_t table_padded(int64_t count) { return round_up(count, kTableStep); }
/// Doubles of a table of keys or of queries, and of its transformed form.
inline constexpr int64_t table_size(int64_t features, int64_t values) {
  return std::max(features * table_padded(values) + table_padded(features),
                  (values + 1) * table_padded(features));
}

/// Rows of directions are padded to this many numbers, the width of the heads of most models.
/// Gradients of kSlopes features are taken at a time.
inline constexpr int64_t kChannelStep = 8, kSlopes = 64;
inline constexpr int64_t padded_row(int64_t channels) { return round_up(channels, kChannelStep); }

}  // namespace nsimplex::kernels::equivariant
