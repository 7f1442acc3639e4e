// The keys of one interval in a separate panel, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_OWN_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_OWN_PANEL_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_OWN_PANEL_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_OWN_PANEL_INL_H_
#endif

#include "kernels/cpu/shared/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// Transposed keys or values in the form that products read: key `first` + c of a channel is
/// element c of its row.
template <class R>
struct PanelView {
  const R* columns;
  int64_t row;  ///< elements from a channel to the next
};

/// A copy of the columns of the packed panels that an interval of keys covers, from its first key
/// on. Rows that share the interval then compute no partly visible vector: 64 keys are 4 vectors of
/// 16, but usually lie in 5 of the packed ones, and in 2 panels. The copy costs a block of 32 rows
/// 3 % of its products, so long intervals do without it.
template <class R>
class OwnPanel {
 public:
  OwnPanel(int64_t channels, Arena<R>& arena)
      : channels_(channels), memory_(arena.take(own_panel_size(channels))) {}

  /// Whether it speeds up the rows of a block.
  static bool pays(const Block& block) {
    const Range keys = block.hull();
    return block.full() && keys.size() <= kOwnKeys && keys.begin % kPanelKeys != 0 &&
           block.inner[0].end == keys.end && block.inner[block.rows - 1].begin == keys.begin;
  }

  /// Copies `keys` unless they are copied already: `panels`, from key `origin` on, never changes.
  void load(const R* panels, int64_t origin, Range keys) {
    if (keys.begin == keys_.begin && keys.end == keys_.end) return;
    keys_ = keys;
    const Tag<R> d;
    // Whole vectors of the packed panels are copied to the place of their columns, which may start
    // before the first key and end after the last one. There is room for this: kLead elements, and
    // a panel.
    for (int64_t panel = keys.begin / kPanelKeys * kPanelKeys; panel < keys.end;
         panel += kPanelKeys) {
      const R* from = panels + (panel - origin) * channels_;
      R* to = memory_ + kLead + (panel - keys.begin);
      for (int64_t c = 0; c < channels_; ++c, from += kPanelKeys, to += kOwnRow) {
        NSIMPLEX_UNROLL
        for (int v = 0; v < kPanelKeys; v += kLanes<R>) {
          hn::StoreU(hn::Load(d, from + v), d, to + v);
        }
      }
    }
    // Columns after the last packed panel complete the last vector: they have no key, and their
    // weight is 0.
    const int64_t end = round_up(keys.end, kPanelKeys) - keys.begin;
    const int64_t missing = round_up(keys.size(), PanelPart<R>::kUnit) - end;
    for (int64_t c = 0; missing > 0 && c < channels_; ++c) {
      std::fill_n(memory_ + kLead + c * kOwnRow + end, missing, R{0});
    }
  }

  /// The view from key `first` of the loaded interval on.
  PanelView<R> view(int64_t first) const {
    return {memory_ + kLead + (first - keys_.begin), kOwnRow};
  }

 private:
  static constexpr int64_t kLead = kPanelKeys;

  const int64_t channels_;
  R* const memory_;
  Range keys_{0, 0};
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
