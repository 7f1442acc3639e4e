// Sizes of blocks, strips, panels and register tiles of the dense kernel, with the reason for each.

#pragma once

#include <cstdint>

// Sizes of the blocks of the dense kernel. Sizes that depend on the SIMD target are in
// tile_shape(). The others are the same on every target, so that a plan does not depend on the
// target.

namespace nsimplex::kernels {

/// GEMM rows (query, head, leading tuple) of one block. 32 rows of 64 channels of U and of Y each
/// take a quarter of a 32 KiB first-level cache. A panel of keys is then read once per 32 rows,
/// which needs 6 GB/s of the second level at 100 GFLOP/s.
inline constexpr int kBlockRows = 32;

/// Rows of a block of the backward pass, unless its operands are pairs. A block reads keys and
/// values twice, and reads and writes their gradients. With 128 channels and windows of 512 keys
/// these exceed a second-level cache of 1.25 MiB, so half as many blocks gain up to 10 %.
inline constexpr int kBackwardRows = 64;

/// Rows that share one pass over a panel. A block is cut into strips, and each takes only the
/// columns that its own rows may see. Register tiles divide a strip. Compared with whole blocks,
/// strips raised the forward from 0.82 to 0.88 of sgemm on windows of 8 x 16 x 64, and from 1.05 to
/// 1.5 of torch's scaled_dot_product_attention on causal heads with 64 queries.
inline constexpr int kStripRows = 8;

/// Keys of one panel of the inner axis: four 512-bit vectors of scores. Half of this reads and
/// writes Y twice as often, which is 1 to 2 % slower on windows of 32 x 512.
inline constexpr int kPanelKeys = 64;

/// Longest interval of keys that gets its own panel (see own_panel-inl.h).
inline constexpr int kOwnKeys = 128;

/// (Query, head) pairs whose softmax state a task keeps at a time. With as many pairs as a block
/// has rows, blocks are full for any number of tuples per pair.
inline constexpr int kChunkItems = 32;

/// Channels are padded with zeros to multiples of this, a cache line of fp32, for any vector
/// length.
inline constexpr int64_t kLineChannels = 16;

/// Shape of the register tiles, in rows and vectors. `score` products are consumed in registers (S,
/// dP); `sum` products add to memory (Y, dU, dK, dV). Dense attention has `wide` products of scores
/// instead on processors whose loads limit the others (wide_score_tiles()).
struct TileShape {
  int score_rows, score_vectors, wide_rows, wide_vectors, sum_rows, sum_vectors;

  /// Rows of a score tile of this width in vectors. At the ends of an interval few vectors
  /// remain, and more rows keep enough multiply-adds in flight.
  constexpr int rows_of_score(int vectors) const {
    return vectors > score_vectors ? wide_rows : score_rows;
  }
};

/// The shapes for a target with this many vector registers.
constexpr TileShape tile_shape(int registers) {
  // 32 registers: 8 x 2 and 4 x 4 accumulators leave 16 for operands. For the scores 12 x 2, 6 x 4
  // and 7 x 4 reached 0.64 of sgemm and 8 x 2 reached 1.00, because the rows of the former do not
  // divide the windows. A tile loads rows + vectors operands for rows x vectors multiply-adds, 8 for
  // 16 if it is 4 x 4, and 10 if it is 8 x 2: 0.98 and 0.83 of the peak of a processor with two
  // multiply-adds and one load of 512 bits per cycle.
  if (registers >= 32) return {8, 2, 4, 4, 4, 4};
  // 16 registers: an FMA needs 8 accumulators in flight (4 cycles x 2 units). The 8 x 2 tile above
  // spills here (0.58 of sgemm).
  return {4, 2, 4, 2, 4, 2};
}

}  // namespace nsimplex::kernels
