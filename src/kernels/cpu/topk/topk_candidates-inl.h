// The candidates of one query for its k best keys, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_TOPK_CANDIDATES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_TOPK_CANDIDATES_INL_H_
#undef NSIMPLEX_KERNELS_TOPK_CANDIDATES_INL_H_
#else
#define NSIMPLEX_KERNELS_TOPK_CANDIDATES_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/common/rounding.h"
#include "kernels/cpu/shared/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::topk {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using dense::HWY_NAMESPACE::kLanes;
using dense::HWY_NAMESPACE::Tag;
using dense::HWY_NAMESPACE::Vec;

/// An integer as wide as R.
template <class R>
using Integer = std::conditional_t<sizeof(R) == 4, int32_t, int64_t>;

/// Bits of a number as an integer with the same order; both zeros have one sign here.
template <class R>
Integer<R> ordered(R value) {
  const auto bits = std::bit_cast<Integer<R>>(value);
  return bits < 0 ? bits ^ std::numeric_limits<Integer<R>>::max() : bits;
}

/// A chosen key; the better key compares less.
template <class R>
struct Choice {
  R score;
  Integer<R> index;

  bool operator<(const Choice& other) const {
    return score != other.score ? score > other.score : index < other.index;
  }
};

/// Memory that queries share while they prune and sort.
template <class R>
struct PruneMemory {
  Integer<R>* order;
  Choice<R>* best;
};

/// Keys above the threshold so far, in the order of their indices. Once the buffer has been full,
/// the threshold is the k-th best score. A later key must be better than that, since among equal
/// scores the lower index wins.
template <class R>
class Candidates {
 public:
  Candidates() = default;
  Candidates(R* values, Integer<R>* indices, int64_t capacity, int64_t k)
      : values_(values), indices_(indices), capacity_(capacity), k_(k) {}

  R threshold() const { return threshold_; }

  /// Adds the lanes of `keep`; lane 0 is key `first`.
  HWY_INLINE void add(Vec<R> scores, hn::Mask<Tag<R>> keep, int64_t first) {
    const Tag<R> d;
    const hn::RebindToSigned<Tag<R>> di;
    const auto index = hn::Iota(di, static_cast<Integer<R>>(first));
    // Not CompressStore: the instruction takes about 140 cycles to memory on Zen 4.
    hn::StoreU(hn::Compress(scores, keep), d, values_ + count_);
    hn::StoreU(hn::Compress(index, hn::RebindMask(di, keep)), di, indices_ + count_);
    count_ += static_cast<int64_t>(hn::CountTrue(d, keep));
  }

  /// Makes room for the keys of one more panel.
  HWY_INLINE void make_room(const PruneMemory<R>& memory) {
    if (count_ + 2 * kPanelKeys > capacity_) prune(memory);
  }

  /// Writes the k best, best first, and -1 after them.
  void finish(const PruneMemory<R>& memory, int64_t* indices, R* scores) {
    if (count_ > k_) prune(memory);
    for (int64_t c = 0; c < count_; ++c) memory.best[c] = {values_[c], indices_[c]};
    std::sort(memory.best, memory.best + count_);
    for (int64_t c = 0; c < count_; ++c) {
      indices[c] = memory.best[c].index;
      scores[c] = memory.best[c].score;
    }
    std::fill(indices + count_, indices + k_, int64_t{-1});
    std::fill(scores + count_, scores + k_, -std::numeric_limits<R>::infinity());
  }

 private:
  /// Keeps the k best; the worst of them becomes the threshold.
  void prune(const PruneMemory<R>& memory) {
    if (count_ <= k_) return;
    for (int64_t c = 0; c < count_; ++c) memory.order[c] = ordered(values_[c]);
    const Integer<R> bound = beaten_by_most(memory.order);
    int64_t equals = k_;  // the first keys with exactly this score fill the remaining places
    for (int64_t c = 0; c < count_; ++c) equals -= memory.order[c] > bound;
    int64_t kept = 0;
    threshold_ = std::numeric_limits<R>::infinity();
    for (int64_t c = 0; c < count_; ++c) {
      const bool equal = memory.order[c] == bound && equals > 0;
      equals -= equal;
      const bool keep = equal || memory.order[c] > bound;
      const R value = values_[c];
      threshold_ = keep && value < threshold_ ? value : threshold_;
      values_[kept] = value;  // without a branch: the next key overwrites a removed one
      indices_[kept] = indices_[c];
      kept += keep;
    }
    count_ = kept;
  }

  /// A number that at most k keys beat and at least k beat or equal. It is built bit by bit from
  /// the highest: the largest number that k keys reach, unless an earlier one is reached by exactly
  /// k. The lowest number pads the last vector; candidates are never as low.
  Integer<R> beaten_by_most(Integer<R>* order) const {
    using Unsigned = std::make_unsigned_t<Integer<R>>;
    constexpr int kBits = 8 * sizeof(R);
    constexpr Unsigned kSign = Unsigned{1} << (kBits - 1);
    const hn::RebindToSigned<Tag<R>> di;
    constexpr auto kStep = static_cast<int64_t>(kLanes<R>);
    const int64_t padded = round_up(count_, kStep);
    std::fill(order + count_, order + padded, std::numeric_limits<Integer<R>>::min());
    Unsigned found = 0;
    for (int bit = kBits - 1; bit >= 0; --bit) {
      const Unsigned tried = found | (Unsigned{1} << bit);
      const auto bound = hn::Set(di, static_cast<Integer<R>>(tried ^ kSign));
      auto below = hn::Zero(di);  // a true lane is -1
      for (int64_t c = 0; c < padded; c += kStep) {
        below = hn::Sub(below, hn::VecFromMask(di, hn::Lt(hn::Load(di, order + c), bound)));
      }
      const int64_t reached = padded - hn::GetLane(hn::SumOfLanes(di, below));
      if (reached == k_) return static_cast<Integer<R>>((tried - 1) ^ kSign);
      if (reached > k_) found = tried;
    }
    return static_cast<Integer<R>>(found ^ kSign);
  }

  R* values_ = nullptr;
  Integer<R>* indices_ = nullptr;
  int64_t capacity_ = 0, k_ = 0, count_ = 0;
  R threshold_ = -std::numeric_limits<R>::infinity();
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::topk
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
