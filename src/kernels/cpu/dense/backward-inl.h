// Backward pass of the dense kernel, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_BACKWARD_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_BACKWARD_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_BACKWARD_INL_H_
#endif

#include <limits>

#include "kernels/cpu/dense/leave_one_out-inl.h"
#include "kernels/cpu/dense/pack-inl.h"
#include "kernels/cpu/dense/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// One task: a segment of one key/value head's queries against all their tuples, in a single pass
/// of six products a panel. With U and G the rows' key and gradient sides,
///   P  = 2^(U K^T - lse)              dV += P^T G
///   dS = P o (G V^T + bias)           dK += dS^T U        bias = -delta (+ leading values, for
///   sum) dU += dS K                        Y  += P V
/// and at its end a block hands dU and Y to the query and to the leading keys and values. Gradients
/// of keys and values go to the segment's own halo; those of keys lack the factor ln 2, since U
/// carries s1 log2 e. Products that no wanted gradient needs are left out.
class BackwardTask {
 public:
  BackwardTask(const DenseBackward<float>& problem, const Geometry& geometry, const HeadPack& pack,
               const HaloLayout& halo, float* gradients, int64_t batch, int64_t head, void* scratch)
      : problem_(problem),
        geometry_(geometry),
        pack_(pack),
        batch_(batch),
        head_(head),
        active_(problem.active_queries(batch)),
        arena_(scratch),
        u_(arena_.take(kBlockRows * geometry.depth)),
        g_(arena_.take(kBlockRows * geometry.value_depth)),
        p_(arena_.take(kBlockRows * kPanelKeys)),
        ds_(arena_.take(kBlockRows * kPanelKeys)),
        du_(arena_.take(kBlockRows * geometry.depth)),
        y_(arena_.take(kBlockRows * geometry.value_depth)),
        sums_(arena_.take(kBlockRows * kLineFloats)),
        query_(arena_.take(kChunkItems * geometry.depth)),
        grad_out_(arena_.take(kChunkItems * geometry.value_depth)),
        grad_query_(arena_.take(kChunkItems * geometry.depth)),
        key_prefix_(arena_, geometry.inner(), geometry.depth),
        value_prefix_(arena_, geometry.inner() + 1, geometry.value_depth) {
    bool leading_keys = false, leading_values = false;
    for (int p = 0; p < geometry.order; ++p) {
      halo_begin_[p] = halo.range[p].begin;
      grad_key_[p] = halo.keys[p] < 0 ? nullptr : gradients + halo.keys[p];
      grad_value_[p] = halo.values[p] < 0 ? nullptr : gradients + halo.values[p];
      if (p < geometry.inner()) {
        leading_keys |= grad_key_[p] != nullptr;
        leading_values |= grad_value_[p] != nullptr;
      }
    }
    want_du_ = problem.grad_query.data || leading_keys;
    want_ds_ = want_du_ || grad_key_[geometry.inner()];
    want_leading_values_ = leading_values;
    const double mean = problem.reduce == ValueReduce::mean ? problem.order : 1;
    output_scale_ = static_cast<float>(problem.output_scale / mean);
  }

  void run(Range items) {
    for (int64_t first = items.begin; first < items.end; first += kChunkItems) {
      run_chunk(first, static_cast<int>(std::min<int64_t>(items.end - first, kChunkItems)));
    }
  }

 private:
  void run_chunk(int64_t first, int count) {
    std::memset(grad_query_, 0, count * geometry_.depth * sizeof(float));
    for (int i = 0; i < count; ++i) {
      const int64_t query = (first + i) / geometry_.group;
      if (query >= active_.begin && query < active_.end) add_item(first + i, i);
    }
    if (block_.rows > 0) finish_block();
    if (!problem_.grad_query.data) return;
    for (int i = 0; i < count; ++i) {
      const int64_t item = first + i, query = item / geometry_.group;
      float* const to = problem_.grad_query.row(batch_, query_head(item), query);
      const float* const from = grad_query_ + i * geometry_.depth;
      const float scale = static_cast<float>(problem_.logit_scale);
      for (int64_t c = 0; c < problem_.dim; ++c) to[c] = scale * from[c];
    }
  }

  int64_t query_head(int64_t item) const {
    return head_ * geometry_.group + item % geometry_.group;
  }

