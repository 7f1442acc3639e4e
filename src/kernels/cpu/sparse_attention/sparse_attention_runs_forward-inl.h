// Forward pass over tuples that are processed one by one, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SPARSE_RUNS_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SPARSE_RUNS_FORWARD_INL_H_
#undef NSIMPLEX_KERNELS_SPARSE_RUNS_FORWARD_INL_H_
#else
#define NSIMPLEX_KERNELS_SPARSE_RUNS_FORWARD_INL_H_
#endif

#include "kernels/cpu/shared/combine-inl.h"
#include "kernels/cpu/shared/forward_output-inl.h"
#include "kernels/cpu/shared/pack-inl.h"
#include "kernels/cpu/sparse_attention/sparse_attention_gather-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::sparse {
namespace HWY_NAMESPACE {
using namespace dense;
using namespace dense::HWY_NAMESPACE;

/// Some items of one key head with their lists. The tuples of a run share the query combined with
/// their leading keys, U, and their combined leading values, W:
///   x_j = U . k_j,   P_j = 2^(x_j - max),   total += W o sum_j P_j v_j
template <class T>
class RunsForward {
  using R = Accum<T>;

 public:
  RunsForward(const SparseForward<T>& problem, const Geometry& geometry, const HeadRows<R>& rows,
              int64_t batch, int64_t head, R* scratch)
      : problem_(problem.dense),
        lists_(problem.lists),
        geometry_(geometry),
        rows_(rows),
        batch_(batch),
        head_(head),
        list_(problem.lists.number(batch, head, problem.dense.kv_heads)),
        arena_(scratch),
        query_(arena_.take(geometry.lead_depth)),
        u_(arena_.take(geometry.depth)),
        y_(arena_.take(geometry.value_depth)),
        total_(arena_.take(geometry.value_depth)),
        weights_(arena_.take(kRunKeys)),
        key_prefix_(arena_, geometry, /*backward=*/false),
        value_prefix_(arena_, geometry.inner(), geometry.value_depth) {
    // Its planes do not fill the last cache line, which products read.
    std::memset(u_, 0, geometry.depth * sizeof(R));
  }

  void run(Range items) {
    for (int64_t item = items.begin; item < items.end; ++item) run_item(item);
  }

 private:
  void run_item(int64_t item) {
    const int64_t query = item / geometry_.group, head = geometry_.query_head(head_, item);
    if (!problem_.wants((batch_ * problem_.heads + head) * problem_.queries + query)) return;
    state_.init();
    std::memset(total_, 0, geometry_.value_depth * sizeof(R));
    load_channels(query_, problem_.query.row(batch_, head, query), geometry_.lead);
    scale_row(query_, static_cast<R>(geometry_.logit_scale * geometry_.unit), geometry_.lead_depth);
    for_each_run(lists_, problem_.order, list_, problem_.queries, query,
                 [this](const TupleRun& run) { add_run(run); });
    write_item(problem_, geometry_, batch_, head_, item, state_, total_);
  }

  void add_run(const TupleRun& run) {
    const int64_t width = geometry_.value_depth;
    combine_leading(run);
    R* const y = geometry_.inner() == 0 ? total_ : y_;
    if (y == y_) std::memset(y_, 0, width * sizeof(R));
    run_sum_ = R{0};
    for (int64_t first = 0; first < run.count; first += kRunKeys) {
      add_keys(run.last + first * run.stride, run.stride,
               static_cast<int>(std::min<int64_t>(run.count - first, kRunKeys)), y);
    }
    state_.sum += run_sum_;
    if (geometry_.inner() > 0) add_to_total();
  }

  // U = query combined with leading keys, W = product or sum of the leading values.
  void combine_leading(const TupleRun& run) {
    const int leading = geometry_.inner();
    const R* keys[kMaxOrder];
    for (int p = 0; p < leading; ++p) {
      keys[p] = rows_.keys[p] + run.leading[p] * geometry_.lead_depth;
    }
    key_prefix_.combine(query_, keys, run.changed, u_);
    value_prefix_.combine(problem_.reduce, rows_.values, run);
  }

  // Computes weights of at most kRunKeys tuples; y += their values times these.
  void add_keys(const int64_t* index, int64_t stride, int count, R* y) {
    const int last = geometry_.inner();
    gather_dots(u_, rows_.keys[last], geometry_.depth, index, stride, count, weights_);
    const R top = *std::max_element(weights_, weights_ + count);
    if (state_.exceeded_by(top)) {
      const R factor = state_.raise(top);
      run_sum_ *= factor;
      scale_row(total_, factor, geometry_.value_depth);
      if (y != total_) scale_row(y, factor, geometry_.value_depth);
    }
    run_sum_ += weigh(weights_, state_.fresh() ? R{0} : -state_.max, count);
    gather_add(weights_, rows_.values[last], geometry_.value_depth, index, stride, count, y);
  }

  void add_to_total() {
    const Tag<R> d;
    const R* const w = value_prefix_.last();
    if (problem_.reduce == ValueReduce::product) {
      for (int64_t c = 0; c < geometry_.value_depth; c += kLanes<R>) {
        hn::Store(hn::MulAdd(hn::Load(d, w + c), hn::Load(d, y_ + c), hn::Load(d, total_ + c)), d,
                  total_ + c);
      }
    } else {
      add_rows(total_, total_, y_, geometry_.value_depth);
      add_scaled(total_, hn::Set(d, run_sum_), w, geometry_.value_depth);
    }
  }

  const DenseForward<T>& problem_;
  const TupleLists& lists_;
  const Geometry& geometry_;
  const HeadRows<R>& rows_;
  const int64_t batch_, head_, list_;
  Arena<R> arena_;
  R* const query_;    // [lead_depth]   s1 unit query
  R* const u_;        // [depth]
  R* const y_;        // [value_depth]  weighted last values of a run
  R* const total_;    // [value_depth]  of the item
  R* const weights_;  // [kRunKeys]
  KeyPrefix<R> key_prefix_;
  ValuePrefix<R> value_prefix_;
  SoftmaxState<R> state_;
  R run_sum_ = 0;  // weights of a run, in the scale of state_.max
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::sparse
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
