// The forward pass of a block of rows by matrix tiles, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_FORWARD_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_FORWARD_TILES_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_FORWARD_TILES_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_FORWARD_TILES_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "kernels/cpu/shared/block_products-inl.h"
#include "kernels/cpu/shared/forward_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// Adds the panels of the inner axis to a block's rows without options. While the vector unit turns
/// the scores of one panel into weights, the matrix unit multiplies the scores of the next one and
/// adds the values of the previous one: their instructions alternate, strip by strip, closely
/// enough for the processor to run both at the same time.
template <class T, class E>
class ForwardTiles {
  using R = Accum<T>;

 public:
  ForwardTiles(ForwardRows<T>& rows, const HeadPack<R>& pack, R scale)
      : rows_(rows), pack_(pack), scale_(scale) {}

  void run() {
    const Range hull = rows_.block.hull();
    const int64_t begin = hull.begin / kPanelKeys * kPanelKeys;
    Panel before, own = panel(begin), after;
    for (int column = 0; column < own.products; ++column) add_score_columns(own, column);
    for (; !own.empty(); before = own, own = after) {
      after = panel(own.first + kPanelKeys);
      find_maxima(own, before);
      const int scores = after.products;
      const int products = scores + (before.empty() ? 0 : value_products());
      const int strips = rows_.block.strips();
      int done = 0;
      for (int strip = 0; strip < strips; ++strip) {
        for (; done < (strip + 1) * products / strips; ++done) {
          done < scores ? add_score_columns(after, done) : add_value_columns(before, done - scores);
        }
        weigh_strip(own, strip * kStripRows);
      }
    }
    add_values(before);
  }

 private:
  // A panel of keys whose scores, then weights, are in `p`.
  struct Panel {
    int64_t first = 0;
    int begin = 0, end = 0;  // columns, see TileColumns
    int products = 0;        // of TileColumns::kUnit columns
    R* p = nullptr;

    bool empty() const { return products == 0; }
  };

  // The one whose first key is `first`; empty after the last one.
  Panel panel(int64_t first) const {
    const PanelPart<R> whole(first, rows_.block.hull());
    if (whole.empty()) return {};
    const TileColumns seen(whole);
    return {first, seen.begin, seen.end, seen.count() / TileColumns::kUnit,
            rows_.all_p + first / kPanelKeys % kWeightPanels * kBlockRows * kPanelKeys};
  }

  int value_products() const {
    return static_cast<int>(ceil_div(rows_.geometry.value_depth, TileColumns::kUnit));
  }

  // Raw scores of the columns of one product.
  HWY_INLINE void add_score_columns(const Panel& panel, int product) {
    const int64_t depth = rows_.geometry.inner_key.panel_rows();
    const int begin = panel.begin + product * TileColumns::kUnit;
    multiply_panel(rows_.block, rows_.u, rows_.geometry.depth,
                   pack_.keys_t + (panel.first - pack_.inner_begin) * depth, depth,
                   {begin, begin + TileColumns::kUnit}, panel.p);
  }

  // Y += P V for the channels of one product.
  HWY_INLINE void add_value_columns(const Panel& panel, int product) {
    const int64_t width = rows_.geometry.value_depth;
    const int64_t begin = product * TileColumns::kUnit;
    const R* const values =
        pack_.values[rows_.geometry.inner()] + (panel.first - pack_.inner_begin) * width;
    add_to_block(rows_.block, panel.p, values + begin, width,
                 std::min<int64_t>(width - begin, TileColumns::kUnit), {panel.begin, panel.end},
                 rows_.y + begin);
  }

  void add_values(const Panel& panel) {
    if (panel.empty()) return;
    for (int product = 0; product < value_products(); ++product) add_value_columns(panel, product);
  }

