#include "causal/structure/column_networks.h"

#include <cmath>

#include "support/random.h"

namespace nsimplex::causal {
namespace {

// The parameters of a vector: T [units, M], b and v [units], c [M].
template <class Scalar>
struct Parts {
  using View = Eigen::Map<std::conditional_t<std::is_const_v<Scalar>, const Matrix, Matrix>>;
  using Row = Eigen::Map<
      std::conditional_t<std::is_const_v<Scalar>, const Eigen::RowVectorXd, Eigen::RowVectorXd>>;
  View first;
  Row bias, second, shift;

  Parts(Scalar* data, int64_t units, int64_t features)
      : first(data, units, features),
        bias(data + units * features, units),
        second(data + units * (features + 1), units),
        shift(data + units * (features + 2), features) {}
};

}  // namespace

ColumnNetworks::ColumnNetworks(TableView table, int64_t hidden, const Matrix& possible)
    : table_(table), hidden_(hidden) {
  possible_ = first_layer(possible);
  possible_.tail(size() - units() * table_.cols()).setOnes();
}

Vector ColumnNetworks::start(uint64_t seed) const {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_));
  RandomStream random(seed);
  Vector point = Vector::Zero(size());
  for (int64_t k = units() * table_.cols(); k < size() - table_.cols(); ++k) {
    point[k] = bound * (2 * random.unit() - 1);
  }
  return point;
}

double ColumnNetworks::loss(const Vector& point, Vector& gradient) const {
  const int64_t features = table_.cols();
  const Parts<const double> parts(point.data(), units(), features);
  Matrix active = table_ * parts.first.transpose();
  active.rowwise() += parts.bias;
  active = (1 + (-active.array()).exp()).inverse();
  Matrix misfit = parts.shift.replicate(table_.rows(), 1) - table_;
  for (int64_t column = 0; column < features; ++column) {
    misfit.col(column) += active.middleCols(column * hidden_, hidden_) *
                          parts.second.segment(column * hidden_, hidden_).transpose();
  }
  const double square = misfit.squaredNorm();
  misfit *= static_cast<double>(features) / square;  // now the loss's derivative by x^

  gradient.resize(size());
  Parts<double> slopes(gradient.data(), units(), features);
  slopes.shift = misfit.colwise().sum();
  for (int64_t column = 0; column < features; ++column) {
    const int64_t begin = column * hidden_;
    auto units_of = active.middleCols(begin, hidden_);
    slopes.second.segment(begin, hidden_) = misfit.col(column).transpose() * units_of;
    units_of = (units_of.array() * (1 - units_of.array())).matrix();
    units_of.array().colwise() *= misfit.col(column).array();
    units_of *= parts.second.segment(begin, hidden_).asDiagonal();
  }
  slopes.bias = active.colwise().sum();
  slopes.first.noalias() = active.transpose() * table_;
  gradient.array() *= possible_.array();
  return static_cast<double>(features) / 2 * std::log(square / static_cast<double>(table_.rows()));
}

Matrix ColumnNetworks::strengths(const Vector& point) const {
  const int64_t features = table_.cols();
  const Parts<const double> parts(point.data(), units(), features);
  Matrix strengths(features, features);
  for (int64_t column = 0; column < features; ++column) {
    strengths.col(column) =
        parts.first.middleRows(column * hidden_, hidden_).colwise().norm().transpose();
  }
  return strengths;
}

Vector ColumnNetworks::first_layer(const Matrix& edges) const {
  Vector point = Vector::Zero(size());
  Parts<double> parts(point.data(), units(), table_.cols());
  for (int64_t unit = 0; unit < units(); ++unit) {
    parts.first.row(unit) = edges.col(unit / hidden_).transpose();
  }
  return point;
}

}  // namespace nsimplex::causal
