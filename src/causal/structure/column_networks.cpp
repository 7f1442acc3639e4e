// Learns a causal graph by one small network per column.

#include "causal/structure/column_networks.h"

#include <array>
#include <cmath>

#include "causal/structure/acyclicity.h"
#include "causal/structure/estimators.h"
#include "causal/structure/quasi_newton.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

// Views of the parameters in a vector: T [units, M], b and v [units], c [M].
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
  misfit *= static_cast<double>(features) / square;  // now the derivative of the loss by x^

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

namespace {

constexpr double kNetworkSparsity = 0.02, kDecay = 0.005;  // as in the source's code
constexpr int64_t kHidden = 10;
constexpr double kScale = 1;                                                  // s
constexpr std::array<double, 4> kNetworkStages = {0.1, 0.01, 0.001, 0.0001};  // mu
constexpr int64_t kNetworkIterations = 150;                                   // per stage

}  // namespace

Structure fit_logdet_networks(TableView table, const CausalFitOptions& options) {
  const int64_t features = table.cols();
  const CandidateEdges edges(options.constraints, features);
  const double sparsity = options.sparsity.value_or(kNetworkSparsity);
  ColumnNetworks networks(table, kHidden, edges.matrix(Vector::Ones(edges.size())));
  const Vector l1 = networks.first_layer(edges.matrix(edges.penalties(sparsity)));

  Vector point = networks.start(static_cast<uint64_t>(options.seed));
  Matrix slope;
  for (const double mu : kNetworkStages) {
    const auto objective = [&](const Vector& at, Vector& gradient) {
      const Matrix strengths = networks.strengths(at);
      const double acyclicity = log_det_acyclicity(strengths, kScale, slope);
      if (std::isinf(acyclicity)) return acyclicity;
      const double loss = networks.loss(at, gradient) + kDecay / 2 * at.squaredNorm();
      gradient = mu * (gradient + kDecay * at);
      // A_ij is a norm: dA_ij / dtheta = theta / A_ij, and dh / dA_ij is a multiple of A_ij.
      const Matrix share = (strengths.array() > 0).select(slope.array() / strengths.array(), 0);
      gradient += networks.first_layer(share).cwiseProduct(at);
      return mu * loss + acyclicity;
    };
    minimise(
        objective, mu * l1, point,
        {.iterations = kNetworkIterations, .tolerance = 1e-5, .checkpoint = options.checkpoint});
  }
  const Matrix found = networks.strengths(point);
  return {found, found, "logdet networks"};
}

}  // namespace nsimplex::causal
