// Forward pass of the dense kernel, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_FORWARD_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_FORWARD_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_FORWARD_INL_H_
#endif

#include <limits>

#include "kernels/common/softmax_state.h"
#include "kernels/cpu/dense/pack-inl.h"
#include "kernels/cpu/dense/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// One task: a run of items of one key/value head against all their tuples. For a block of rows
///   S = U K^T,  P = 2^(S - max),  Y += P V        (K, V of the inner axis, a panel at a time)
/// and at its end every row adds (its leading values) o Y to its item.
class ForwardTask {
 public:
  ForwardTask(const DenseForward<float>& problem, const Geometry& geometry, const HeadPack& pack,
              int64_t batch, int64_t head, void* scratch)
      : problem_(problem),
        geometry_(geometry),
        pack_(pack),
        batch_(batch),
        head_(head),
        active_(problem.active_queries(batch)),
        arena_(scratch),
        u_(arena_.take(kBlockRows * geometry.depth)),
        p_(arena_.take(kStripRows * kPanelKeys)),
        y_(arena_.take(kBlockRows * geometry.value_depth)),
        w_(arena_.take(kBlockRows * geometry.value_depth)),
        sums_(arena_.take(kBlockRows * kLanes)),
        query_(arena_.take(geometry.depth)),
        total_(arena_.take(kChunkItems * geometry.value_depth)),
        key_prefix_(arena_, geometry.inner(), geometry.depth),
        value_prefix_(arena_, geometry.inner(), geometry.value_depth) {}

  void run(Range items) {
    for (int64_t first = items.begin; first < items.end; first += kChunkItems) {
      run_chunk(first, static_cast<int>(std::min<int64_t>(items.end - first, kChunkItems)));
    }
  }

 private:
  void run_chunk(int64_t first, int count) {
    const int64_t width = geometry_.value_depth;
    for (int i = 0; i < count; ++i) state_[i].init();
    state_[kChunkItems].max = 0.0f;  // of padding rows
    std::memset(total_, 0, count * width * sizeof(float));
    for (int i = 0; i < count; ++i) {
      const int64_t query = (first + i) / geometry_.group;
      if (query >= active_.begin && query < active_.end) add_item(first + i, i);
    }
    if (block_.rows > 0) finish_block();
    for (int i = 0; i < count; ++i) write_item(first + i, i);
  }

  int64_t query_head(int64_t item) const {
    return head_ * geometry_.group + item % geometry_.group;
  }

  // Appends one row for each leading tuple of an item.
  void add_item(int64_t item, int slot) {
    const int64_t query = item / geometry_.group;
    const float scale = static_cast<float>(problem_.logit_scale * kLog2E);
    copy_padded(query_, problem_.query.row(batch_, query_head(item), query), problem_.dim,
                geometry_.depth);
    scale_row(query_, scale, geometry_.depth);
    const Range inner = problem_.axes[geometry_.axis[geometry_.inner()]].visible.of(batch_, query);
    TupleWalk walk(problem_, geometry_, batch_, query);
    do {
      const int row = block_.rows++;
      block_.item[row] = slot;
      block_.inner[row] = inner;
      combine_leading(walk, row);
      if (block_.rows == kBlockRows) finish_block();
    } while (walk.next());
  }

  // U = query o leading keys, W = product or sum of the leading values.
  void combine_leading(const TupleWalk& walk, int row) {
    const int leading = geometry_.inner();
    float* const u = u_ + row * geometry_.depth;
    if (leading == 0) {
      std::memcpy(u, query_, geometry_.depth * sizeof(float));
      return;
    }
    const int64_t width = geometry_.value_depth;
    for (int p = walk.changed(); p < leading; ++p) {
      float* const to = p + 1 == leading ? u : key_prefix_.level[p];
      multiply_rows(to, p == 0 ? query_ : key_prefix_.level[p - 1],
                    pack_.keys[p] + walk[p] * geometry_.depth, geometry_.depth);
      float* const w = p + 1 == leading ? w_ + row * width : value_prefix_.level[p];
      const float* const value = pack_.values[p] + walk[p] * width;
      if (p == 0) {
        std::memcpy(w, value, width * sizeof(float));
      } else if (problem_.reduce == ValueReduce::product) {
        multiply_rows(w, value_prefix_.level[p - 1], value, width);
      } else {
        add_rows(w, value_prefix_.level[p - 1], value, width);
      }
    }
  }

