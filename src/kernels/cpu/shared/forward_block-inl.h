// A block of rows with its online softmax, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_FORWARD_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_FORWARD_BLOCK_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_FORWARD_BLOCK_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_FORWARD_BLOCK_INL_H_
#endif

#include <limits>

#include "kernels/cpu/shared/block_products-inl.h"
#include "kernels/cpu/shared/forward_general-inl.h"
#include "kernels/cpu/shared/forward_rows-inl.h"
#include "kernels/cpu/shared/forward_tiles-inl.h"
#include "kernels/cpu/shared/own_panel-inl.h"
#include "kernels/cpu/shared/simd.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// A block's rows with the panels of the inner axis:
///   S = U K^T,  P = 2^(S - max),  sums += P 1,  Y += P V
/// with one running maximum per item.
template <class T, class E>
class ForwardBlock : public ForwardRows<T> {
  using Base = ForwardRows<T>;
  using R = Accum<T>;

 public:
  ForwardBlock(const DenseProblem<T>& problem, const Geometry& geometry, const HeadPack<R>& pack,
               TupleFilter<T>& filter, Arena<R>& arena)
      : Base(problem, geometry, kTiled<E> ? kWeightPanels : 1, arena),
        pack_(pack),
        dim_(problem.dim),
        panel_rows_(geometry.inner_key.panel_rows()),
        score_scale_(static_cast<R>(score_scale<E>(geometry))),
        filter_(filter),
        general_(problem, *this, filter),
        tiles_(*this, pack, score_scale_),
        own_(panel_rows_, arena) {}

  /// Processes the rows that `block` holds.
  void run() {
    this->start_block();
    if constexpr (kTiled<E>) clear_padding(block, geometry, u);
    if constexpr (kNumbers<E> == 2) {
      for (int r = 0; r < block.padded_rows(); ++r)
        pair_row<E>(u + r * geometry.depth, geometry.depth);
    }
    const Range hull = block.hull();
    const bool general = filter_.general();
    if constexpr (kTiled<E>) {
      if (!general) return tiles_.run();
    }
    // Pairs of keys cannot be split at every key.
    if constexpr (kNumbers<E> == 1) {
      if (!general && OwnPanel<R>::pays(block)) {
        own_.load(pack_.keys_t, pack_.inner_begin, hull);
        for (int64_t first = hull.begin; first < hull.end; first += kPanelKeys) {
          run_panel(first, own_.view(first));
        }
        return;
      }
    }
    for (int64_t first = hull.begin / kPanelKeys * kPanelKeys; first < hull.end;
         first += kPanelKeys) {
      const R* const columns = pack_.keys_t + (first - pack_.inner_begin) * panel_rows_;
      if constexpr (kTiled<E>) {
        run_tiled_panel(first, columns);
      } else {
        run_panel(first, {columns, kPanelKeys});
      }
    }
  }

  using Base::all_p;
  using Base::bias;
  using Base::block;
  using Base::geometry;
  using Base::p;
  using Base::state;
  using Base::sums;
  using Base::u;
  using Base::waiting;
  using Base::y;

 private:
  // Processes a panel with options, by products of the whole block. The weights of all strips wait
  // for the second one.
  void run_tiled_panel(int64_t first, const R* columns) {
    const PanelPart<R> whole(first, block.hull());
    const TileColumns seen(whole);
    multiply_panel(block, u, geometry.depth, columns, panel_rows_, seen, all_p);
    filter_.start_panel(first);
    for (int row = 0; row < block.padded_rows(); row += kStripRows) {
      p = all_p + row * kPanelKeys;
      waiting = row;
      const PanelPart<R> part(first, block.inner + row);
      if (!part.empty()) general_.weigh_strip(part, row, columns);
      clear_columns(part, seen, p);
    }
    waiting = 0;
    for (int r = 0; r < block.padded_rows(); ++r) pair_row<E>(all_p + r * kPanelKeys, kPanelKeys);
    const int64_t width = geometry.value_depth;
    const R* const values = pack_.values[geometry.inner()] + (first - pack_.inner_begin) * width;
    add_to_block(block, all_p, values, width, width, seen, y);
  }

