#include "causal/structure/matrix_exponential.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace nsimplex::causal {

Matrix exponential_of_nonnegative(const Matrix& matrix) {
  // sum_{k <= 12} B^k / k!, whose rest is below 1e-16 of it for norms up to 1/4.
  constexpr std::array<double, 13> kInverseFactorials = {
      1,          1,           1. / 2,       1. / 6,        1. / 24,       1. / 120,      1. / 720,
      1. / 5040., 1. / 40320., 1. / 362880., 1. / 3628800., 1. / 39916800, 1. / 479001600};
  constexpr double kNorm = 0.25;
  constexpr size_t kStride = 4;  // Paterson-Stockmeyer: powers up to 4, then Horner in B^4

  const int64_t size = matrix.rows();
  const double norm = size == 0 ? 0 : matrix.rowwise().sum().maxCoeff();
  const int squarings = norm > kNorm ? static_cast<int>(std::ceil(std::log2(norm / kNorm))) : 0;
  std::array<Matrix, kStride + 1> powers;
  powers[0] = Matrix::Identity(size, size);
  powers[1] = std::ldexp(1.0, -squarings) * matrix;
  for (size_t k = 2; k <= kStride; ++k) powers[k].noalias() = powers[k - 1] * powers[1];

  Matrix result = kInverseFactorials[12] * powers[0];
  Matrix product(size, size);
  for (size_t block = 3; block-- > 0;) {
    product.noalias() = result * powers[kStride];
    result.swap(product);
    for (size_t k = 0; k < kStride; ++k) {
      result.noalias() += kInverseFactorials[block * kStride + k] * powers[k];
    }
  }
  for (int k = 0; k < squarings; ++k) {
    product.noalias() = result * result;
    result.swap(product);
  }
  return result;
}

}  // namespace nsimplex::causal
