#include "causal/structure/held_out_regression.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>

#include "support/random.h"

namespace nsimplex::causal {
namespace {

constexpr double kFitted = 0.6;  // part of the rows
constexpr int64_t kMostFeatures = 100;
constexpr int64_t kRowsAFeature = 10;   // fitted rows that a feature needs
constexpr double kSteepness = 1.5;      // standard deviation of w: tanh bends within the data
constexpr double kFarthest = 2;         // offsets lie within +-
constexpr double kHeldOutRidge = 1e-5;  // of a feature's mean square of 1
constexpr double kLeastNoise = 1e-10;

}  // namespace

HeldOutRegression::HeldOutRegression(TableView table, uint64_t seed) {
  RandomStream random(seed);
  const int64_t rows = table.rows();
  const auto fitted = static_cast<int64_t>(std::ceil(kFitted * static_cast<double>(rows)));
  std::vector<int64_t> shuffled(static_cast<size_t>(rows));
  for (size_t k = 0; k < shuffled.size(); ++k) shuffled[k] = static_cast<int64_t>(k);
  for (size_t k = shuffled.size(); k > 1; --k) {
    std::swap(shuffled[k - 1],
              shuffled[static_cast<size_t>(random.below(static_cast<int64_t>(k)))]);
  }
  const Columns outputs = table.rowwise() - table.colwise().mean();
  deviations_ = (outputs.colwise().squaredNorm() / static_cast<double>(rows)).cwiseSqrt();
  const Columns inputs = outputs * deviations_.cwiseInverse().asDiagonal();
  const auto part = [&](int64_t first, int64_t last) {
    const std::vector<int64_t> some(shuffled.begin() + first, shuffled.begin() + last);
    return Part{inputs(some, Eigen::all), outputs(some, Eigen::all)};
  };
  fitted_ = part(0, fitted);
  held_out_ = part(fitted, rows);

  const int64_t features = std::clamp<int64_t>(fitted / kRowsAFeature, 1, kMostFeatures);
  directions_ =
      Columns::NullaryExpr(table.cols(), features, [&] { return kSteepness * random.normal(); });
  offsets_ = Vector::NullaryExpr(features, [&] { return kFarthest * (2 * random.unit() - 1); });
}

HeldOutRegression::Columns HeldOutRegression::directions(const std::vector<int64_t>& causes) const {
  const double scale = 1 / std::sqrt(std::max(static_cast<double>(causes.size()), 1.0));
  return scale * directions_(causes, Eigen::all);
}

HeldOutRegression::Columns HeldOutRegression::features(const Part& part,
                                                       const std::vector<int64_t>& causes) const {
  const int64_t rows = part.inputs.rows(), count = static_cast<int64_t>(causes.size());
  if (causes.empty()) return Columns::Ones(rows, 1);
  Columns result(rows, 1 + count + offsets_.size());
  result.col(0).setOnes();
  auto given = result.middleCols(1, count);
  given = part.inputs(Eigen::all, causes);
  auto bent = result.rightCols(offsets_.size());
  bent.noalias() = given * directions(causes);
  bent.rowwise() += offsets_.transpose();
  // tanh, by the exponential that Eigen vectorises.
  bent = 1 - 2 / (1 + (2 * bent.array()).exp());
  return result;
}

HeldOutRegression::Columns HeldOutRegression::coefficients(
    const std::vector<int64_t>& causes, const std::vector<int64_t>& columns) const {
  const Columns given = features(fitted_, causes);
  const auto rows = static_cast<double>(given.rows());
  Columns gram = Columns::Zero(given.cols(), given.cols());
  gram.selfadjointView<Eigen::Lower>().rankUpdate(given.transpose(), 1 / rows);
  gram.diagonal().array() += kHeldOutRidge;
  const Columns mixed = given.transpose() * fitted_.outputs(Eigen::all, columns) / rows;
  return gram.selfadjointView<Eigen::Lower>().llt().solve(mixed);
}

Vector HeldOutRegression::residuals(const std::vector<int64_t>& causes,
                                    const std::vector<int64_t>& columns) const {
  const Columns left = held_out_.outputs(Eigen::all, columns) -
                       features(held_out_, causes) * coefficients(causes, columns);
  const Vector means = left.colwise().squaredNorm() / static_cast<double>(left.rows());
  return means.cwiseMax(kLeastNoise * deviations_(columns).cwiseAbs2());
}

HeldOutRegression::Slopes HeldOutRegression::slopes(const std::vector<int64_t>& causes,
                                                    int64_t column) const {
  const int64_t count = static_cast<int64_t>(causes.size());
  const Vector coefficient = coefficients(causes, {column});
  // The derivative of tanh is 1 - tanh^2.
  Columns bent = features(held_out_, causes).rightCols(offsets_.size());
  bent = (1 - bent.array().square()).matrix() * coefficient.tail(offsets_.size()).asDiagonal();
  Columns slope = bent * directions(causes).transpose();
  slope.rowwise() += coefficient.segment(1, count).transpose();
  const auto rows = static_cast<double>(slope.rows());
  return {slope.colwise().sum() / rows, slope.colwise().squaredNorm() / rows};
}

}  // namespace nsimplex::causal
