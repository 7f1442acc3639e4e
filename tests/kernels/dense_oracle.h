#pragma once

#include <vector>

#include "kernels/common/dense_problem.h"

namespace nsimplex::kernels::testing {

/// Results of the definition in fp64, as contiguous [batch, head, row, channel] arrays.
struct DenseOracle {
  std::vector<double> out, lse;
  std::vector<double> grad_query;
  std::vector<std::vector<double>> grad_key, grad_value;
};

/// A plain loop over all tuples. Gradients of `grad_out` and `grad_lse` (both zero when null).
DenseOracle dense_oracle(const DenseProblem<float>& problem, const Rows<const float>* grad_out,
                         const float* grad_lse);

}  // namespace nsimplex::kernels::testing