  // Loads an item's query, output gradient, lse and delta; appends one row for each leading tuple.
  void add_item(int64_t item, int slot) {
    const int64_t query = item / geometry_.group, head = query_head(item);
    const int64_t statistic = (batch_ * problem_.heads + head) * problem_.queries + query;
    const float lse = problem_.lse[statistic];
    // Tuples whose logits are all minus infinity have no weights to change.
    if (lse == -std::numeric_limits<float>::infinity()) return;
    float* const q = query_ + slot * geometry_.depth;
    copy_padded(q, problem_.query.row(batch_, head, query), problem_.dim, geometry_.depth);
    scale_row(q, static_cast<float>(problem_.logit_scale * kLog2E), geometry_.depth);
    float* const go = grad_out_ + slot * geometry_.value_depth;
    const float* const out = problem_.out.row(batch_, head, query);
    copy_padded(go, problem_.grad_out.row(batch_, head, query), problem_.value_dim,
                geometry_.value_depth);
    double delta = problem_.grad_lse ? -problem_.grad_lse[statistic] : 0.0;
    for (int64_t c = 0; c < problem_.value_dim; ++c) delta += static_cast<double>(out[c]) * go[c];
    scale_row(go, output_scale_, geometry_.value_depth);

    const Range inner = problem_.axes[geometry_.axis[geometry_.inner()]].visible.of(batch_, query);
    TupleWalk walk(problem_, geometry_, batch_, query);
    do {
      const int row = block_.rows++;
      block_.item[row] = slot;
      block_.inner[row] = inner;
      for (int p = 0; p < geometry_.inner(); ++p) block_.tuple[row][p] = walk[p];
      minus_lse_[row] = static_cast<float>(-lse * kLog2E);
      bias_[row] = static_cast<float>(-delta);
      combine_leading(walk, row);
      if (block_.rows == kBlockRows) finish_block();
    } while (walk.next());
  }

  // U = query o leading keys. Product: G = dO o leading values. Sum: G = dO, and the leading
  // values' share of dP, which is the same for the whole row, goes to the bias.
  void combine_leading(const TupleWalk& walk, int row) {
    const int leading = geometry_.inner();
    const int slot = block_.item[row];
    const int64_t width = geometry_.value_depth;
    const float* u = query_ + slot * geometry_.depth;
    const float* const go = grad_out_ + slot * width;
    const bool product = problem_.reduce == ValueReduce::product;
    for (int p = walk.changed(); p < leading; ++p) {
      multiply_rows(key_prefix_.level[p], p == 0 ? u : key_prefix_.level[p - 1],
                    pack_.keys[p] + walk[p] * geometry_.depth, geometry_.depth);
      const float* const value = pack_.values[p] + walk[p] * width;
      float* const to = value_prefix_.level[p];
      if (product) {
        multiply_rows(to, p == 0 ? go : value_prefix_.level[p - 1], value, width);
      } else if (p == 0) {
        std::memcpy(to, value, width * sizeof(float));
      } else {
        add_rows(to, value_prefix_.level[p - 1], value, width);
      }
    }
    if (leading > 0) u = key_prefix_.level[leading - 1];
    const float* g = go;
    if (leading > 0 && product) g = value_prefix_.level[leading - 1];
    if (leading > 0 && !product) bias_[row] += dot(go, value_prefix_.level[leading - 1], width);
    std::memcpy(u_ + row * geometry_.depth, u, geometry_.depth * sizeof(float));
    std::memcpy(g_ + row * width, g, width * sizeof(float));
  }

  void finish_block() {
    const int rows = block_.padded_rows();
    block_.pad(u_, geometry_.depth);
    const int64_t depth = geometry_.depth, width = geometry_.value_depth;
    for (int r = block_.rows; r < rows; ++r) {
      minus_lse_[r] = bias_[r] = 0.0f;
      std::fill(g_ + r * width, g_ + (r + 1) * width, 0.0f);
    }
    std::memset(du_, 0, rows * depth * sizeof(float));
    std::memset(y_, 0, rows * width * sizeof(float));
    std::memset(sums_, 0, rows * kLineFloats * sizeof(float));
    const Range hull = block_.hull();
    for (int64_t first = hull.begin / kPanelKeys * kPanelKeys; first < hull.end;
         first += kPanelKeys) {
      add_panel(first, hull);
    }
    for (int r = 0; r < block_.rows; ++r) add_row_gradients(r);
    block_.rows = 0;
  }

