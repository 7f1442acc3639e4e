// A block of rows with its online softmax, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_FORWARD_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_FORWARD_BLOCK_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_FORWARD_BLOCK_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_FORWARD_BLOCK_INL_H_
#endif

#include <cstring>
#include <limits>

#include "kernels/common/softmax_state.h"
#include "kernels/cpu/dense/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// A block's rows against the panels of the inner axis:
///   S = U K^T,  P = 2^(S - max),  sums += P 1,  Y += P V
/// with one running maximum an item. Its owner fills `block` and `u`, and takes `y` and `sums`.
template <class T>
class ForwardBlock {
  using R = Accum<T>;

 public:
  ForwardBlock(const DenseProblem<T>& problem, const Geometry& geometry, const HeadPack<R>& pack,
               Arena<R>& arena)
      : u(arena.take(kBlockRows * geometry.depth)),
        y(arena.take(kBlockRows * geometry.value_depth)),
        sums(arena.take(kBlockRows * kLanes<R>)),
        total(arena.take(kChunkItems * geometry.value_depth)),
        geometry_(geometry),
        pack_(pack),
        dim_(problem.dim),
        p_(arena.take(kStripRows * kPanelKeys)) {}

  /// Forgets all items; their totals are zero.
  void start_items(int count) {
    for (int i = 0; i < count; ++i) state[i].init();
    state[kChunkItems].max = 0;  // of padding rows
    std::memset(total, 0, count * geometry_.value_depth * sizeof(R));
  }

  /// Runs the rows that `block` holds.
  void run() {
    const int rows = block.padded_rows();
    const int64_t width = geometry_.value_depth;
    block.pad(u, geometry_.depth);
    for (int r = 0; r < rows; ++r) set_bias(r);
    std::memset(y, 0, rows * width * sizeof(R));
    std::memset(sums, 0, rows * kLanes<R> * sizeof(R));
    const Range hull = block.hull();
    for (int64_t first = hull.begin / kPanelKeys * kPanelKeys; first < hull.end;
         first += kPanelKeys) {
      for (int row = 0; row < rows; row += kStripRows) {
        const PanelPart<R> part(first, block.inner + row);
        if (part.empty()) continue;
        score_strip(part, row);
        add_product(
            y + row * width, width, kStripRows, p_ + part.begin, kPanelKeys, 1,
            pack_.values[geometry_.inner()] + (first - pack_.inner_begin + part.begin) * width,
            width, part.end - part.begin, width);
      }
    }
  }

  Block block;
  R* const u;      // [kBlockRows, depth]        s1 log2 e query o leading keys
  R* const y;      // [kBlockRows, value_depth]  weights times inner values
  R* const sums;   // [kBlockRows, kLanes<R>]       sums of weights, lane by lane
  R* const total;  // [kChunkItems, value_depth] weighted values of every item
  SoftmaxState<R> state[kChunkItems + 1];  // the last one stands for padding rows

 private:
  void set_bias(int row) {
    const SoftmaxState<R>& own = state[block.item[row]];
    bias_[row] = own.fresh() ? R{0} : -own.max;
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
    for (int r = 0; r < kStripRows; r += kTile.score_rows) {
      int v = part.vector;
      for (; v + kTile.score_vectors <= part.vector_end; v += kTile.score_vectors) {
        score_tile<kTile.score_vectors, kMasking>(part, strip, r, v);
      }
      for (; v < part.vector_end; ++v) score_tile<1, kMasking>(part, strip, r, v);
    }
  }

