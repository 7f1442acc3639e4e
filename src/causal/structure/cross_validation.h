#pragma once

#include <cstdint>
#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// Rows in five parts, drawn at random, each of which is predicted from the other four.
class CrossValidation {
 public:
  using Columns = Eigen::MatrixXd;

  CrossValidation(int64_t rows, uint64_t seed);

  /// [n, c] errors of every row of `outputs` [n, c], predicted from `features` [n, f] by least
  /// squares on the other parts, with `ridge` added to the mean square of every feature.
  ///
  /// Complexity: O(n f^2 + n f c + f^3).
  Columns errors(const Columns& features, const Columns& outputs, double ridge) const;

 private:
  std::vector<std::vector<int64_t>> parts_;
};

}  // namespace nsimplex::causal
