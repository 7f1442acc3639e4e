#include "causal/structure/additive_regression.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>

#include "causal/structure/spline_basis.h"

namespace nsimplex::causal {
namespace {

constexpr double kLeastLeft = 1e-10;
constexpr double kSplineRidge =
    1e-8;  // of orthonormal coefficients: copies of a column are no error
constexpr int64_t kMostIntervals = 8;

int64_t intervals_of(int64_t rows) {
  const double usual = std::round(std::cbrt(static_cast<double>(rows)) / 2);
  return std::clamp<int64_t>(static_cast<int64_t>(usual), 1, kMostIntervals);
}

}  // namespace

AdditiveRegression::AdditiveRegression(TableView table)
    : table_(table.rowwise() - table.colwise().mean()) {
  table_.colwise().normalize();
  for (int64_t column = 0; column < table.cols(); ++column) {
    bases_.push_back(spline_basis(table.col(column), intervals_of(table.rows())));
    mixed_.push_back(bases_.back().transpose() * table_);
  }
}

const AdditiveRegression::Columns& AdditiveRegression::product(int64_t first, int64_t second) {
  const auto [at, added] = products_.try_emplace(first * features() + second);
  if (added) at->second = basis(first).transpose() * basis(second);
  return at->second;
}

double AdditiveRegression::unexplained(int64_t column, const std::vector<int64_t>& causes) {
  int64_t count = 0;
  for (const int64_t cause : causes) count += parameters(cause);
  Columns gram = Columns::Zero(count, count);
  Vector mix(count);
  int64_t row = 0;
  for (size_t i = 0; i < causes.size(); ++i) {
    const int64_t rows = parameters(causes[i]);
    mix.segment(row, rows) = mixed_[static_cast<size_t>(causes[i])].col(column);
    gram.block(row, row, rows, rows).setIdentity();
    int64_t before = 0;
    for (size_t k = 0; k < i; ++k) {
      const int64_t columns = parameters(causes[k]);
      gram.block(row, before, rows, columns) = product(causes[k], causes[i]).transpose();
      before += columns;
    }
    row += rows;
  }
  gram.diagonal().array() += kSplineRidge;
  const Vector solved = gram.selfadjointView<Eigen::Lower>().llt().matrixL().solve(mix);
  return std::max(1 - solved.squaredNorm(), kLeastLeft);
}

Matrix AdditiveRegression::unexplained_by_one() const {
  Matrix left(features(), features());
  for (int64_t cause = 0; cause < features(); ++cause) {
    left.row(cause) = 1 - mixed_[static_cast<size_t>(cause)].colwise().squaredNorm().array();
  }
  return left.cwiseMax(kLeastLeft);
}

double AdditiveRegression::unexplained_held_out(int64_t column, const std::vector<int64_t>& causes,
                                                const CrossValidation& rows) const {
  int64_t count = 1;
  for (const int64_t cause : causes) count += parameters(cause);
  Columns given(table_.rows(), count);
  given.col(0).setConstant(1 / std::sqrt(static_cast<double>(table_.rows())));
  int64_t at = 1;
  for (const int64_t cause : causes) {
    given.middleCols(at, parameters(cause)) = basis(cause);
    at += parameters(cause);
  }
  // Features of length 1 have a mean square of 1 / n.
  const double ridge = kSplineRidge / static_cast<double>(table_.rows());
  return std::max(rows.errors(given, table_.col(column), ridge).squaredNorm(), kLeastLeft);
}

}  // namespace nsimplex::causal
