// Backward pass over tuples that are processed one by one, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SPARSE_RUNS_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SPARSE_RUNS_BACKWARD_INL_H_
#undef NSIMPLEX_KERNELS_SPARSE_RUNS_BACKWARD_INL_H_
#else
#define NSIMPLEX_KERNELS_SPARSE_RUNS_BACKWARD_INL_H_
#endif

#include "kernels/cpu/shared/backward-inl.h"
#include "kernels/cpu/sparse_attention/sparse_attention_gather-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::sparse {
namespace HWY_NAMESPACE {
using namespace dense;
using namespace dense::HWY_NAMESPACE;

/// Some items of one key head with their lists, into a segment's private gradients. U and W of a
/// run are as in the forward pass, and G = s2 dO o W (sum: s2 dO, with W's share in every dP):
///   P_j = 2^(U . k_j - lse)             dv_j += P_j G       Y  = sum_j P_j v_j
///   dS_j = P_j (G . v_j + share - delta)  dk_j += dS_j U      dU = sum_j dS_j k_j
/// At its end a run adds dU and Y to the gradients of the query and of the leading keys and values.
template <class T>
class RunsBackward {
  using R = Accum<T>;

 public:
  RunsBackward(const SparseBackward<T>& problem, const Geometry& geometry, const HeadRows<R>& rows,
               const HaloGradients<R>& gradients, int64_t batch, int64_t head, R* scratch)
      : problem_(problem.dense),
        lists_(problem.lists),
        geometry_(geometry),
        rows_(rows),
        gradients_(gradients),
        batch_(batch),
        head_(head),
        list_(problem.lists.number(batch, head, problem.dense.kv_heads)),
        output_scale_(static_cast<R>(problem_.output_scale /
                                     (problem_.reduce == ValueReduce::mean ? problem_.order : 1))),
        arena_(scratch),
        query_(arena_.take(geometry.lead_depth)),
        grad_query_(arena_.take(geometry.lead_depth)),
        u_(arena_.take(geometry.depth)),
        du_(arena_.take(geometry.depth)),
        grad_out_(arena_.take(geometry.value_depth)),
        g_(arena_.take(geometry.value_depth)),
        y_(arena_.take(geometry.value_depth)),
        p_(arena_.take(kRunKeys)),
        ds_(arena_.take(kRunKeys)),
        key_prefix_(arena_, geometry, /*backward=*/true),
        value_prefix_(arena_, geometry.inner(), geometry.value_depth),
        needs_(gradients.of_block(problem_, geometry.inner())) {
    // Its planes do not fill the last cache line, which products read.
    std::memset(u_, 0, geometry.depth * sizeof(R));
  }

  void run(Range items) {
    for (int64_t item = items.begin; item < items.end; ++item) run_item(item);
  }

 private:
  void run_item(int64_t item) {
    const int64_t query = item / geometry_.group, head = geometry_.query_head(head_, item);
    const int64_t statistic = (batch_ * problem_.heads + head) * problem_.queries + query;
    const R lse = problem_.lse[statistic];
    std::memset(grad_query_, 0, geometry_.lead_depth * sizeof(R));
    // Tuples whose logits are all minus infinity have no weights that could change.
    if (lse != -std::numeric_limits<R>::infinity()) {
      load_channels(query_, problem_.query.row(batch_, head, query), geometry_.lead);
      scale_row(query_, static_cast<R>(geometry_.logit_scale * geometry_.unit),
                geometry_.lead_depth);
      load_channels(grad_out_, problem_.grad_out.row(batch_, head, query), geometry_.value);
      const ItemNorm<R> norm = item_norm(problem_, statistic);
      scale_row(grad_out_, static_cast<R>(output_scale_ * norm.factor), geometry_.value_depth);
      norm_ = static_cast<R>(norm.norm);
      delta_ = delta_term(problem_, norm, batch_, head, query);
      for_each_run(lists_, problem_.order, list_, problem_.queries, query,
                   [this](const TupleRun& run) { add_run(run); });
    }
    if (!problem_.grad_query.data) return;
    store_channels(problem_.grad_query.row(batch_, head, query),
                   static_cast<R>(geometry_.logit_scale), grad_query_, geometry_.lead);
  }