  // One panel of keys. What a strip's rows add up for themselves, dU and Y, is added strip by
  // strip; the keys' and values' gradients take the rows of all strips that see the panel at once.
  void add_panel(int64_t first, Range hull) {
    const PanelPart whole(first, hull);
    int row_begin = kBlockRows, row_end = 0;
    for (int row = 0; row < block_.padded_rows(); row += kStripRows) {
      const PanelPart part(first, block_.inner + row);
      if (part.empty()) continue;
      row_begin = std::min(row_begin, row);
      row_end = std::min(row + kStripRows, block_.rows);
      weigh_strip(part, row);
      clear_unseen(part, whole, row);
      add_to_rows(part, row);
    }
    if (row_begin < row_end) add_to_keys(whole, row_begin, row_end);
  }

  void weigh_strip(const PanelPart& part, int strip) {
    switch (part.masking) {
      case Masking::none:
        return weigh_tiles<Masking::none>(part, strip);
      case Masking::common:
        return weigh_tiles<Masking::common>(part, strip);
      case Masking::each:
        return weigh_tiles<Masking::each>(part, strip);
    }
  }

  template <Masking kMasking>
  void weigh_tiles(const PanelPart& part, int strip) {
    for (int r = 0; r < kStripRows; r += kTile.score_rows) {
      int v = part.vector;
      for (; v + kTile.score_vectors <= part.vector_end; v += kTile.score_vectors) {
        weight_tile<kTile.score_vectors, kMasking>(part, strip, r, v);
        if (want_ds_) score_gradient_tile<kTile.score_vectors>(part, strip + r, v);
      }
      for (; v < part.vector_end; ++v) {
        weight_tile<1, kMasking>(part, strip, r, v);
        if (want_ds_) score_gradient_tile<1>(part, strip + r, v);
      }
    }
  }

  // Sums over rows take every column that some strip of the block sees.
  void clear_unseen(const PanelPart& part, const PanelPart& whole, int strip) {
    if (part.vector == whole.vector && part.vector_end == whole.vector_end) return;
    for (int r = strip; r < strip + kStripRows; ++r) {
      for (float* const array : {p_, ds_}) {
        float* const row = array + r * kPanelKeys;
        std::fill(row + whole.vector * kLanes, row + part.vector * kLanes, 0.0f);
        std::fill(row + part.vector_end * kLanes, row + whole.vector_end * kLanes, 0.0f);
      }
    }
  }

