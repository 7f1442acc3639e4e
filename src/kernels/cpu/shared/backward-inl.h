// Backward pass of the dense kernel, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_BACKWARD_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_BACKWARD_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_BACKWARD_INL_H_
#endif

#include <cmath>
#include <limits>

#include "kernels/cpu/shared/backward_block-inl.h"
#include "kernels/cpu/shared/combine-inl.h"
#include "kernels/cpu/shared/item_delta.h"
#include "kernels/cpu/shared/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// The outputs of one task: a segment's private gradients of every axis, in working order. Null:
/// not wanted. Those of keys lack key_gradient_scale(), since U carries the query's scale. Tiles leave
/// those of the inner axis transposed, in panels of [channels, kPanelKeys].
template <class R>
struct HaloGradients {
  int64_t begin[kMaxOrder];
  R *key[kMaxOrder], *value[kMaxOrder];
  bool leading_keys = false, leading_values = false;

  HaloGradients(const Geometry& geometry, const HaloLayout& halo, R* gradients) {
    for (int p = 0; p < geometry.order; ++p) {
      begin[p] = halo.range[p].begin;
      key[p] = halo.keys[p] < 0 ? nullptr : gradients + halo.keys[p];
      value[p] = halo.values[p] < 0 ? nullptr : gradients + halo.values[p];
      if (p == geometry.inner()) continue;
      leading_keys |= key[p] != nullptr;
      leading_values |= value[p] != nullptr;
    }
  }

  /// Products that no wanted gradient needs are skipped.
  template <class T>
  BlockGradients<R> of_block(const DenseBackward<T>& problem, int inner) const {
    const bool du = problem.grad_query.data || leading_keys;
    return {.inner_key = key[inner],
            .inner_value = value[inner],
            .inner_begin = begin[inner],
            .want_ds = du || key[inner] || problem.mask_gradients > 0,
            .want_du = du,
            .want_y = leading_values && problem.reduce == ValueReduce::product};
  }
};

/// One task: a segment of one key/value head's queries with all their tuples, in a single pass.
/// Rows are gathered into blocks. At the end of a block every row adds its dU and Y to the
/// gradients of the query and of the leading keys and values.
template <class T, class E>
class BackwardTask {
  using R = Accum<T>;

 public:
  BackwardTask(const DenseBackward<T>& problem, const Geometry& geometry, const HeadPack<R>& pack,
               const HaloGradients<R>& gradients, int64_t batch, int64_t head, R* scratch)
      : problem_(problem),
        geometry_(geometry),
        pack_(pack),
        gradients_(gradients),
        batch_(batch),
        head_(head),
        output_scale_(static_cast<R>(problem.output_scale /
                                     (problem.reduce == ValueReduce::mean ? problem.order : 1))),
        arena_(scratch),
        filter_(problem, geometry, batch),
        masks_(problem, geometry, batch),
        rows_(problem, geometry, pack, gradients.of_block(problem, geometry.inner()), filter_,
              masks_, arena_),
        query_(arena_.take(kChunkItems * geometry.lead_depth)),
        grad_out_(arena_.take(kChunkItems * geometry.value_depth)),
        grad_query_(arena_.take(kChunkItems * geometry.lead_depth)),
        key_prefix_(arena_, geometry, /*backward=*/true),
        value_prefix_(arena_, geometry.inner(), geometry.value_depth) {}

  void run(Range items) {
    for (int64_t first = items.begin; first < items.end; first += kChunkItems) {
      run_chunk(first, static_cast<int>(std::min<int64_t>(items.end - first, kChunkItems)));
    }
  }

 private:
  void run_chunk(int64_t first, int count) {
    const int64_t depth = geometry_.lead_depth;
    std::memset(grad_query_, 0, count * depth * sizeof(R));
    for (int i = 0; i < count; ++i) add_item(first + i, i);
    if (rows_.block.rows > 0) finish_block();
    if (!problem_.grad_query.data) return;
    for (int i = 0; i < count; ++i) {
      const int64_t item = first + i, query = item / geometry_.group;
      store_channels(problem_.grad_query.row(batch_, geometry_.query_head(head_, item), query),
                     static_cast<R>(geometry_.logit_scale), grad_query_ + i * depth,
                     geometry_.lead);
    }
  }

