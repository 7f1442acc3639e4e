#pragma once

#include <limits>
#include <vector>

#include "kernels/common/attention_problem.h"

namespace nsimplex::kernels::testing {

/// Results of the definition, as contiguous [batch, head, row, channel] arrays.
struct DenseOracle {
  std::vector<double> out, lse;
  std::vector<double> grad_query;
  std::vector<std::vector<double>> grad_key, grad_value;
  std::vector<double> grad_sink;                ///< [heads]; empty without a sink
  std::vector<std::vector<double>> grad_masks;  ///< of the additive masks: place_gradient()
  double smallest_logit = std::numeric_limits<double>::infinity();  ///< in magnitude
};

/// Places for the gradient of a mask, contiguous over [batch, heads, queries, its axes]. Returns how many.
template <class T>
int64_t place_gradient(const DenseProblem<T>& problem, const TuplePlaces& mask,
                       TuplePlaces& places);

/// A plain loop over all tuples, in long double. Gradients of `grad_out` and `grad_lse` (both zero
/// when null).
template <class T>
DenseOracle dense_oracle(const DenseProblem<T>& problem, const Rows<const T>* grad_out,
                         const Accum<T>* grad_lse);

}  // namespace nsimplex::kernels::testing