  // Processes the panel whose first key is `first`. The weights of all strips wait for the second
  // product.
  void run_panel(int64_t first, PanelView<R> panel) {
    panel_ = panel;
    const bool general = filter_.general();
    if (general) filter_.start_panel(first);
    strips_.cut(block, first);
    strips_.for_each([&](const PanelPart<R>& part, int row) HWY_ATTR {
      p = all_p + row * kPanelKeys;
      waiting = row;
      general ? general_.weigh_strip(part, row, panel.columns) : score_strip(part, row);
    });
    waiting = 0;
    strips_.for_each([&](const PanelPart<R>& part, int row) HWY_ATTR { add_values(part, row); });
  }

  // Y += P V for the rows of a strip.
  void add_values(const PanelPart<R>& part, int strip) {
    R* const weights = all_p + strip * kPanelKeys;
    if constexpr (kNumbers<E> == 2) {
      for (int r = 0; r < kStripRows; ++r) pair_row<E>(weights + r * kPanelKeys, kPanelKeys);
    }
    const int64_t width = geometry.value_depth;
    const R* const values =
        pack_.values[geometry.inner()] + (part.first - pack_.inner_begin) * width;
    // A slot may hold a key that no row sees; its weight is 0.
    const int64_t begin = part.begin / kNumbers<E>, end = slots<E>(part.end);
    add_product<E>(y + strip * width, width, kStripRows, weights + begin, kPanelKeys, 1,
                   values + begin * width, width, end - begin, width);
  }

  // P of the strip that starts with block row `strip`.
  void score_strip(const PanelPart<R>& part, int strip) {
    switch (part.masking) {
      case Masking::none:
        return score_tiles<Masking::none>(part, strip);
      case Masking::common:
        return score_tiles<Masking::common>(part, strip);
      case Masking::each:
        return score_tiles<Masking::each>(part, strip);
    }
  }

  template <Masking kMasking>
  void score_tiles(const PanelPart<R>& part, int strip) {
    for_each_score_tile(wide_tiles_, part.vector, part.vector_end,
                        [&]<int kRows, int kVectors>(int row, int vector) HWY_ATTR {
                          score_tile<kRows, kVectors, kMasking>(part, strip, row, vector);
                        });
  }