  // P = 2^(U K^T - lse), exactly 0 where masked. `row` counts within the strip.
  template <int kVectors, Masking kMasking>
  HWY_INLINE void weight_tile(const PanelPart& part, int strip, int row, int vector) {
    constexpr int kRows = kTile.score_rows;
    const Tag d;
    const int block_row = strip + row;
    Tile<kRows, kVectors> s;
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) s.at[r][v] = hn::Set(d, minus_lse_[block_row + r]);
    }
    s.multiply_add(u_ + block_row * geometry_.depth, geometry_.depth, 1,
                   pack_.keys_t + part.first * problem_.dim + vector * kLanes, kPanelKeys,
                   problem_.dim);
    mask_scores<kMasking>(s, part, row, vector);
    float* const p = p_ + block_row * kPanelKeys + vector * kLanes;
    float* const sums = sums_ + block_row * kLineFloats;
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      Vec sum = hn::Load(d, sums + r * kLineFloats);
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const Vec weight = exp2(s.at[r][v]);
        hn::Store(weight, d, p + r * kPanelKeys + v * kLanes);
        sum = hn::Add(sum, weight);
      }
      hn::Store(sum, d, sums + r * kLineFloats);
    }
  }

  // dS = P o (G V^T + bias).
  template <int kVectors>
  HWY_INLINE void score_gradient_tile(const PanelPart& part, int row, int vector) {
    constexpr int kRows = kTile.score_rows;
    const Tag d;
    Tile<kRows, kVectors> dp;
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) dp.at[r][v] = hn::Set(d, bias_[row + r]);
    }
    dp.multiply_add(g_ + row * geometry_.value_depth, geometry_.value_depth, 1,
                    pack_.values_t + part.first * problem_.value_dim + vector * kLanes, kPanelKeys,
                    problem_.value_dim);
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const int64_t at = (row + r) * kPanelKeys + (vector + v) * kLanes;
        hn::Store(hn::Mul(hn::Load(d, p_ + at), dp.at[r][v]), d, ds_ + at);
      }
    }
  }

  // dU += dS K and Y += P V for the rows of a strip.
  void add_to_rows(const PanelPart& part, int strip) {
    const int inner = geometry_.inner();
    const int64_t depth = geometry_.depth, width = geometry_.value_depth;
    const int64_t key = part.first + part.begin;
    const int64_t at = strip * kPanelKeys + part.begin;
    if (want_du_) {
      add_product(du_ + strip * depth, depth, kStripRows, ds_ + at, kPanelKeys, 1,
                  pack_.keys[inner] + key * depth, depth, part.end - part.begin, depth);
    }
    if (want_leading_values_ && problem_.reduce == ValueReduce::product) {
      add_product(y_ + strip * width, width, kStripRows, p_ + at, kPanelKeys, 1,
                  pack_.values[inner] + key * width, width, part.end - part.begin, width);
    }
  }

  // dV += P^T G and dK += dS^T U over rows [row_begin, row_end) of the block.
  void add_to_keys(const PanelPart& part, int row_begin, int row_end) {
    const int inner = geometry_.inner();
    const int64_t depth = geometry_.depth, width = geometry_.value_depth;
    // Keys by eights; those that no row sees have P = 0.
    const int begin = part.begin / 8 * 8;
    const int keys = static_cast<int>(round_up(part.end, 8)) - begin;
    const int64_t halo_row = part.first + begin - halo_begin_[inner];
    const int64_t at = row_begin * kPanelKeys + begin;
    if (grad_value_[inner]) {
      add_product(grad_value_[inner] + halo_row * width, width, keys, p_ + at, 1, kPanelKeys,
                  g_ + row_begin * width, width, row_end - row_begin, width);
    }
    if (grad_key_[inner]) {
      add_product(grad_key_[inner] + halo_row * depth, depth, keys, ds_ + at, 1, kPanelKeys,
                  u_ + row_begin * depth, depth, row_end - row_begin, depth);
    }
  }

  // Hands dU and Y of a row to the gradients of its query, leading keys and leading values.
  void add_row_gradients(int row) {
    const Tag d;
    const int leading = geometry_.inner(), slot = block_.item[row];
    const int64_t depth = geometry_.depth, width = geometry_.value_depth;
    const float *key[kMaxOrder], *value[kMaxOrder];
    float *grad_key[kMaxOrder], *grad_value[kMaxOrder];
    for (int p = 0; p < leading; ++p) {
      const int64_t at = block_.tuple[row][p], own = at - halo_begin_[p];
      key[p] = pack_.keys[p] + at * depth;
      value[p] = pack_.values[p] + at * width;
      grad_key[p] = grad_key_[p] ? grad_key_[p] + own * depth : nullptr;
      grad_value[p] = grad_value_[p] ? grad_value_[p] + own * width : nullptr;
    }
    if (want_du_) {
      add_leave_one_out(du_ + row * depth, query_ + slot * depth, key, leading,
                        problem_.grad_query.data ? grad_query_ + slot * depth : nullptr, grad_key,
                        depth);
    }
    if (!want_leading_values_) return;
    const float* const go = grad_out_ + slot * width;
    if (problem_.reduce == ValueReduce::product) {
      add_leave_one_out(y_ + row * width, go, value, leading, nullptr, grad_value, width);
    } else {
      const Vec weights =
          hn::Set(d, hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums_ + row * kLineFloats))));
      for (int p = 0; p < leading; ++p) {
        if (grad_value[p]) add_scaled(grad_value[p], weights, go, width);
      }
    }
  }

  const DenseBackward<float>& problem_;
  const Geometry& geometry_;
  const HeadPack& pack_;
  const int64_t batch_, head_;
  const Range active_;
  Arena arena_;
  float* const u_;           // [kBlockRows, depth]        s1 log2 e query o leading keys
  float* const g_;           // [kBlockRows, value_depth]  s2 dO (o leading values)
  float* const p_;           // [kBlockRows, kPanelKeys]
  float* const ds_;          // [kBlockRows, kPanelKeys]
  float* const du_;          // [kBlockRows, depth]
  float* const y_;           // [kBlockRows, value_depth]
  float* const sums_;        // [kBlockRows, kLineFloats]  row sums of P, lane by lane
  float* const query_;       // [kChunkItems, depth]       s1 log2 e query
  float* const grad_out_;    // [kChunkItems, value_depth] s2 dO
  float* const grad_query_;  // [kChunkItems, depth]       without s1
  Prefix key_prefix_, value_prefix_;
  Block block_;
  float minus_lse_[kBlockRows], bias_[kBlockRows];
  int64_t halo_begin_[kMaxOrder];
  float *grad_key_[kMaxOrder], *grad_value_[kMaxOrder];  // null: not wanted
  bool want_du_, want_ds_, want_leading_values_;
  float output_scale_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
