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
  std::vector<double> grad_sink;  ///< [heads]; empty without a sink
  double smallest_logit = std::numeric_limits<double>::infinity();  ///< in magnitude
};

/// A plain loop over all tuples, in long double. Gradients of `grad_out` and `grad_lse` (both zero
/// when null).
template <class T>
DenseOracle dense_oracle(const DenseProblem<T>& problem, const Rows<const T>* grad_out,
                         const Accum<T>* grad_lse);

}  // namespace nsimplex::kernels::testing
