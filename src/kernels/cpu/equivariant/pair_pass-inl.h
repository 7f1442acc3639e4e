// Attention by pairs: one pass over the groups of a task, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_PASS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_PASS_INL_H_
#undef NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_PASS_INL_H_
#else
#define NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_PASS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/cpu/equivariant/equivariant_layout.h"
#include "kernels/cpu/equivariant/pair_tile-inl.h"
#include "kernels/cpu/equivariant/tuple_attention.h"
#include "kernels/cpu/shared/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {

constexpr int kRows = 4;  // rows of a side that share what is loaded of the other

/// One pass over a task: rows of one side against panels of the other.
template <class T>
class PairPass {
 public:
  PairPass(const PairAttention<T>& problem, TupleSide side, bool backward, void* scratch)
      : problem_(problem), side_(side), backward_(backward) {
    T* at = static_cast<T*>(scratch);
    const auto take = [&](int64_t count) {
      T* const own = at;
      at += count;
      return own;
    };
    const int64_t width = problem.query.width, wide = problem.value.width + 1;
    first_ = take(pair_panels(problem.heads, width));
    second_ = take(pair_panels(problem.heads, wide));
    shifts_ = take(problem.heads * kPairChunk);
    weights_ = take(kRows * kPairChunk);
    factors_ = take(kRows * kPairChunk);
    keep_ = take(kRows * kPairChunk);
    own_first_ = take(kRows * pair_padded(width));
    own_second_ = take(kRows * pair_padded(wide));
    std::fill(own_first_, at, T{0});
    nodes_ = reinterpret_cast<int32_t*>(at);
  }

  void run(const GroupTask& task) {
    const TupleRelation& relation = problem_.relation;
    const int32_t* const row_offsets = by_query() ? relation.query_offsets : relation.key_offsets;
    const int32_t* const other_offsets = by_query() ? relation.key_offsets : relation.query_offsets;
    const int32_t* const rows = by_query() ? relation.queries : relation.keys;
    const int32_t* const others = by_query() ? relation.keys : relation.queries;
    for (int64_t g = task.group_begin; g < task.group_end; ++g) {
      if (relation.key_offsets[g + 1] - relation.key_offsets[g] > problem_.largest_group) continue;
      const int64_t count = row_offsets[g + 1] - row_offsets[g];
      const int64_t begin = task.row_begin;
      const int64_t end = task.row_end > 0 ? task.row_end : count;
      if (begin >= end) continue;
      const int32_t* const own = rows + row_offsets[g];
      for (int64_t o = other_offsets[g]; o < other_offsets[g + 1]; o += kPairChunk) {
        const int64_t columns = std::min<int64_t>(kPairChunk, other_offsets[g + 1] - o);
        meet({own + begin, own + end}, others + o, columns);
      }
    }
  }

 private:
  void meet(std::span<const int32_t> rows, const int32_t* others, int64_t columns) {
    for (int64_t h = 0; h < problem_.heads; ++h) pack(others, columns, h);
    pack_nodes(others, columns);
    for (; rows.size() > 1; rows = rows.subspan(std::min<size_t>(kRows, rows.size()))) {
      block<kRows>(rows, columns);
    }
    if (!rows.empty()) block<1>(rows, columns);
  }

  bool by_query() const { return side_ == TupleSide::queries; }
  bool softmax() const { return problem_.weight == PairWeight::softmax; }
  // If weights are products, the gradient of a query does not depend on them.
  bool needs_weights() const { return !backward_ || !by_query() || softmax(); }

  PairPanel<T> scored(int64_t columns, int64_t head) const {
    return {first_, problem_.query.width, columns, head};
  }
  PairPanel<T> summed(int64_t columns, int64_t head) const {
    return {second_, problem_.value.width + 1, columns, head};
  }

  HeadRows<T> grad() const {
    const int64_t wide = problem_.value.width + 1;
    return {problem_.grad, problem_.heads * wide, wide};
  }