  void add_run(const TupleRun& run) {
    const int leading = geometry_.inner();
    const int64_t width = geometry_.value_depth;
    const R* keys[kMaxOrder];
    for (int p = 0; p < leading; ++p) {
      keys[p] = rows_.keys[p] + run.leading[p] * geometry_.lead_depth;
    }
    key_prefix_.combine(query_, keys, run.changed, u_);
    value_prefix_.combine(problem_.reduce, rows_.values, run);
    const bool product = problem_.reduce == ValueReduce::product;
    const R* g = grad_out_;
    R shift = delta_.minus_delta;
    if (leading > 0 && product) {
      multiply_rows(g_, grad_out_, value_prefix_.last(), width);
      g = g_;
    } else if (leading > 0) {
      shift += dot(grad_out_, value_prefix_.last(), width);
    }
    std::memset(du_, 0, geometry_.depth * sizeof(R));
    std::memset(y_, 0, width * sizeof(R));
    R sum = 0;
    for (int64_t first = 0; first < run.count; first += kRunKeys) {
      sum += add_keys(run.last + first * run.stride, run.stride,
                      static_cast<int>(std::min<int64_t>(run.count - first, kRunKeys)), g, shift);
    }
    hand_on(run, keys, sum);
  }

  // Processes at most kRunKeys tuples and returns the sum of their weights.
  R add_keys(const int64_t* index, int64_t stride, int count, const R* g, R shift) {
    const int last = geometry_.inner();
    const int64_t depth = geometry_.depth, width = geometry_.value_depth;
    gather_dots(u_, rows_.keys[last], depth, index, stride, count, p_);
    const R sum = weigh(p_, norm_, count);
    if (needs_.inner_value) scatter_add(p_, g, width, index, stride, count, needs_.inner_value);
    if (needs_.want_y) gather_add(p_, rows_.values[last], width, index, stride, count, y_);
    if (!needs_.want_ds) return sum;
    gather_dots(g, rows_.values[last], width, index, stride, count, ds_);
    const Tag<R> d;
    for (int c = 0; c < count; c += kLanes<R>) {
      const Vec<R> dp = hn::Add(hn::Load(d, ds_ + c), hn::Set(d, shift));
      const Vec<R> weight = hn::Load(d, p_ + c);
      hn::Store(hn::Mul(weight, delta_.template of<T>(weight, dp)), d, ds_ + c);
    }
    if (needs_.inner_key) scatter_add(ds_, u_, depth, index, stride, count, needs_.inner_key);
    if (needs_.want_du) gather_add(ds_, rows_.keys[last], depth, index, stride, count, du_);
    return sum;
  }

  // Adds dU and Y to the gradients of the query, the leading keys and the leading values.
  void hand_on(const TupleRun& run, const R* const* keys, R sum) {
    const int leading = geometry_.inner();
    const int64_t depth = geometry_.lead_depth, width = geometry_.value_depth;
    const R* values[kMaxOrder];
    R *grad_keys[kMaxOrder], *grad_values[kMaxOrder];
    for (int p = 0; p < leading; ++p) {
      const int64_t at = run.leading[p];
      values[p] = rows_.values[p] + at * width;
      grad_keys[p] = gradients_.key[p] ? gradients_.key[p] + at * depth : nullptr;
      grad_values[p] = gradients_.value[p] ? gradients_.value[p] + at * width : nullptr;
    }
    if (needs_.want_du) {
      key_prefix_.add_gradients(du_, query_, keys, problem_.grad_query.data ? grad_query_ : nullptr,
                                grad_keys);
    }
    if (!gradients_.leading_values) return;
    if (problem_.reduce == ValueReduce::product) {
      add_leave_one_out(y_, grad_out_, values, leading, static_cast<R*>(nullptr), grad_values,
                        width);
      return;
    }
    const Tag<R> d;
    for (int p = 0; p < leading; ++p) {
      if (grad_values[p]) add_scaled(grad_values[p], hn::Set(d, sum), grad_out_, width);
    }
  }

  const DenseBackward<T>& problem_;
  const TupleLists& lists_;
  const Geometry& geometry_;
  const HeadRows<R>& rows_;
  const HaloGradients<R>& gradients_;
  const int64_t batch_, head_, list_;
  const R output_scale_;
  Arena<R> arena_;
  R* const query_;       // [lead_depth]   s1 unit query
  R* const grad_query_;  // [lead_depth]   without s1
  R* const u_;           // [depth]
  R* const du_;          // [depth]
  R* const grad_out_;    // [value_depth]  s2 dO
  R* const g_;           // [value_depth]
  R* const y_;           // [value_depth]
  R* const p_;           // [kRunKeys]
  R* const ds_;          // [kRunKeys]
  KeyPrefix<R> key_prefix_;
  ValuePrefix<R> value_prefix_;
  const BlockGradients<R> needs_;
  R norm_ = 0;
  DeltaTerm<R> delta_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::sparse
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