  // Loads an item's query, output gradient, lse and delta, and appends one row per leading tuple.
  void add_item(int64_t item, int slot) {
    const int64_t query = item / geometry_.group, head = geometry_.query_head(head_, item);
    const int64_t statistic = (batch_ * problem_.heads + head) * problem_.queries + query;
    const R lse = problem_.lse[statistic];
    const Range inner = problem_.axes[geometry_.axis[geometry_.inner()]].visible.of(batch_, query);
    // Tuples whose logits are all minus infinity have no weights that could change.
    if (inner.size() == 0 || lse == -std::numeric_limits<R>::infinity()) return;
    R* const q = query_ + slot * geometry_.lead_depth;
    load_channels(q, problem_.query.row(batch_, head, query), geometry_.lead);
    scale_row(q, static_cast<R>(query_scale<E>(geometry_)), geometry_.lead_depth);
    R* const go = grad_out_ + slot * geometry_.value_depth;
    load_channels(go, problem_.grad_out.row(batch_, head, query), geometry_.value);
    ItemNorm<R> norm;
    if (problem_.normalizer == Normalizer::relu) norm.norm = std::exp(-lse);
    if (exponential(problem_.normalizer)) norm = item_norm(problem_, statistic);
    DeltaTerm<R> delta;
    if (problem_.normalizer != Normalizer::sigmoid) {
      delta = delta_term(problem_, norm, batch_, head, query);
    }
    scale_row(go, static_cast<R>(output_scale_ * norm.factor), geometry_.value_depth);

    const bool general = filter_.general();
    for (TupleWalk walk(problem_, geometry_, batch_, head, query); walk.next();) {
      const int row = rows_.block.rows++;
      rows_.block.item[row] = slot;
      rows_.block.inner[row] = inner;
      for (int p = 0; p < geometry_.inner(); ++p) rows_.block.tuple[row][p] = walk[p];
      if (general) filter_.set_row(row, head, query, walk);
      if (masks_.wanted()) masks_.set_row(row, head, query, walk);
      rows_.base[row] = norm.base;
      rows_.norm[row] = static_cast<R>(norm.norm);
      rows_.delta[row] = delta;
      combine_leading(walk, row);
      if (rows_.block.full()) finish_block();
    }
  }

  // U = query combined with leading keys. Product: G = dO o leading values. Sum: G = dO, and the
  // leading values' share of dP is constant within the row.
  void combine_leading(const TupleWalk& walk, int row) {
    const int leading = geometry_.inner();
    const int slot = rows_.block.item[row];
    const int64_t width = geometry_.value_depth;
    const R* const go = grad_out_ + slot * width;
    const bool product = problem_.reduce == ValueReduce::product;
    const R* keys[kMaxOrder];
    for (int p = 0; p < leading; ++p) keys[p] = pack_.keys[p] + walk[p] * geometry_.lead_depth;
    key_prefix_.combine(query_ + slot * geometry_.lead_depth, keys, walk.changed(),
                        rows_.u + row * geometry_.depth);
    for (int p = walk.changed(); p < leading; ++p) {
      const R* const value = pack_.values[p] + walk[p] * width;
      R* const to = value_prefix_.level[p];
      if (product) {
        multiply_rows(to, p == 0 ? go : value_prefix_.level[p - 1], value, width);
      } else if (p == 0) {
        std::memcpy(to, value, width * sizeof(R));
      } else {
        add_rows(to, value_prefix_.level[p - 1], value, width);
      }
    }
    const R* const values = leading > 0 ? value_prefix_.level[leading - 1] : go;
    rows_.share[row] = leading > 0 && !product ? dot(go, values, width) : R{0};
    std::memcpy(rows_.g + row * width, product ? values : go, width * sizeof(R));
  }

  void finish_block() {
    rows_.run();
    for (int r = 0; r < rows_.block.rows; ++r) add_row_gradients(r);
    rows_.block.rows = 0;
  }

  // Adds dU and Y of a row to the gradients of its query, leading keys and leading values.
  void add_row_gradients(int row) {
    const Tag<R> d;
    const int leading = geometry_.inner(), slot = rows_.block.item[row];
    const int64_t depth = geometry_.lead_depth, width = geometry_.value_depth;
    const R *key[kMaxOrder], *value[kMaxOrder];
    R *grad_key[kMaxOrder], *grad_value[kMaxOrder];
    for (int p = 0; p < leading; ++p) {
      const int64_t at = rows_.block.tuple[row][p], own = at - gradients_.begin[p];
      key[p] = pack_.keys[p] + at * depth;
      value[p] = pack_.values[p] + at * width;
      grad_key[p] = gradients_.key[p] ? gradients_.key[p] + own * depth : nullptr;
      grad_value[p] = gradients_.value[p] ? gradients_.value[p] + own * width : nullptr;
    }
    if (problem_.grad_query.data || gradients_.leading_keys) {
      key_prefix_.add_gradients(rows_.du + row * geometry_.depth, query_ + slot * depth, key,
                                problem_.grad_query.data ? grad_query_ + slot * depth : nullptr,
                                grad_key);
    }
    if (!gradients_.leading_values) return;
    const R* const go = grad_out_ + slot * width;
    if (problem_.reduce == ValueReduce::product) {
      add_leave_one_out(rows_.y + row * width, go, value, leading, static_cast<R*>(nullptr),
                        grad_value, width);
    } else {
      const Vec<R> weights =
          hn::Set(d, hn::GetLane(hn::SumOfLanes(d, hn::Load(d, rows_.sums + row * kLineChannels))));
      for (int p = 0; p < leading; ++p) {
        if (grad_value[p]) add_scaled(grad_value[p], weights, go, width);
      }
    }
  }

  const DenseBackward<T>& problem_;
  const Geometry& geometry_;
  const HeadPack<R>& pack_;
  const HaloGradients<R>& gradients_;
  const int64_t batch_, head_;
  const R output_scale_;
  Arena<R> arena_;
  TupleFilter<T> filter_;
  MaskGradients<T> masks_;
  BackwardBlock<T, E> rows_;
  R* const query_;       // [kChunkItems, lead_depth]  query times its scale
  R* const grad_out_;    // [kChunkItems, value_depth] s2 dO
  R* const grad_query_;  // [kChunkItems, lead_depth]  without s1
  KeyPrefix<R> key_prefix_;
  Prefix<R> value_prefix_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