  // The other side's rows; the value gets a channel of ones.
  void pack(const int32_t* rows, int64_t columns, int64_t head) {
    const PairPanel<T> first = scored(columns, head), second = summed(columns, head);
    const bool reduced = !backward_ || !by_query();
    first.pack(by_query() ? problem_.key : problem_.query, rows, head, needs_weights(), backward_);
    second.pack(by_query() ? problem_.value : grad(), rows, head, backward_, reduced);
    if (by_query()) return second.set_ones(problem_.value.width);
    if (!softmax()) return;
    T* const shifts = shifts_ + head * kPairChunk;
    for (int64_t j = 0; j < columns; ++j) {
      shifts[j] = problem_.shift[rows[j] * problem_.heads + head];
    }
  }

  // The other side's nodes, which are compared with a row's nodes block by block.
  void pack_nodes(const int32_t* rows, int64_t columns) {
    if (problem_.key_only == 0 || problem_.query_only == 0) return;
    const auto nodes = by_query() ? problem_.key_nodes : problem_.query_nodes;
    const int64_t blocks = by_query() ? problem_.key_only : problem_.query_only;
    for (int64_t b = 0; b < blocks; ++b) {
      for (int64_t j = 0; j < columns; ++j) nodes_[b * kPairChunk + j] = nodes[b][rows[j]];
    }
  }

  // The row's own numbers, next to those of its neighbours.
  void take_own(int64_t row, int64_t head, int r) {
    const int64_t width = problem_.query.width, wide = problem_.value.width + 1;
    copy_row((by_query() ? problem_.query : problem_.key).row(row, head), width,
             own_first_ + r * pair_padded(width));
    if (!backward_) return;
    T* const own = own_second_ + r * pair_padded(wide);
    if (by_query()) {
      copy_row(grad().row(row, head), wide, own);
    } else {
      copy_row(problem_.value.row(row, head), wide - 1, own);
      own[wide - 1] = 1;
    }
  }

  // keep[j]: 1 if the row and column j may meet, otherwise 0.
  void find_kept(int64_t row, int64_t columns, T* keep) {
    const int64_t own_blocks = by_query() ? problem_.query_only : problem_.key_only;
    const int64_t other_blocks = by_query() ? problem_.key_only : problem_.query_only;
    const auto own = by_query() ? problem_.query_nodes : problem_.key_nodes;
    std::fill(keep, keep + columns, T{1});
    for (int64_t b = 0; b < other_blocks; ++b) {
      const int32_t* const nodes = nodes_ + b * kPairChunk;
      for (int64_t a = 0; a < own_blocks; ++a) {
        const int32_t node = own[a][row];
        for (int64_t j = 0; j < columns; ++j) keep[j] = nodes[j] == node ? T{0} : keep[j];
      }
    }
  }

  // Up to kCount rows against all packed columns. Products of kCount rows take no longer than those
  // of one row, which wait for each other.
  template <int kCount>
  void block(std::span<const int32_t> rows, int64_t columns) {
    const bool some_left_out = problem_.key_only > 0 && problem_.query_only > 0;
    const int count = static_cast<int>(std::min<size_t>(kCount, rows.size()));
    const int64_t padded = whole_vectors<T>(columns);
    for (int r = 0; r < count; ++r) {
      T* const keep = keep_ + r * kPairChunk;
      if (some_left_out) {
        find_kept(rows[r], columns, keep);
      } else {
        std::fill(keep, keep + columns, T{1});
      }
      std::fill(keep + columns, keep + padded, T{0});
    }
    for (int64_t h = 0; h < problem_.heads; ++h) {
      for (int r = 0; r < count; ++r) take_own(rows[r], h, r);
      if (needs_weights()) {
        scored(columns, h).template project<kCount>(own_first_, weights_);
        for (int r = 0; r < count; ++r) {
          T* const weight = weights_ + r * kPairChunk;
          const T* const keep = keep_ + r * kPairChunk;
          if (softmax()) {
            exponentials(rows[r], h, columns, padded, some_left_out ? keep : nullptr, weight);
          } else {
            for (int64_t j = 0; j < padded; ++j) weight[j] *= keep[j];
          }
        }
      }
      const auto own = rows.first(count);
      if (backward_) {
        gradients<kCount>(own, columns, h);
      } else {
        add<kCount>(problem_.sums, problem_.value.width + 1, own, h, weights_, summed(columns, h),
                    1);
      }
    }
  }

