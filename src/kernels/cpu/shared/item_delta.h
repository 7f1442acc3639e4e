// The term delta = o . dO - dlse of a query, which the gradients of all its tuples share.

#pragma once

#include <cmath>
#include <limits>

#include "kernels/common/attention_problem.h"

namespace nsimplex::kernels::dense {

/// delta = o . dO - dlse of one query: the shared normaliser's term in every tuple's gradient.
template <class T>
double item_delta(const DenseBackward<T>& problem, int64_t batch, int64_t head, int64_t query) {
  const int64_t statistic = (batch * problem.heads + head) * problem.queries + query;
  const T* const out = problem.out.row(batch, head, query);
  const T* const grad_out = problem.grad_out.row(batch, head, query);
  double delta = problem.grad_lse ? -problem.grad_lse[statistic] : 0.0;
  for (int64_t c = 0; c < problem.value_dim; ++c) {
    delta += static_cast<double>(to_accum(out[c])) * to_accum(grad_out[c]);
  }
  return delta;
}

/// From this weight on, all other tuples of a query together weigh less than an output of 16 bits
/// shows. The rounding of weights stays above it, see kLargeLse.
inline constexpr double kWholeWeight = 1 - 0x1p-13;

/// Whether delta has the rounding of an output of 16 bits, which would be all that is left in the
/// gradient of the logit of a tuple of kWholeWeight: dP and delta are equal but for that rounding.
template <class T>
inline constexpr bool kRoundedDelta = sizeof(T) == 2;

/// How a row's scores become weights: factor 2^(x + norm), with logits base + x ln 2.
template <class R>
struct ItemNorm {
  R base = 0;
  double norm = 0, factor = 1;
};

/// For a row whose weights are exponentials. If lse is large, the row's state has the digits of the
/// logarithm that lse lacks. The factor is then not in P but in the factors of P: the output's
/// gradient and delta.
template <class T>
ItemNorm<Accum<T>> item_norm(const DenseBackward<T>& problem, int64_t statistic) {
  using R = Accum<T>;
  const R lse = problem.lse[statistic];
  if (problem.states && is_large_lse(lse) && !problem.states[statistic].fresh()) {
    const SoftmaxState<R>& state = problem.states[statistic];
    // The given lse may include more tuples than the call has, but never by less than its own
    // rounding.
    double beyond = static_cast<double>(state.log_sum_exp()) - lse;
    if (!(std::abs(beyond) > 4 * std::numeric_limits<R>::epsilon() * std::abs(lse))) beyond = 0;
    return {state.base, -static_cast<double>(state.max), std::exp(beyond) / state.sum};
  }
  return {.norm = -lse * kLog2E};
}

/// The gradient of one head's sink, queries in order: -sum_i exp(sink - lse_i) delta_i.
template <class T>
void write_sink_gradient(const DenseBackward<T>& problem, int64_t head) {
  double sum = 0.0;
  for (int64_t b = 0; b < problem.batch; ++b) {
    for (int64_t i = 0; i < problem.queries; ++i) {
      const int64_t statistic = (b * problem.heads + head) * problem.queries + i;
      const Accum<T> lse = problem.lse[statistic];
      if (lse == -std::numeric_limits<Accum<T>>::infinity()) continue;  // no tuple, no sink
      const auto [base, norm, factor] = item_norm(problem, statistic);
      const double sink = static_cast<double>(problem.sink[head]) - base;
      const double weight = factor * std::exp2(sink * kLog2E + norm);
      sum -= weight * item_delta(problem, b, head, i);
    }
  }
  problem.grad_sink[head] = static_cast<Accum<T>>(sum);
}

}  // namespace nsimplex::kernels::dense
