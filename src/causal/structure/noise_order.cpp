// Orders columns by how independent the noises of their regressions are.

#include "causal/structure/noise_order.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace nsimplex::causal {
namespace {

// Hyvaerinen's approximation of negentropy: the squared excesses of two means over those of a
// standard normal variable, divided by twice their variances.
constexpr double kLogCosh = 0.37457, kLogCoshFactor = 79.047;
constexpr double kOddFactor = 7.4129;

}  // namespace

double negentropy(const Eigen::ArrayXd& values) {
  const Eigen::ArrayXd size = values.abs();
  const double log_cosh = (size + (-2 * size).exp().log1p()).mean() - std::numbers::ln2;
  const double odd = (values * (-0.5 * values.square()).exp()).mean();
  return kLogCoshFactor * (log_cosh - kLogCosh) * (log_cosh - kLogCosh) + kOddFactor * odd * odd;
}

Order noise_order(Eigen::MatrixXd rest, const Precedence& precedence,
                  const std::function<bool()>& go_on) {
  Order order, left(static_cast<size_t>(rest.cols()));
  for (size_t k = 0; k < left.size(); ++k) left[k] = static_cast<int64_t>(k);
  OpenColumns columns(precedence);
  rest.rowwise() -= rest.colwise().mean().eval();
  while (!left.empty()) {
    if (!go_on()) return {};
    const auto count = static_cast<Eigen::Index>(left.size());
    const Vector deviations =
        (rest.colwise().squaredNorm().transpose() / static_cast<double>(rest.rows()))
            .cwiseSqrt()
            .cwiseMax(std::sqrt(kLeastNoise));
    const Eigen::MatrixXd scaled = rest * deviations.cwiseInverse().asDiagonal();
    const Eigen::MatrixXd shared = scaled.transpose() * scaled / static_cast<double>(scaled.rows());
    // (i, j): negentropies if i causes j, the noise of j being what i leaves of it
    Eigen::MatrixXd gained(count, count);
    for (Eigen::Index j = 0; j < count; ++j) {
      for (Eigen::Index i = 0; i < count; ++i) {
        const double part = shared(j, i);
        const double free = std::sqrt(std::max(1 - part * part, kLeastNoise));
        gained(i, j) = i == j ? 0 : negentropy((scaled.col(j) - part * scaled.col(i)) / free);
      }
    }
    for (Eigen::Index i = 0; i < count; ++i) gained.row(i).array() += negentropy(scaled.col(i));
    const Vector against =
        (gained - gained.transpose()).cwiseMin(0.0).rowwise().squaredNorm();  // its diagonal is 0
    Eigen::Index at = -1;
    for (Eigen::Index k = 0; k < count; ++k) {
      if (!columns.open(left[static_cast<size_t>(k)])) continue;
      if (at < 0 || against[k] < against[at]) at = k;
    }
    columns.place(left[static_cast<size_t>(at)]);
    order.push_back(left[static_cast<size_t>(at)]);
    left.erase(left.begin() + at);
    rest.resize(scaled.rows(), count - 1);
    for (Eigen::Index k = 0; k < count - 1; ++k) {
      const Eigen::Index from = k < at ? k : k + 1;
      rest.col(k) = scaled.col(from) - shared(from, at) * scaled.col(at);
    }
  }
  return order;
}

}  // namespace nsimplex::causal