  void finish_block() {
    const int rows = block_.padded_rows();
    const int64_t width = geometry_.value_depth;
    block_.pad(u_, geometry_.depth);
    for (int r = 0; r < rows; ++r) set_bias(r);
    std::memset(y_, 0, rows * width * sizeof(float));
    std::memset(sums_, 0, rows * kLanes * sizeof(float));
    const Range hull = block_.hull();
    for (int64_t first = hull.begin / kPanelKeys * kPanelKeys; first < hull.end;
         first += kPanelKeys) {
      for (int row = 0; row < rows; row += kStripRows) {
        const PanelPart part(first, block_.inner + row);
        if (part.empty()) continue;
        score_strip(part, row);
        add_product(y_ + row * width, width, kStripRows, p_ + part.begin, kPanelKeys, 1,
                    pack_.values[geometry_.inner()] + (first + part.begin) * width, width,
                    part.end - part.begin, width);
      }
    }
    for (int r = 0; r < block_.rows; ++r) add_row_to_item(r);
    block_.rows = 0;
  }

  void set_bias(int row) {
    const SoftmaxState& state = state_[block_.item[row]];
    bias_[row] = state.fresh() ? 0.0f : -state.max;
  }

  // P of the strip that starts with block row `strip`.
  void score_strip(const PanelPart& part, int strip) {
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
  void score_tiles(const PanelPart& part, int strip) {
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
  HWY_INLINE void score_tile(const PanelPart& part, int strip, int row, int vector) {
    constexpr int kRows = kTile.score_rows;
    const Tag d;
    const float* const bias = bias_ + strip + row;
    const int* const item = block_.item + strip + row;
    float* const p = p_ + row * kPanelKeys + vector * kLanes;
    float* const sums = sums_ + (strip + row) * kLanes;
    Tile<kRows, kVectors> s;
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) s.at[r][v] = hn::Set(d, bias[r]);
    }
    s.multiply_add(u_ + (strip + row) * geometry_.depth, geometry_.depth, 1,
                   pack_.keys_t + part.first * problem_.dim + vector * kLanes, kPanelKeys,
                   problem_.dim);
    mask_scores<kMasking>(s, part, row, vector);
    // x86 returns the second operand when one is NaN: NaN never hides a large score of another row.
    Vec largest = s.at[0][0];
    bool fresh = false;
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      fresh |= state_[item[r]].fresh();
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) largest = hn::Max(s.at[r][v], largest);
    }
    if (HWY_UNLIKELY(fresh || !hn::AllTrue(d, hn::Le(largest, hn::Set(d, SoftmaxState::kSlack))))) {
      NSIMPLEX_UNROLL
      for (int r = 0; r < kRows; ++r) {
        NSIMPLEX_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          hn::Store(s.at[r][v], d, p + r * kPanelKeys + v * kLanes);
        }
      }
      raise_maxima(part, strip, row, vector, kVectors);
      NSIMPLEX_UNROLL
      for (int r = 0; r < kRows; ++r) {
        NSIMPLEX_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          s.at[r][v] = hn::Load(d, p + r * kPanelKeys + v * kLanes);
        }
      }
    }
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      Vec sum = hn::Load(d, sums + r * kLanes);
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const Vec weight = exp2(s.at[r][v]);
        hn::Store(weight, d, p + r * kPanelKeys + v * kLanes);
        sum = hn::Add(sum, weight);
      }
      hn::Store(sum, d, sums + r * kLanes);
    }
  }

  // Scores of a tile lie in P, minus the maxima of before: raises maxima where they ask for it and
  // subtracts the new ones instead.
  HWY_NOINLINE void raise_maxima(const PanelPart& part, int strip, int row, int vector,
                                 int vectors) {
    const Tag d;
    float used[kTile.score_rows];
    for (int r = 0; r < kTile.score_rows; ++r) used[r] = -bias_[strip + row + r];
    for (int r = 0; r < kTile.score_rows; ++r) {
      const int item = block_.item[strip + row + r];
      if (item == kChunkItems) break;
      const float* const scores = p_ + (row + r) * kPanelKeys + vector * kLanes;
      Vec largest = hn::Load(d, scores);
      for (int v = 1; v < vectors; ++v) {
        largest = hn::Max(hn::Load(d, scores + v * kLanes), largest);
      }
      const float logit = hn::GetLane(hn::MaxOfLanes(d, largest)) + used[r];
      if (state_[item].exceeded_by(logit)) raise_item(logit, part, strip, row + r, vector);
    }
    for (int r = 0; r < kTile.score_rows; ++r) {
      const float shift = -bias_[strip + row + r] - used[r];
      if (shift == 0.0f) continue;
      for (int v = 0; v < vectors; ++v) {
        float* const scores = p_ + (row + r) * kPanelKeys + (vector + v) * kLanes;
        hn::Store(hn::Sub(hn::Load(d, scores), hn::Set(d, shift)), d, scores);
      }
    }
  }

  // Gives the item of a row a new maximum and brings everything summed for it so far to the new
  // scale: its total, the block's Y and row sums, and weights of the strip computed before `vector`
  // of this tile. Other strips' weights are in Y already.
  void raise_item(float max, const PanelPart& part, int strip, int row, int vector) {
    const int item = block_.item[strip + row];
    const int64_t width = geometry_.value_depth;
    const bool fresh = state_[item].fresh();
    const float factor = state_[item].raise(max);
    if (!fresh) scale_row(total_ + item * width, factor, width);
    int first = strip + row;  // an item's rows are neighbours
    while (first > 0 && block_.item[first - 1] == item) --first;
    const int tile = row / kTile.score_rows * kTile.score_rows;
    for (int r = first; r < block_.rows && block_.item[r] == item; ++r) {
      set_bias(r);
      if (fresh) continue;
      scale_row(y_ + r * width, factor, width);
      scale_row(sums_ + r * kLanes, factor, kLanes);
      const int in_strip = r - strip;
      if (in_strip < 0 || in_strip >= tile + kTile.score_rows) continue;
      const int done = in_strip < tile ? part.vector_end : vector;
      scale_row(p_ + in_strip * kPanelKeys + part.vector * kLanes, factor,
                (done - part.vector) * kLanes);
    }
  }

  void add_row_to_item(int row) {
    const Tag d;
    const int item = block_.item[row];
    const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums_ + row * kLanes)));
    state_[item].sum += sum;
    const int64_t width = geometry_.value_depth;
    const float* HWY_RESTRICT y = y_ + row * width;
    const float* HWY_RESTRICT w = w_ + row * width;
    float* HWY_RESTRICT total = total_ + item * width;
    if (geometry_.inner() == 0) {
      add_rows(total, total, y, width);
    } else if (problem_.reduce == ValueReduce::product) {
      for (int64_t c = 0; c < width; c += kLanes) {
        hn::Store(hn::MulAdd(hn::Load(d, w + c), hn::Load(d, y + c), hn::Load(d, total + c)), d,
                  total + c);
      }
    } else {
      const Vec weight = hn::Set(d, sum);
      for (int64_t c = 0; c < width; c += kLanes) {
        const Vec both = hn::MulAdd(weight, hn::Load(d, w + c), hn::Load(d, y + c));
        hn::Store(hn::Add(hn::Load(d, total + c), both), d, total + c);
      }
    }
  }

  void write_item(int64_t item, int slot) {
    const int64_t query = item / geometry_.group;
    float* const out = problem_.out.row(batch_, query_head(item), query);
    float& lse =
        problem_.lse[(batch_ * problem_.heads + query_head(item)) * problem_.queries + query];
    if (query < active_.begin || query >= active_.end) {
      std::fill(out, out + problem_.value_dim, 0.0f);
      lse = -std::numeric_limits<float>::infinity();
      return;
    }
    const double mean = problem_.reduce == ValueReduce::mean ? problem_.order : 1;
    const float factor =
        static_cast<float>(problem_.output_scale / mean) * state_[slot].normalizer();
    const float* const total = total_ + slot * geometry_.value_depth;
    for (int64_t c = 0; c < problem_.value_dim; ++c) out[c] = factor * total[c];
    lse = state_[slot].log_sum_exp();
  }

  const DenseForward<float>& problem_;
  const Geometry& geometry_;
  const HeadPack& pack_;
  const int64_t batch_, head_;
  const Range active_;
  Arena arena_;
  float* const u_;      // [kBlockRows, depth]        s1 log2 e query o leading keys
  float* const p_;      // [kStripRows, kPanelKeys]   scores of a strip, then weights
  float* const y_;      // [kBlockRows, value_depth]  weights times inner values
  float* const w_;      // [kBlockRows, value_depth]  leading values combined
  float* const sums_;   // [kBlockRows, kLanes]       sums of weights, lane by lane
  float* const query_;  // [depth]
  float* const total_;  // [kChunkItems, value_depth] weighted values of every item
  Prefix key_prefix_, value_prefix_;
  Block block_;
  float bias_[kBlockRows];               // minus the maximum that the next scores are relative to
  SoftmaxState state_[kChunkItems + 1];  // the last one stands for padding rows
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
