#include "causal/structure/acyclicity.h"

#include <cmath>
#include <limits>

#include "causal/structure/m_matrix.h"
#include "causal/structure/matrix_exponential.h"

namespace nsimplex::causal {

double log_det_acyclicity(const Matrix& weights, double s, Matrix& gradient) {
  gradient = -weights.cwiseAbs2();
  gradient.diagonal().array() += s;
  double log_det = 0;
  if (!invert_m_matrix(gradient, log_det)) return std::numeric_limits<double>::infinity();
  gradient.transposeInPlace();
  gradient.array() *= 2 * weights.array();
  return static_cast<double>(weights.rows()) * std::log(s) - log_det;
}

double trace_exponential_acyclicity(const Matrix& weights, Matrix& gradient) {
  const Matrix exponential = exponential_of_nonnegative(weights.cwiseAbs2());
  gradient = 2 * weights.cwiseProduct(exponential.transpose());
  return exponential.trace() - static_cast<double>(weights.rows());
}

}  // namespace nsimplex::causal
