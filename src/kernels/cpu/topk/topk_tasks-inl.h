// The tasks of the top-k kernel, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_TOPK_TASKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_TOPK_TASKS_INL_H_
#undef NSIMPLEX_KERNELS_TOPK_TASKS_INL_H_
#else
#define NSIMPLEX_KERNELS_TOPK_TASKS_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "kernels/cpu/shared/exp2-inl.h"
#include "kernels/cpu/shared/pack-inl.h"
#include "kernels/cpu/topk/topk_candidates-inl.h"
#include "kernels/cpu/topk/topk_layout.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::topk {
namespace HWY_NAMESPACE {

using dense::HWY_NAMESPACE::kTile;
template <class R>
using ScoreTile = dense::HWY_NAMESPACE::Tile<R, kTile.score_rows, kTile.score_vectors>;

/// Transposes some panels of one key head. Keys that no query may see are not read.
template <class R>
void pack_task(const TopkProblem<R>& problem, int64_t task, R* workspace) {
  const int64_t chunks = ceil_div(panels(problem), kPackPanels);
  const int64_t head = task / chunks % problem.kv_heads, batch = task / chunks / problem.kv_heads;
  const int64_t begin = task % chunks * kPackPanels * kPanelKeys;
  const int64_t end =
      std::min(begin + kPackPanels * kPanelKeys, round_up(problem.visible.length, kPanelKeys));
  const Range seen =
      visible_keys(problem.visible, batch, problem.visible.queries(batch, problem.queries));
  const dense::Channels channels{.chunks = problem.dim};
  R* const packed = workspace + (batch * problem.kv_heads + head) * packed_head(problem);
  const auto row_of = [&](int64_t row) {
    return row >= seen.begin && row < seen.end ? problem.key.row(batch, head, row) : nullptr;
  };
  dense::HWY_NAMESPACE::pack_panels(row_of, {begin, end}, channels, 0, packed);
}

/// Chooses the keys of up to kBlockRows neighbouring queries. Panel after panel, the scores are
/// summed over heads, and those above a query's threshold become its candidates.
template <class R>
class ChooseTask {
 public:
  ChooseTask(const TopkProblem<R>& problem, const R* packed, char* memory)
      : problem_(problem), packed_(packed), layout_(problem) {
    const auto at = [&](size_t offset) { return reinterpret_cast<R*>(memory + offset); };
    query_ = at(layout_.query);
    scores_ = at(layout_.scores);
    weights_ = at(layout_.weights);
    lse_ = at(layout_.lse);
    values_ = at(layout_.values);
    indices_ = reinterpret_cast<Integer<R>*>(memory + layout_.indices);
    prune_ = {reinterpret_cast<Integer<R>*>(memory + layout_.order),
              reinterpret_cast<Choice<R>*>(memory + layout_.best)};
  }

  void run(int64_t batch, int64_t first_query) {
    begin(batch, first_query);
    const Range hull = visible_keys(problem_.visible, batch, {first_, first_ + rows_});
    for (int64_t key = hull.begin / kPanelKeys * kPanelKeys; key < hull.end; key += kPanelKeys) {
      score_panel(key);
      for (int r = 0; r < rows_; ++r) take_row(r, key);
    }
    for (int r = 0; r < rows_; ++r) {
      const int64_t row = (batch_ * problem_.queries + first_ + r) * problem_.k;
      candidates_[r].finish(prune_, problem_.indices + row, problem_.scores + row);
    }
  }

 private:
  bool softmax() const { return problem_.lse != nullptr; }

  /// Queries scaled, weights and lse by (head, row), empty candidates.
  void begin(int64_t batch, int64_t first_query) {
    batch_ = batch;
    first_ = first_query;
    rows_ = static_cast<int>(std::min<int64_t>(kBlockRows, problem_.queries - first_query));
    padded_rows_ = static_cast<int>(round_up(rows_, kStripRows));
    const double unit = softmax() ? kLog2E : 1.0;
    const R factor = static_cast<R>(problem_.logit_scale * unit);
    const int64_t buffer = buffer_size(problem_);
    for (int64_t h = 0; h < problem_.heads; ++h) {
      for (int r = 0; r < padded_rows_; ++r) {
        R* const row = query_ + (h * kBlockRows + r) * problem_.dim;
        R &weight = weights_[h * kBlockRows + r], &lse = lse_[h * kBlockRows + r];
        weight = lse = R{0};
        if (r >= rows_) {
          std::fill(row, row + problem_.dim, R{0});
          continue;
        }
        const R* const from = problem_.query.row(batch, h, first_query + r);
        for (int64_t c = 0; c < problem_.dim; ++c) row[c] = factor * from[c];
        const int64_t entry = (batch * problem_.heads + h) * problem_.queries + first_query + r;
        weight = problem_.weights ? problem_.weights[entry] : R{1};
        if (!softmax()) continue;
        lse = problem_.lse[entry] * static_cast<R>(kLog2E);
        // The head has no weights for this query.
        if (problem_.lse[entry] == -std::numeric_limits<R>::infinity()) lse = -lse;
      }
    }
    for (int r = 0; r < rows_; ++r) {
      candidates_[r] =
          Candidates<R>(values_ + r * buffer, indices_ + r * buffer, buffer, problem_.k);
    }
  }

