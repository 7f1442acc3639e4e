#pragma once

#include <cmath>
#include <limits>

#include "kernels/common/dense_problem.h"

namespace nsimplex::kernels::dense {

/// delta = o . dO - dlse of one query: what a shared normaliser takes from every tuple's gradient.
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

/// The gradient of one head's sink, queries in order: -sum_i exp(sink - lse_i) delta_i.
template <class T>
void write_sink_gradient(const DenseBackward<T>& problem, int64_t head) {
  double sum = 0.0;
  for (int64_t b = 0; b < problem.batch; ++b) {
    for (int64_t i = 0; i < problem.queries; ++i) {
      const Accum<T> lse = problem.lse[(b * problem.heads + head) * problem.queries + i];
      if (lse == -std::numeric_limits<Accum<T>>::infinity()) continue;  // no tuple, no sink
      const double weight = std::exp(static_cast<double>(problem.sink[head]) - lse);
      sum -= weight * item_delta(problem, b, head, i);
    }
  }
  problem.grad_sink[head] = static_cast<Accum<T>>(sum);
}

}  // namespace nsimplex::kernels::dense
