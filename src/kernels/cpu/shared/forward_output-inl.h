// Turns softmax states and totals into out and lse, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_FORWARD_OUTPUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_FORWARD_OUTPUT_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_FORWARD_OUTPUT_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_FORWARD_OUTPUT_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "kernels/common/softmax_state.h"
#include "kernels/cpu/shared/convert-inl.h"
#include "kernels/cpu/shared/geometry.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// out = s2 total / normaliser and lse of one item; 0 and minus infinity for a query without
/// tuples. If the call asks for states, the item's state instead.
template <class T, class R>
void write_item(const DenseForward<T>& problem, const Geometry& geometry, int64_t batch,
                int64_t head, int64_t item, SoftmaxState<R> state, const R* total) {
  const int64_t query = item / geometry.group, query_head = geometry.query_head(head, item);
  const int64_t statistic = (batch * problem.heads + query_head) * problem.queries + query;
  // The sink: one more logit, without a value, if there is a tuple.
  R own = 1;
  if (problem.normalizer == Normalizer::softmax_sink && !(state.fresh() && state.sum == 0)) {
    own = state.merge(SoftmaxState<R>::of(problem.sink[query_head])).own;
  }
  if (problem.states) {
    problem.states[statistic] = state;
    return;
  }
  T* const out = problem.out.row(batch, query_head, query);
  R& lse = problem.lse[statistic];
  // No tuple, or weights of relu that are all 0. NaN does not match this.
  if (state.sum == 0 && (state.fresh() || problem.normalizer == Normalizer::relu)) {
    std::fill(out, out + problem.value_dim, T{});
    lse = -std::numeric_limits<R>::infinity();
    return;
  }
  R factor = static_cast<R>(problem.output_scale /
                            (problem.reduce == ValueReduce::mean ? problem.order : 1));
  if (problem.normalizer == Normalizer::sigmoid) {
    lse = 0;
  } else {
    factor *= own;
    factor *= state.normalizer();
    lse = state.log_sum_exp();
  }
  store_row(out, factor, total, problem.value_dim);
}

/// Merges the `count` parts that one head's splits left, in order, into the first, and writes the
/// items.
template <class T, class R>
void merge_parts(const DenseForward<T>& problem, const Geometry& geometry, const Splits& splits,
                 int64_t count, int64_t batch, int64_t head, R* parts) {
  using State = SoftmaxState<R>;
  const int64_t width = geometry.value_depth;
  auto* const states = reinterpret_cast<State*>(parts);
  for (int64_t item = 0; item < geometry.items; ++item) {
    R* const total = parts + splits.totals + item * width;
    for (int64_t s = 1; s < count; ++s) {
      const R* const part = parts + s * splits.size;
      const R* const other = part + splits.totals + item * width;
      const auto factors = states[item].merge(reinterpret_cast<const State*>(part)[item]);
      for (int64_t c = 0; c < width; ++c) {
        total[c] = factors.own * total[c] + factors.other * other[c];
      }
    }
    write_item(problem, geometry, batch, head, item, states[item], total);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
