#include "causal/structure/random_feature_regression.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>

#include "support/random.h"

namespace nsimplex::causal {
namespace {

constexpr int64_t kMostFeatures = 100;
constexpr int64_t kRowsOfAFeature = 15;  // rows that a feature needs
constexpr double kSteepness = 1.5;       // standard deviation of w: tanh bends within the data
constexpr double kFarthest = 2;          // offsets lie within +-
constexpr double kRidge = 1e-5;          // of a feature's mean square of 1
constexpr double kLeastNoise = 1e-10;

}  // namespace

RandomFeatureRegression::RandomFeatureRegression(TableView table, uint64_t seed)
    : rows_(table.rows(), seed), outputs_(table.rowwise() - table.colwise().mean()) {
  const int64_t rows = table.rows();
  deviations_ = (outputs_.colwise().squaredNorm() / static_cast<double>(rows)).cwiseSqrt();
  inputs_ = outputs_ * deviations_.cwiseInverse().asDiagonal();
  RandomStream random(seed);
  const int64_t features = std::clamp<int64_t>(rows / kRowsOfAFeature, 1, kMostFeatures);
  directions_ =
      Columns::NullaryExpr(table.cols(), features, [&] { return kSteepness * random.normal(); });
  offsets_ = Vector::NullaryExpr(features, [&] { return kFarthest * (2 * random.unit() - 1); });
}

RandomFeatureRegression::Columns RandomFeatureRegression::directions(
    const std::vector<int64_t>& causes) const {
  const double scale = 1 / std::sqrt(std::max(static_cast<double>(causes.size()), 1.0));
  return scale * directions_(causes, Eigen::all);
}

RandomFeatureRegression::Columns RandomFeatureRegression::features(
    const std::vector<int64_t>& causes) const {
  const int64_t rows = inputs_.rows(), count = static_cast<int64_t>(causes.size());
  if (causes.empty()) return Columns::Ones(rows, 1);
  Columns result(rows, 1 + count + offsets_.size());
  result.col(0).setOnes();
  auto given = result.middleCols(1, count);
  given = inputs_(Eigen::all, causes);
  auto bent = result.rightCols(offsets_.size());
  bent.noalias() = given * directions(causes);
  bent.rowwise() += offsets_.transpose();
  // tanh, by the exponential that Eigen vectorises.
  bent = 1 - 2 / (1 + (2 * bent.array()).exp());
  return result;
}

RandomFeatureRegression::Columns RandomFeatureRegression::errors(
    const std::vector<int64_t>& causes, const std::vector<int64_t>& columns) const {
  return rows_.errors(features(causes), outputs_(Eigen::all, columns), kRidge);
}

Vector RandomFeatureRegression::residuals(const std::vector<int64_t>& causes,
                                          const std::vector<int64_t>& columns) const {
  const Vector means =
      errors(causes, columns).colwise().squaredNorm() / static_cast<double>(outputs_.rows());
  return means.cwiseMax(kLeastNoise * deviations_(columns).cwiseAbs2());
}

RandomFeatureRegression::Slopes RandomFeatureRegression::slopes(const std::vector<int64_t>& causes,
                                                                int64_t column) const {
  const int64_t count = static_cast<int64_t>(causes.size());
  const auto rows = static_cast<double>(inputs_.rows());
  const Columns given = features(causes);
  Columns gram = Columns::Zero(given.cols(), given.cols());
  gram.selfadjointView<Eigen::Lower>().rankUpdate(given.transpose(), 1 / rows);
  gram.diagonal().array() += kRidge;
  const Vector coefficient = gram.selfadjointView<Eigen::Lower>().llt().solve(
      given.transpose() * outputs_.col(column) / rows);
  // The derivative of tanh is 1 - tanh^2.
  Columns bent = given.rightCols(offsets_.size());
  bent = (1 - bent.array().square()).matrix() * coefficient.tail(offsets_.size()).asDiagonal();
  Columns slope = bent * directions(causes).transpose();
  slope.rowwise() += coefficient.segment(1, count).transpose();
  return {slope.colwise().sum() / rows, slope.colwise().squaredNorm() / rows};
}

}  // namespace nsimplex::causal