  // The tile of rows from `row` of the strip and kVectors vectors from `vector`.
  template <int kRows, int kVectors, Masking kMasking>
  HWY_INLINE void score_tile(const PanelPart<R>& part, int strip, int row, int vector) {
    const Tag<R> d;
    const R* const own_bias = bias + strip + row;
    const int* const item = block.item + strip + row;
    R* const weights = p + row * kPanelKeys + vector * kLanes<R>;
    R* const row_sums = sums + (strip + row) * kLanes<R>;
    Tile<R, kRows, kVectors> s;
    s.zero();
    s.template multiply_add<E>(u + (strip + row) * geometry.depth, geometry.depth, 1,
                               panel_.columns + vector * kLanes<R>, panel_.row, slots<E>(dim_));
    // After the sum, as in the backward, so that both round scores in the same way.
    const Vec<R> scale = hn::Set(d, score_scale_);
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Vec<R> shift = hn::Set(d, own_bias[r]);
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) s.at[r][v] = hn::Add(scaled<E>(s.at[r][v], scale), shift);
    }
    mask_scores<kMasking>(s, part, row, vector);
    // x86 returns the second operand if one is NaN, so a NaN never hides a large score of another
    // row.
    // One chain of maxima per row: a chain of the whole tile has a latency of 64 cycles.
    Vec<R> largest;
    bool fresh = false;
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      fresh |= state[item[r]].fresh();
      Vec<R> own = s.at[r][0];
      NSIMPLEX_UNROLL
      for (int v = 1; v < kVectors; ++v) own = hn::Max(s.at[r][v], own);
      largest = r == 0 ? own : hn::Max(own, largest);
    }
    if (HWY_UNLIKELY(fresh ||
                     !hn::AllTrue(d, hn::Le(largest, hn::Set(d, SoftmaxState<R>::kSlack))))) {
      NSIMPLEX_UNROLL
      for (int r = 0; r < kRows; ++r) {
        NSIMPLEX_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          hn::Store(s.at[r][v], d, weights + r * kPanelKeys + v * kLanes<R>);
        }
      }
      raise_maxima(part, strip, {row, row + kRows}, {vector, vector + kVectors});
      NSIMPLEX_UNROLL
      for (int r = 0; r < kRows; ++r) {
        NSIMPLEX_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          s.at[r][v] = hn::Load(d, weights + r * kPanelKeys + v * kLanes<R>);
        }
      }
    }
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      Vec<R> sum = hn::Load(d, row_sums + r * kLanes<R>);
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const Vec<R> weight = exp2(s.at[r][v]);
        hn::Store(weight, d, weights + r * kPanelKeys + v * kLanes<R>);
        sum = hn::Add(sum, weight);
      }
      hn::Store(sum, d, row_sums + r * kLanes<R>);
    }
  }

  // P holds the scores of a tile, minus the previous maxima. Raises maxima if the scores require
  // it, and subtracts the new ones instead. `rows` count within the strip.
  HWY_NOINLINE void raise_maxima(const PanelPart<R>& part, int strip, Range rows, Range vectors) {
    const Tag<R> d;
    R used[kStripRows];
    for (int64_t r = rows.begin; r < rows.end; ++r) used[r] = -bias[strip + r];
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const int item = block.item[strip + r];
      if (item == kChunkItems) break;
      R* const scores = p + r * kPanelKeys;
      Vec<R> largest = hn::Load(d, scores + vectors.begin * kLanes<R>);
      for (int64_t v = vectors.begin + 1; v < vectors.end; ++v) {
        largest = hn::Max(hn::Load(d, scores + v * kLanes<R>), largest);
      }
      const R top = hn::GetLane(hn::MaxOfLanes(d, largest));
      // No admissible key. Highway 1.0.3's EMU128 returns the lowest finite number for minus
      // infinity.
      if (top <= std::numeric_limits<R>::lowest()) continue;
      const R logit = top + used[r];
      if (state[item].exceeded_by(logit)) {
        raise_strip(logit, part, strip, static_cast<int>(r), rows, vectors);
      }
    }
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const R shift = -bias[strip + r] - used[r];
      if (shift == R{0}) continue;
      for (int64_t v = vectors.begin; v < vectors.end; ++v) {
        R* const scores = p + r * kPanelKeys + v * kLanes<R>;
        hn::Store(hn::Sub(hn::Load(d, scores), hn::Set(d, shift)), d, scores);
      }
    }
  }

  // Gives the item of a row a new maximum. The weights of this strip that were computed before this
  // tile are rescaled too: those of all vectors before, and those of the rows above.
  void raise_strip(R max, const PanelPart<R>& part, int strip, int row, Range rows, Range vectors) {
    const auto raised = this->raise_item(max, strip + row);
    if (raised.factor == R{1}) return;
    const int end = std::min(raised.end - strip, kStripRows);
    for (int r = std::max(raised.begin - strip, 0); r < end; ++r) {
      const int64_t done = r < rows.begin ? vectors.end : vectors.begin;
      scale_row(p + r * kPanelKeys + part.vector * kLanes<R>, raised.factor,
                (done - part.vector) * kLanes<R>);
    }
  }

  const HeadPack<R>& pack_;
  const int64_t dim_, panel_rows_;
  const R score_scale_;
  const bool wide_tiles_ = wide_score_tiles();
  TupleFilter<T>& filter_;
  GeneralForward<T, E> general_;
  ForwardTiles<T, E> tiles_;
  OwnPanel<R> own_;
  PanelView<R> panel_{};   // the current panel
  PanelStrips<R> strips_;  // likewise
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