  // Scales and masks the scores of a panel, and raises maxima that they exceed before any weight
  // refers to them. Y then must have all weights of the panel before.
  void find_maxima(const Panel& own, Panel& before) {
    for (int row = 0; row < rows_.block.padded_rows(); row += kStripRows) {
      const Range* const keys = rows_.block.inner + row;
      const bool masked =
          keys[kStripRows - 1].begin > own.first + own.begin || keys[0].end < own.first + own.end;
      const bool raise = scale_ != R{1} ? note_strip<true, true>(own, row)
                         : masked       ? note_strip<false, true>(own, row)
                                        : note_strip<false, false>(own, row);
      if (HWY_LIKELY(!raise)) continue;
      add_values(before);
      before = {};
      raise_maxima(own, row);
    }
  }

  // Whether some row of a strip needs a new maximum. Scaled and masked scores are stored.
  template <bool kScaled, bool kMasked>
  bool note_strip(const Panel& panel, int strip) {
    const Tag<R> d;
    const Vec<R> nothing = hn::Set(d, -std::numeric_limits<R>::infinity());
    Vec<R> largest = nothing;
    bool fresh = false;
    for (int row = strip; row < strip + kStripRows; ++row) {
      fresh |= rows_.state[rows_.block.item[row]].fresh();
      R* const scores = panel.p + row * kPanelKeys;
      const Range keys = rows_.block.inner[row];
      const int low =
          static_cast<int>(std::clamp<int64_t>(keys.begin - panel.first, 0, kPanelKeys));
      const int high = static_cast<int>(std::clamp<int64_t>(keys.end - panel.first, 0, kPanelKeys));
      // x86 returns the second operand if one is NaN, so a NaN never hides a large score.
      Vec<R> own = nothing;
      for (int c = panel.begin; c < panel.end; c += kLanes<R>) {
        Vec<R> score = hn::Load(d, scores + c);
        if constexpr (kScaled) score = scaled<E>(score, hn::Set(d, scale_));
        if constexpr (kMasked) score = hn::IfThenElse(within<R>(c, low, high), score, nothing);
        if constexpr (kScaled || kMasked) hn::Store(score, d, scores + c);
        own = hn::Max(score, own);
      }
      largest = hn::Max(hn::Add(own, hn::Set(d, rows_.bias[row])), largest);
    }
    return fresh || !hn::AllTrue(d, hn::Le(largest, hn::Set(d, SoftmaxState<R>::kSlack)));
  }

  HWY_NOINLINE void raise_maxima(const Panel& panel, int strip) {
    const Tag<R> d;
    for (int row = strip; row < std::min(strip + kStripRows, rows_.block.rows); ++row) {
      const R* const scores = panel.p + row * kPanelKeys;
      Vec<R> largest = hn::Load(d, scores + panel.begin);
      for (int c = panel.begin + kLanes<R>; c < panel.end; c += kLanes<R>) {
        largest = hn::Max(hn::Load(d, scores + c), largest);
      }
      const R top = hn::GetLane(hn::MaxOfLanes(d, largest));
      if (top == -std::numeric_limits<R>::infinity()) continue;  // no admissible key
      if (rows_.state[rows_.block.item[row]].exceeded_by(top)) rows_.raise_item(top, row);
    }
  }

  // P = 2^(S - max) as pairs, in place.
  void weigh_strip(const Panel& panel, int strip) {
    const Tag<R> d;
    for (int row = strip; row < strip + kStripRows; ++row) {
      R* const p = panel.p + row * kPanelKeys;
      R* const sums = rows_.sums + row * kLanes<R>;
      const Vec<R> shift = hn::Set(d, rows_.bias[row]);
      Vec<R> sum = hn::Load(d, sums);
      for (int c = panel.begin; c < panel.end; c += 2 * kLanes<R>) {
        const Vec<R> first = exp2(hn::Add(hn::Load(d, p + c), shift));
        const Vec<R> second = exp2(hn::Add(hn::Load(d, p + c + kLanes<R>), shift));
        sum = hn::Add(hn::Add(sum, first), second);
        store_pairs<E>(first, second, p + c / 2);
      }
      hn::Store(sum, d, sums);
    }
  }

  ForwardRows<T>& rows_;
  const HeadPack<R>& pack_;
  const R scale_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