  // Scores to weights. In the forward pass the row's shift is a running maximum, and its sums
  // follow it.
  void exponentials(int64_t row, int64_t head, int64_t columns, int64_t padded, const T* keep,
                    T* weight) {
    constexpr T kNone = -std::numeric_limits<T>::infinity();
    if (keep != nullptr) {
      for (int64_t j = 0; j < columns; ++j) weight[j] = keep[j] == 0 ? kNone : weight[j];
    }
    const int64_t state = row * problem_.heads + head;
    if (side_ == TupleSide::keys) {
      const T* const shifts = shifts_ + head * kPairChunk;
      for (int64_t j = 0; j < columns; ++j) weight[j] -= shifts[j];
    } else {
      const T shift = backward_ ? problem_.shift[state] : raised(state, weight, columns);
      for (int64_t j = 0; j < columns; ++j) weight[j] -= shift;
    }
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t j = 0; j < padded; j += lanes) {
      hn::StoreU(dense::HWY_NAMESPACE::exp2(hn::LoadU(d, weight + j)), d, weight + j);
    }
    std::fill(weight + columns, weight + padded, T{0});
  }

  T raised(int64_t state, const T* scores, int64_t columns) {
    constexpr T kNone = -std::numeric_limits<T>::infinity();
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    auto largest = hn::Set(d, kNone);
    auto unordered = hn::IsNaN(largest);
    int64_t j = 0;
    for (; j + lanes <= columns; j += lanes) {
      const auto own = hn::LoadU(d, scores + j);
      const auto nan = hn::IsNaN(own);
      largest = hn::Max(largest, hn::IfThenElse(nan, hn::Set(d, kNone), own));
      unordered = hn::Or(unordered, nan);
    }
    T most = std::max(problem_.shift[state], hn::GetLane(hn::MaxOfLanes(d, largest)));
    bool finite = hn::AllFalse(d, unordered);
    for (; j < columns; ++j) {
      most = std::max(most, scores[j]);
      finite &= scores[j] == scores[j];
    }
    // Nothing may meet, and no NaN must be propagated: weights of 0.
    if (std::isinf(most) && most < 0) return finite ? T{0} : most;
    T& shift = problem_.shift[state];
    if (most > shift) {
      const double factor = std::exp2(static_cast<double>(shift) - static_cast<double>(most));
      const int64_t wide = problem_.value.width + 1;
      double* const sums = problem_.sums + state * wide;
      for (int64_t c = 0; c < wide; ++c) sums[c] *= factor;
      shift = most;
    }
    return shift;
  }

  template <int kCount>
  void add(double* to, int64_t width, std::span<const int32_t> rows, int64_t head, const T* weights,
           const PairPanel<T>& panel, double factor) {
    double* places[kCount] = {};
    for (size_t r = 0; r < rows.size(); ++r) {
      places[r] = to + (rows[r] * problem_.heads + head) * width;
    }
    panel.template reduce<kCount>(weights, width, static_cast<int>(rows.size()), factor, places);
  }

  template <int kCount>
  void gradients(std::span<const int32_t> rows, int64_t columns, int64_t head) {
    const PairPanel<T> first = scored(columns, head), second = summed(columns, head);
    if (!by_query()) {
      add<kCount>(problem_.grad_value, problem_.value.width, rows, head, weights_, second, 1);
    }
    // The gradient of a score: that of its weight, times the weight of a softmax.
    second.template project<kCount>(own_second_, factors_);
    const T* const times = softmax() ? weights_ : keep_;
    const int64_t padded = whole_vectors<T>(columns);
    for (size_t r = 0; r < rows.size(); ++r) {
      T* const slope = factors_ + r * kPairChunk;
      const T* const time = times + r * kPairChunk;
      for (int64_t j = 0; j < padded; ++j) slope[j] *= time[j];
    }
    // d 2^(q . k) = ln 2 2^(q . k), since the base is in the query.
    const double factor = softmax() ? 0.69314718055994530942 : 1;
    add<kCount>(by_query() ? problem_.grad_query : problem_.grad_key, problem_.query.width, rows,
                head, factors_, first, factor);
  }

  const PairAttention<T>& problem_;
  TupleSide side_;
  bool backward_;
  T *first_, *second_;  // panels of all heads; scores are products with the first
  T *weights_, *factors_, *shifts_, *keep_, *own_first_, *own_second_;
  int32_t* nodes_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