  void score_panel(int64_t key) {
    std::fill(scores_, scores_ + padded_rows_ * kPanelKeys, R{0});
    const int64_t group = problem_.heads / problem_.kv_heads;
    for (int64_t h = 0; h < problem_.heads; ++h) {
      const R* const panel = packed_ + h / group * packed_head(problem_) + key * problem_.dim;
      for (int v = 0; v < kPanelKeys / kLanes<R>; v += kTile.score_vectors) {
        for (int r = 0; r < padded_rows_; r += kTile.score_rows) {
          if (softmax()) {
            score_tile<true>(h, r, v, panel);
          } else {
            score_tile<false>(h, r, v, panel);
          }
        }
      }
    }
  }

  template <bool kSoftmax>
  HWY_INLINE void score_tile(int64_t head, int row, int vector, const R* panel) {
    const Tag<R> d;
    const R* const query = query_ + (head * kBlockRows + row) * problem_.dim;
    ScoreTile<R> tile;
    NSIMPLEX_UNROLL
    for (int r = 0; r < kTile.score_rows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kTile.score_vectors; ++v) tile.at[r][v] = hn::Zero(d);
    }
    tile.template multiply_add<R>(query, problem_.dim, 1, panel + vector * kLanes<R>, kPanelKeys,
                                  problem_.dim);
    NSIMPLEX_UNROLL
    for (int r = 0; r < kTile.score_rows; ++r) {
      const auto weight = hn::Set(d, weights_[head * kBlockRows + row + r]);
      const auto lse = hn::Set(d, lse_[head * kBlockRows + row + r]);
      R* const sums = scores_ + (row + r) * kPanelKeys + vector * kLanes<R>;
      NSIMPLEX_UNROLL
      for (int v = 0; v < kTile.score_vectors; ++v) {
        const auto act = activate<kSoftmax>(tile.at[r][v], lse);
        R* const sum = sums + v * kLanes<R>;
        hn::Store(hn::MulAdd(weight, act, hn::Load(d, sum)), d, sum);
      }
    }
  }

  /// Comparisons instead of maxima, so that NaN stays NaN.
  template <bool kSoftmax>
  HWY_INLINE Vec<R> activate(Vec<R> logit, Vec<R> lse) const {
    const Tag<R> d;
    if constexpr (kSoftmax) {
      // An lse of other logits may be far below these.
      const auto most = hn::Set(d, static_cast<R>(std::numeric_limits<R>::max_exponent - 1));
      const auto power = hn::Sub(logit, lse);
      return dense::HWY_NAMESPACE::exp2(hn::IfThenElse(hn::Gt(power, most), most, power));
    } else {
      return hn::IfThenZeroElse(hn::Lt(logit, hn::Zero(d)), logit);
    }
  }

  /// The keys of one panel that query `r` may see and that beat its threshold.
  void take_row(int r, int64_t key) {
    const Tag<R> d;
    const Range range = problem_.visible.of(batch_, first_ + r);
    const int low = static_cast<int>(std::clamp<int64_t>(range.begin - key, 0, kPanelKeys));
    const int high = static_cast<int>(std::clamp<int64_t>(range.end - key, 0, kPanelKeys));
    Candidates<R>& candidates = candidates_[r];
    candidates.make_room(prune_);
    const bool* const admissible = problem_.admissible(batch_, first_ + r);
    const auto threshold = hn::Set(d, candidates.threshold());
    for (int column = low / kLanes<R> * kLanes<R>; column < high; column += kLanes<R>) {
      const auto scores = hn::Load(d, scores_ + r * kPanelKeys + column);
      auto keep = hn::Gt(scores, threshold);
      if (hn::AllFalse(d, keep)) continue;
      keep = hn::And(keep, dense::HWY_NAMESPACE::within<R>(column, low, high));
      if (admissible) keep = hn::And(keep, listed(admissible + key, column, low, high));
      candidates.add(scores, keep, key + column);
    }
  }

  /// Lanes of the columns from `column` on whose flag is set. Flags outside [low, high) are not
  /// read.
  static hn::Mask<Tag<R>> listed(const bool* flags, int column, int low, int high) {
    const Tag<R> d;
    HWY_ALIGN R lanes[kLanes<R>];
    for (int c = 0; c < kLanes<R>; ++c) {
      const int place = column + c;
      lanes[c] = place >= low && place < high && flags[place] ? R{1} : R{0};
    }
    return hn::Gt(hn::Load(d, lanes), hn::Zero(d));
  }

  const TopkProblem<R>& problem_;
  const R* packed_;
  Scratch<R> layout_;
  R *query_, *scores_, *weights_, *lse_, *values_;
  Integer<R>* indices_;
  PruneMemory<R> prune_;
  Candidates<R> candidates_[kBlockRows];
  int64_t batch_ = 0, first_ = 0;
  int rows_ = 0, padded_rows_ = 0;
};

template <class R>
void run_task(const TopkProblem<R>& problem, int phase, int64_t task, void* workspace,
              void* scratch) {
  R* const packed = static_cast<R*>(workspace);
  if (phase == 0) return pack_task(problem, task, packed);
  const int64_t blocks = ceil_div(problem.queries, kBlockRows);
  // With a causal mask the last queries see the most keys. They go first, so that the work ends
  // evenly.
  const int64_t batch = task / blocks, block = blocks - 1 - task % blocks;
  ChooseTask<R>(problem, packed + batch * problem.kv_heads * packed_head(problem),
                static_cast<char*>(scratch))
      .run(batch, block * kBlockRows);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::topk
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
