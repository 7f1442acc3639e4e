#pragma once

#include <nsimplex/causal_options.h>

#include <string>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// What an estimator answers; A_ij belongs to i -> j. Nothing of it is thresholded or repaired.
struct Structure {
  Matrix weights;     ///< [M, M] coefficients of x_j on x_i, 0 where there is no edge
  Matrix scores;      ///< [M, M] how sure the edge is, >= 0, comparable within one answer
  std::string model;  ///< which of its models an estimator chose, or its own name
};

}  // namespace nsimplex::causal
