// Computes covariances, the least-squares loss, and lasso regressions that preselect edges.

#include "causal/structure/lasso.h"

#include <algorithm>
#include <cmath>

namespace nsimplex::causal {

Covariance covariance_of(TableView table) {
  const Matrix centred = table.rowwise() - table.colwise().mean();
  Matrix products = Matrix::Zero(table.cols(), table.cols());
  products.selfadjointView<Eigen::Lower>().rankUpdate(centred.transpose(),
                                                      1 / static_cast<double>(table.rows()));
  products.triangularView<Eigen::StrictlyUpper>() = products.transpose();
  return {std::move(products), table.rows()};
}

namespace {

constexpr int64_t kMostCopied = int64_t{1} << 27;  // numbers, 1 GB

}  // namespace

LeastSquares::LeastSquares(const Matrix& covariance, const CandidateEdges& edges)
    : covariance_(covariance), edges_(edges), among_(static_cast<size_t>(covariance.rows())) {
  // With most columns among the candidates, rows of S serve as they are.
  constexpr int64_t kWholeRow = 4;
  int64_t room = kMostCopied;
  for (int64_t effect = 0; effect < edges.features(); ++effect) {
    const std::span<const int64_t> causes = edges.causes(effect);
    const int64_t count = std::ssize(causes);
    if (count * kWholeRow > edges.features() || count * count > room) continue;
    room -= count * count;
    among_[static_cast<size_t>(effect)] = covariance(causes, causes);
  }
}

double LeastSquares::of_effect(int64_t effect, const Vector& weights, Vector& gradient) const {
  const std::span<const int64_t> causes = edges_.causes(effect);
  const int64_t begin = edges_.first(effect);
  const Matrix& among = among_[static_cast<size_t>(effect)];
  const auto covariance = covariance_.row(effect);
  const bool copied = among.size() > 0;
  // Covariances with the residual: of the candidates, or of all columns.
  Vector left = copied ? Vector(covariance(causes)) : Vector(covariance);
  double explained = 0;
  for (int64_t k = 0; k < std::ssize(causes); ++k) {
    const double weight = weights[begin + k];
    if (weight == 0) continue;
    const int64_t cause = causes[static_cast<size_t>(k)];
    if (copied) {
      left.noalias() -= weight * among.row(k).transpose();
    } else {
      left.noalias() -= weight * covariance_.row(cause).transpose();
    }
    explained += weight * covariance[cause];
  }
  for (int64_t k = 0; k < std::ssize(causes); ++k) {
    const double each = left[copied ? k : causes[static_cast<size_t>(k)]];
    explained += weights[begin + k] * each;
    gradient[begin + k] = -each;
  }
  return (covariance[effect] - explained) / 2;
}

double LeastSquares::operator()(const Vector& weights, Vector& gradient) {
  gradient.resize(edges_.size());
  double loss = 0;
  for (int64_t effect = 0; effect < edges_.features(); ++effect) {
    loss += of_effect(effect, weights, gradient);
  }
  return loss;
}

Lasso::Lasso(const Matrix& covariance, int64_t effect, std::vector<int64_t> causes,
             double tolerance)
    : covariance_(covariance),
      effect_(effect),
      least_step_(tolerance * std::sqrt(covariance(effect, effect))),
      causes_(std::move(causes)),
      coefficients_(Vector::Zero(static_cast<int64_t>(causes_.size()))),
      left_(coefficients_.size()) {
  for (int64_t k = 0; k < left_.size(); ++k) {
    left_[k] = covariance_(effect_, causes_[static_cast<size_t>(k)]);
  }
}

const Vector& Lasso::solve(const Vector& l1) {
  constexpr int kSweeps = 1000;
  int sweeps = 0;
  while (sweeps < kSweeps && sweep(l1, true)) {
    while (++sweeps < kSweeps && sweep(l1, false)) {
    }
  }
  return coefficients_;
}

double Lasso::variance() const {
  double explained = 0;
  for (int64_t k = 0; k < left_.size(); ++k) {
    if (coefficients_[k] == 0) continue;
    explained +=
        coefficients_[k] * (covariance_(effect_, causes_[static_cast<size_t>(k)]) + left_[k]);
  }
  return covariance_(effect_, effect_) - explained;
}

// One pass over all coordinates, or over those that are not zero. Returns whether one of them
// moved.
bool Lasso::sweep(const Vector& l1, bool all) {
  bool moved = false;
  for (int64_t k = 0; k < left_.size(); ++k) {
    double& coefficient = coefficients_[k];
    if (!all && coefficient == 0) continue;
    const double* row = covariance_.row(causes_[static_cast<size_t>(k)]).data();
    const double variance = row[causes_[static_cast<size_t>(k)]];
    if (!(variance > 0)) continue;
    const double target = left_[k] + variance * coefficient;
    const double size = std::abs(target) - l1[k];
    const double step = (size > 0 ? std::copysign(size, target) / variance : 0) - coefficient;
    if (step == 0) continue;
    coefficient += step;
    for (int64_t i = 0; i < left_.size(); ++i) {
      left_[i] -= step * row[causes_[static_cast<size_t>(i)]];
    }
    moved = moved || std::abs(step) * std::sqrt(variance) > least_step_;
  }
  return moved;
}

namespace {

// Below the value sqrt(2 log M / n) that excludes unrelated columns. An unrelated column costs only
// time, but a missing cause costs an edge.
constexpr double kLenient = 0.5;
constexpr int kRounds = 3;           // alternations of coefficients and residual
constexpr double kTolerance = 1e-3;  // the set of edges is settled long before their weights

// The columns that may be neighbours of one: with few rows, those that correlate most with it.
std::vector<int64_t> possible_neighbours(const Matrix& matrix, int64_t column, int64_t rows) {
  const int64_t features = matrix.rows();
  std::vector<int64_t> others;
  for (int64_t other = 0; other < features; ++other) {
    if (other != column && matrix(other, other) > 0) others.push_back(other);
  }
  const auto most = static_cast<int64_t>(static_cast<double>(rows) /
                                         std::log(std::max(static_cast<double>(rows), 3.0)));
  if (rows >= 2 * features || std::ssize(others) <= most) return others;
  const auto weakness = [&](int64_t other) {
    return -matrix(column, other) * matrix(column, other) / matrix(other, other);
  };
  std::ranges::nth_element(others, others.begin() + most, {}, weakness);
  others.resize(static_cast<size_t>(std::max<int64_t>(most, 1)));
  std::ranges::sort(others);
  return others;
}

}  // namespace

std::vector<char> neighbourhoods(const Covariance& covariance,
                                 const std::function<void()>& checkpoint,
                                 const std::function<bool()>& stop) {
  const Matrix& matrix = covariance.matrix;
  const int64_t features = matrix.rows();
  const double penalty = kLenient * std::sqrt(std::log(static_cast<double>(features)) /
                                              static_cast<double>(covariance.observations));
  std::vector<char> near(static_cast<size_t>(features * features), 0);
  for (int64_t column = 0; column < features; ++column) {
    if (checkpoint) checkpoint();
    if (stop && stop()) break;
    const std::vector<int64_t> others =
        possible_neighbours(matrix, column, covariance.observations);
    const Vector deviations = matrix.diagonal().cwiseSqrt()(others);
    Lasso lasso(matrix, column, others, kTolerance);
    for (int round = 0; round < kRounds; ++round) {
      lasso.solve(penalty * std::sqrt(std::max(lasso.variance(), 0.0)) * deviations);
    }
    const Vector& coefficients = lasso.coefficients();
    for (int64_t k = 0; k < coefficients.size(); ++k) {
      if (coefficients[k] == 0) continue;
      const int64_t other = others[static_cast<size_t>(k)];
      near[static_cast<size_t>(column * features + other)] = 1;
      near[static_cast<size_t>(other * features + column)] = 1;
    }
  }
  return near;
}

}  // namespace nsimplex::causal
