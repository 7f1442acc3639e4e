#pragma once

#include <algorithm>
#include <cstdint>

// What plans and tasks of this folder agree on.

namespace nsimplex::kernels::equivariant {

/// Entries of a task of a segment sum and output rows of a task of class sums: some tens of
/// microseconds at 32 channels, enough to pay for handing a task out. Rows before and after the
/// loops of attention are cut like output rows.
inline constexpr int64_t kTaskEntries = 4096;
inline constexpr int64_t kTaskRows = 256;
inline constexpr int64_t row_tasks(int64_t rows) { return (rows + kTaskRows - 1) / kTaskRows; }

/// Attention by pairs: pairs of a task, what a row costs beside its pairs, and how many rows of a
/// large group a task has at least, so that packing the other side pays.
inline constexpr int64_t kTaskPairs = 1 << 13, kRowCost = 8, kSmallestRows = 32;
/// Rows of the other side that are packed at a time.
inline constexpr int64_t kPairChunk = 256;
/// Of at most as many there is no vector: most lanes of it would be empty.
inline constexpr int64_t kFewColumns = 8;
/// At most as many are summed row by row: a vector of channels has no lanes to be added up.
inline constexpr int64_t kSummedColumns = 128;
/// Channels are padded to this many, a whole number of vectors.
inline constexpr int64_t kPairStep = 8;
inline constexpr int64_t pair_padded(int64_t channels) {
  return (channels + kPairStep - 1) / kPairStep * kPairStep;
}
/// Numbers of the panels of all heads, each of which lies twice.
inline constexpr int64_t pair_panels(int64_t heads, int64_t channels) {
  return 2 * heads * pair_padded(channels) * kPairChunk;
}

/// Attention by tables: rows of a task.
inline constexpr int64_t kTaskTableRows = 128;
/// Rows that are widened to double at a time.
inline constexpr int64_t kTableRows = 16;
/// Rows of a table are padded to this many doubles, the widest vector.
inline constexpr int64_t kTableStep = 8;
inline constexpr int64_t table_padded(int64_t count) {
  return (count + kTableStep - 1) / kTableStep * kTableStep;
}
/// Doubles of a table of keys or of queries, and of what either is turned into.
inline constexpr int64_t table_size(int64_t features, int64_t values) {
  return std::max(features * table_padded(values) + table_padded(features),
                  (values + 1) * table_padded(features));
}

/// Rows of directions are padded to this many numbers: the heads of most models are as wide.
/// Gradients of as many features as kSlopes are taken at a time.
inline constexpr int64_t kChannelStep = 8, kSlopes = 64;
inline constexpr int64_t padded_row(int64_t channels) {
  return (channels + kChannelStep - 1) / kChannelStep * kChannelStep;
}

}  // namespace nsimplex::kernels::equivariant
