#include "causal/structure/m_matrix.h"

#include <cmath>

namespace nsimplex::causal {
namespace {

// Below this size plain elimination is faster than products of halves.
constexpr int64_t kBlock = 32;

// Gauss-Jordan in place.
bool invert_block(Eigen::Ref<Matrix> matrix, double& log_det) {
  const int64_t size = matrix.rows();
  double determinant = 1;
  for (int64_t k = 0; k < size; ++k) {
    const double pivot = matrix(k, k);
    if (!(pivot > 0)) return false;
    determinant *= pivot;
    if (determinant < 1e-200 || determinant > 1e200) {
      log_det += std::log(determinant);
      determinant = 1;
    }
    double* pivot_row = &matrix(k, 0);
    pivot_row[k] = 1;
    for (int64_t j = 0; j < size; ++j) pivot_row[j] /= pivot;
    for (int64_t i = 0; i < size; ++i) {
      double* row = &matrix(i, 0);
      const double factor = row[k];
      if (i == k || factor == 0) continue;
      row[k] = 0;
      for (int64_t j = 0; j < size; ++j) row[j] -= factor * pivot_row[j];
    }
  }
  log_det += std::log(determinant);
  return true;
}

}  // namespace

bool invert_m_matrix(Eigen::Ref<Matrix> matrix, double& log_det) {
  const int64_t size = matrix.rows();
  if (size <= kBlock) return invert_block(matrix, log_det);
  const int64_t head = size / 2;
  const int64_t tail = size - head;
  auto a = matrix.topLeftCorner(head, head);
  auto b = matrix.topRightCorner(head, tail);
  auto c = matrix.bottomLeftCorner(tail, head);
  auto d = matrix.bottomRightCorner(tail, tail);
  if (!invert_m_matrix(a, log_det)) return false;
  const Matrix right = a * b;
  const Matrix below = c * a;
  d.noalias() -= c * right;
  if (!invert_m_matrix(d, log_det)) return false;
  b.noalias() = -right * d;
  c.noalias() = -d * below;
  a.noalias() -= b * below;
  return true;
}

}  // namespace nsimplex::causal