  // The tile of rows from `row` of the strip and kVectors vectors from `vector`.
  template <int kVectors, Masking kMasking>
  HWY_INLINE void score_tile(const PanelPart<R>& part, int strip, int row, int vector) {
    constexpr int kRows = kTile.score_rows;
    const Tag<R> d;
    const R* const bias = bias_ + strip + row;
    const int* const item = block.item + strip + row;
    R* const p = p_ + row * kPanelKeys + vector * kLanes<R>;
    R* const row_sums = sums + (strip + row) * kLanes<R>;
    Tile<R, kRows, kVectors> s;
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) s.at[r][v] = hn::Zero(d);
    }
    s.multiply_add(u + (strip + row) * geometry_.depth, geometry_.depth, 1,
                   pack_.keys_t + (part.first - pack_.inner_begin) * dim_ + vector * kLanes<R>,
                   kPanelKeys, dim_);
    // After the sum, as backward does, so that both round scores alike.
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Vec<R> shift = hn::Set(d, bias[r]);
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) s.at[r][v] = hn::Add(s.at[r][v], shift);
    }
    mask_scores<kMasking>(s, part, row, vector);
    // x86 returns the second operand when one is NaN: NaN never hides a large score of another row.
    Vec<R> largest = s.at[0][0];
    bool fresh = false;
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      fresh |= state[item[r]].fresh();
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) largest = hn::Max(s.at[r][v], largest);
    }
    if (HWY_UNLIKELY(fresh ||
                     !hn::AllTrue(d, hn::Le(largest, hn::Set(d, SoftmaxState<R>::kSlack))))) {
      NSIMPLEX_UNROLL
      for (int r = 0; r < kRows; ++r) {
        NSIMPLEX_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          hn::Store(s.at[r][v], d, p + r * kPanelKeys + v * kLanes<R>);
        }
      }
      raise_maxima(part, strip, row, vector, kVectors);
      NSIMPLEX_UNROLL
      for (int r = 0; r < kRows; ++r) {
        NSIMPLEX_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          s.at[r][v] = hn::Load(d, p + r * kPanelKeys + v * kLanes<R>);
        }
      }
    }
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      Vec<R> sum = hn::Load(d, row_sums + r * kLanes<R>);
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const Vec<R> weight = exp2(s.at[r][v]);
        hn::Store(weight, d, p + r * kPanelKeys + v * kLanes<R>);
        sum = hn::Add(sum, weight);
      }
      hn::Store(sum, d, row_sums + r * kLanes<R>);
    }
  }

  // Scores of a tile lie in P, minus the maxima of before: raises maxima where they ask for it and
  // subtracts the new ones instead.
  HWY_NOINLINE void raise_maxima(const PanelPart<R>& part, int strip, int row, int vector,
                                 int vectors) {
    const Tag<R> d;
    R used[kTile.score_rows];
    for (int r = 0; r < kTile.score_rows; ++r) used[r] = -bias_[strip + row + r];
    for (int r = 0; r < kTile.score_rows; ++r) {
      const int item = block.item[strip + row + r];
      if (item == kChunkItems) break;
      const R* const scores = p_ + (row + r) * kPanelKeys + vector * kLanes<R>;
      Vec<R> largest = hn::Load(d, scores);
      for (int v = 1; v < vectors; ++v) {
        largest = hn::Max(hn::Load(d, scores + v * kLanes<R>), largest);
      }
      const R top = hn::GetLane(hn::MaxOfLanes(d, largest));
      // No admissible key. Highway 1.0.3's EMU128 makes the lowest finite number of minus infinity.
      if (top <= std::numeric_limits<R>::lowest()) continue;
      const R logit = top + used[r];
      if (state[item].exceeded_by(logit)) raise_item(logit, part, strip, row + r, vector);
    }
    for (int r = 0; r < kTile.score_rows; ++r) {
      const R shift = -bias_[strip + row + r] - used[r];
      if (shift == R{0}) continue;
      for (int v = 0; v < vectors; ++v) {
        R* const scores = p_ + (row + r) * kPanelKeys + (vector + v) * kLanes<R>;
        hn::Store(hn::Sub(hn::Load(d, scores), hn::Set(d, shift)), d, scores);
      }
    }
  }

  // Gives the item of a row a new maximum and brings everything summed for it so far to the new
  // scale: its total, the block's Y and row sums, and weights of the strip computed before `vector`
  // of this tile. Other strips' weights are in Y already.
  void raise_item(R max, const PanelPart<R>& part, int strip, int row, int vector) {
    const int item = block.item[strip + row];
    const int64_t width = geometry_.value_depth;
    const bool fresh = state[item].fresh();
    const R factor = state[item].raise(max);
    if (!fresh) scale_row(total + item * width, factor, width);
    int first = strip + row;  // an item's rows are neighbours
    while (first > 0 && block.item[first - 1] == item) --first;
    const int tile = row / kTile.score_rows * kTile.score_rows;
    for (int r = first; r < block.rows && block.item[r] == item; ++r) {
      set_bias(r);
      if (fresh) continue;
      scale_row(y + r * width, factor, width);
      scale_row(sums + r * kLanes<R>, factor, kLanes<R>);
      const int in_strip = r - strip;
      if (in_strip < 0 || in_strip >= tile + kTile.score_rows) continue;
      const int done = in_strip < tile ? part.vector_end : vector;
      scale_row(p_ + in_strip * kPanelKeys + part.vector * kLanes<R>, factor,
                (done - part.vector) * kLanes<R>);
    }
  }

  const Geometry& geometry_;
  const HeadPack<R>& pack_;
  const int64_t dim_;
  R* const p_;          // [kStripRows, kPanelKeys]   scores of a strip, then weights
  R bias_[kBlockRows];  // minus the maximum that the next scores are relative to
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
