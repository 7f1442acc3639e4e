#include "causal/structure/regression.h"

#include <cmath>

namespace nsimplex::causal {
namespace {

// Below this part of its variance, what is left of a column is rounding.
constexpr double kNothingLeft = 1e-10;

}  // namespace

ConditionedColumns::ConditionedColumns(const Matrix& covariance)
    : covariance_(covariance), variance_(covariance.diagonal()) {}

bool ConditionedColumns::varies(int64_t column) const {
  return variance_[column] > kNothingLeft * covariance_(column, column);
}

Vector ConditionedColumns::covariance_with(int64_t column) const {
  Vector result = covariance_.row(column);
  for (const Vector& row : rows_) result -= row[column] * row;
  return result;
}

void ConditionedColumns::condition_on(int64_t column) {
  if (!varies(column)) return;
  Vector row = covariance_with(column) / std::sqrt(variance_[column]);
  variance_.array() -= row.array().square();
  rows_.push_back(std::move(row));
}

Regression regress(const Matrix& covariance, int64_t column, std::span<const int64_t> causes) {
  const auto count = static_cast<int64_t>(causes.size());
  const auto cause = [&](int64_t k) { return causes[static_cast<size_t>(k)]; };
  // The factor of the causes, [count, count], and of them with the column, side by side.
  Matrix factor = Matrix::Zero(count, count);
  Vector mixed = Vector::Zero(count);
  double variance = covariance(column, column);
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t l = 0; l < k; ++l) {
      if (factor(l, l) == 0) continue;
      factor(k, l) =
          (covariance(cause(k), cause(l)) - factor.row(k).head(l).dot(factor.row(l).head(l))) /
          factor(l, l);
    }
    const double own = covariance(cause(k), cause(k));
    const double left = own - factor.row(k).head(k).squaredNorm();
    if (left <= kNothingLeft * own) continue;
    factor(k, k) = std::sqrt(left);
    mixed[k] =
        (covariance(cause(k), column) - factor.row(k).head(k).dot(mixed.head(k))) / factor(k, k);
    variance -= mixed[k] * mixed[k];
  }
  // The inverse of the factor: coefficients = inverse^T mixed, and the squared length of column k
  // of the inverse is the reciprocal of what cause k has to itself.
  Matrix inverse = Matrix::Zero(count, count);
  for (int64_t k = 0; k < count; ++k) {
    if (factor(k, k) == 0) continue;
    inverse(k, k) = 1 / factor(k, k);
    for (int64_t l = 0; l < k; ++l) {
      inverse(k, l) = -factor.row(k).head(k).dot(inverse.col(l).head(k)) / factor(k, k);
    }
  }
  Regression result{variance, inverse.transpose() * mixed, Vector::Zero(count)};
  for (int64_t k = 0; k < count; ++k) {
    if (factor(k, k) == 0) continue;
    result.increase[k] =
        result.coefficients[k] * result.coefficients[k] / inverse.col(k).squaredNorm();
  }
  return result;
}

}  // namespace nsimplex::causal
