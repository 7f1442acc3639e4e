// Products of a whole block by matrix tiles, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_BLOCK_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_BLOCK_PRODUCTS_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_BLOCK_PRODUCTS_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_BLOCK_PRODUCTS_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/shared/rows-inl.h"
#include "kernels/cpu/shared/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// The columns of a panel that products of tiles take: the depth of a tile is 32 keys.
struct TileColumns {
  static constexpr int kUnit = 2 * kTileSlots;
  int begin, end;

  template <class R>
  explicit TileColumns(const PanelPart<R>& part)
      : begin(part.begin / kUnit * kUnit), end(static_cast<int>(round_up(part.end, kUnit))) {}
  TileColumns(int begin, int end) : begin(begin), end(end) {}

  int count() const { return end - begin; }
};

/// Rows of a block, filled up to whole tiles. Nobody reads what products leave in the added rows.
inline int64_t tile_rows(const Block& block) { return round_up(block.padded_rows(), kTileRows); }

/// Zeros after the channels of a block's rows of U, which nobody writes there and a tile reads.
template <class R>
void clear_padding(const Block& block, const Geometry& geometry, R* u) {
  const int64_t count = geometry.inner_key.count(), depth = geometry.depth;
  for (int r = 0; r < block.padded_rows(); ++r) {
    std::fill(u + r * depth + count, u + (r + 1) * depth, R{0});
  }
}

/// Writes zeros to the columns `seen` of a strip's rows that are not computed for `part`.
template <class R>
void clear_columns(const PanelPart<R>& part, TileColumns seen, R* rows) {
  const int begin = part.empty() ? seen.end : part.vector * kLanes<R>;
  const int end = part.empty() ? seen.end : part.vector_end * kLanes<R>;
  for (int r = 0; r < kStripRows; ++r) {
    R* const row = rows + r * kPanelKeys;
    std::fill(row + seen.begin, row + begin, R{0});
    std::fill(row + end, row + seen.end, R{0});
  }
}

/// to = rows panel: raw scores, or dP. `channels` is a multiple of 32.
template <class R>
HWY_INLINE void multiply_panel(const Block& block, const R* rows, int64_t row, const R* panel,
                               int64_t channels, TileColumns seen, R* to) {
  multiply_tiles(kTileEngine, {.c = to + seen.begin,
                               .c_row = kPanelKeys,
                               .a = rows,
                               .a_row = row,
                               .b = panel + seen.begin,
                               .b_row = kPanelKeys,
                               .rows = tile_rows(block),
                               .columns = seen.count(),
                               .depth = channels / 2});
}

/// to += weights keys, for `channels` of Y or dU, whose rows have the length `width`. `keys`: pairs
/// of rows of the panel.
template <class R>
HWY_INLINE void add_to_block(const Block& block, const R* weights, const R* keys, int64_t width,
                             int64_t channels, TileColumns seen, R* to) {
  multiply_tiles(kTileEngine, {.c = to,
                               .c_row = width,
                               .a = weights + seen.begin / 2,
                               .a_row = kPanelKeys,
                               .b = keys + seen.begin / 2 * width,
                               .b_row = width,
                               .rows = tile_rows(block),
                               .columns = channels,
                               .depth = seen.count() / 2,
                               .add = true});
}

/// Depth of products over the rows of a block, in slots: that of one tile.
inline constexpr int kBlockSlots = kBlockRows / 2;
static_assert(kBlockSlots == kTileSlots);

/// Zeros in the slots after a block's rows.
template <class R>
void clear_slots(const Block& block, R* deep, int64_t width) {
  std::fill(deep + block.padded_rows() / 2 * width, deep + kBlockSlots * width, R{0});
}

/// turned = deep transposed, which makes pairs of the block's rows the depth of a first operand.
template <class R>
void turn_slots(const Block& block, R* deep, int64_t width, [[maybe_unused]] R* turned) {
  clear_slots(block, deep, width);
#ifdef NSIMPLEX_BF16_TILES
  const hn::FixedTag<R, 4> d;
  for (int64_t c = 0; c < width; c += 4) {
    for (int k = 0; k < kBlockSlots; k += 4) {
      R* rows[4];
      for (int i = 0; i < 4; ++i) rows[i] = turned + (c + i) * kBlockSlots + k;
      const R* const from = deep + k * width + c;
      kernels::HWY_NAMESPACE::store_turned(hn::Load(d, from), hn::Load(d, from + width),
                                           hn::Load(d, from + 2 * width),
                                           hn::Load(d, from + 3 * width), rows);
    }
  }
#endif
}

/// A panel's transposed gradient [width, kPanelKeys] += turned weights, for dV and dK. The weights
/// are pairs of the block's rows.
template <class R>
HWY_INLINE void add_to_panel(const Block& block, const R* turned, R* weights, int64_t width,
                             TileColumns seen, R* to) {
  clear_slots(block, weights, kPanelKeys);
  multiply_tiles(kTileEngine, {.c = to + seen.begin,
                               .c_row = kPanelKeys,
                               .a = turned,
                               .a_row = kBlockSlots,
                               .b = weights + seen.begin,
                               .b_row = kPanelKeys,
                               .rows = width,
                               .columns = seen.count(),
                               .depth = kBlockSlots,
                               .add = true});
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
