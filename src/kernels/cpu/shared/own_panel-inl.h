// The keys of one interval in a panel of their own, for one SIMD target (toggled guard).
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

/// Transposed keys or values as products read them: key `first` + c of a channel is element c of
/// its row.
template <class R>
struct PanelView {
  const R* columns;
  int64_t row;  ///< elements from a channel to the next
};

/// A copy of the columns that an interval of keys takes of the packed panels, from its first key
/// on. Rows that share the interval then compute no vector that they see only in part: 64 keys are
/// 4 vectors of 16, but mostly lie in 5 of the packed ones, and in 2 panels. A block of 32 rows
/// pays for the copy with 3 % of its products, which is why long intervals do without.
template <class R>
class OwnPanel {
 public:
  OwnPanel(int64_t channels, Arena<R>& arena)
      : channels_(channels), memory_(arena.take(own_panel_size(channels))) {}

  /// Whether the rows of a block gain by it.
  static bool pays(const Block& block) {
    const Range keys = block.hull();
    return block.rows == kBlockRows && keys.size() <= kOwnKeys && keys.begin % kPanelKeys != 0 &&
           block.inner[0].end == keys.end && block.inner[block.rows - 1].begin == keys.begin;
  }

  /// Copies `keys` unless they are there already: `panels`, from key `origin` on, never changes.
  void load(const R* panels, int64_t origin, Range keys) {
    if (keys.begin == keys_.begin && keys.end == keys_.end) return;
    keys_ = keys;
    const Tag<R> d;
    // Whole vectors of the packed panels go where their columns belong, which may be in front of
    // the first key and behind the last: kLead elements, and a panel, are there for them.
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
    // Columns behind the last packed panel complete the last vector: no key, whose weight is 0.
    const int64_t end = round_up(keys.end, kPanelKeys) - keys.begin;
    const int64_t missing = round_up(keys.size(), PanelPart<R>::kUnit) - end;
    for (int64_t c = 0; missing > 0 && c < channels_; ++c) {
      std::fill_n(memory_ + kLead + c * kOwnRow + end, missing, R{0});
    }
  }

  /// From key `first` of the loaded interval on.
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
