#pragma once

#include <cstdint>

// Sizes of the blocks that the dense kernel works on. What depends on the SIMD target is in
// tile_shape(); the rest is the same on every target, so that a plan does not depend on the target.

namespace nsimplex::kernels {

/// GEMM rows (query, head, leading tuple) of one block. 32 rows of 64 channels of U and of Y are
/// half of a 32 KiB first-level cache each quarter; a panel of keys is then read once for 32 rows,
/// which needs 6 GB/s of the second level at 100 GFLOP/s.
inline constexpr int kBlockRows = 32;

/// Rows that share one look at a panel: a block is cut into strips, and each takes only the columns
/// that its own rows may see. Register tiles divide a strip. On windows of 8 x 16 x 64 strips
/// instead of whole blocks raised the forward from 0.82 to 0.88 of sgemm, on causal heads of 64
/// queries from 1.05 to 1.5 of torch's scaled_dot_product_attention.
inline constexpr int kStripRows = 8;

/// Keys of one panel of the inner axis: four 512-bit vectors of scores. Half of that reads and
/// writes Y twice as often: 1 to 2 % slower on windows of 32 x 512.
inline constexpr int kPanelKeys = 64;

/// Longest interval of keys that gets a panel of its own (see own_panel-inl.h).
inline constexpr int kOwnKeys = 128;

/// (Query, head) pairs whose softmax state a task keeps at a time. With as many of them as a block
/// has rows, full blocks come out for any number of tuples a pair.
inline constexpr int kChunkItems = 32;

/// Channels are padded with zeros to multiples of this, a cache line of fp32, whatever the vector
/// length.
inline constexpr int64_t kLineChannels = 16;

/// Shape of the register tiles, in rows and vectors. `score` products are consumed in registers (S,
/// dP); `sum` products add to memory (Y, dU, dK, dV).
struct TileShape {
  int score_rows, score_vectors, sum_rows, sum_vectors;
};

/// The shapes for a target with this many vector registers.
constexpr TileShape tile_shape(int registers) {
  // 32 registers: 8 x 2 and 4 x 4 accumulators leave 16 for operands. 12 x 2, 6 x 4 and 7 x 4 for
  // the scores were 0.64 of sgemm where 8 x 2 was 1.00: the rows then do not divide the windows.
  if (registers >= 32) return {8, 2, 4, 4};
  // 16 registers: 8 accumulators are the 4 cycles x 2 units an FMA needs in flight; the 8 x 2 tile
  // above spills here (0.58 of sgemm).
  return {4, 2, 4, 2};
}

}  // namespace nsimplex::kernels
