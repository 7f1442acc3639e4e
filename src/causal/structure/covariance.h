#pragma once

#include "causal/matrix.h"

namespace nsimplex::causal {

/// All that a linear Gaussian model sees of a table.
struct Covariance {
  Matrix matrix;         ///< [M, M], divided by the number of observations
  int64_t observations;  ///< n
};

/// Of the columns of a table, whatever their means. Complexity: O(n M^2).
Covariance covariance_of(TableView table);

}  // namespace nsimplex::causal
