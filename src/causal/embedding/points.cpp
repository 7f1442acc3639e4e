#include "causal/embedding/points.h"

#include <cmath>

namespace nsimplex::causal {

Points::Points(const Matrix& tangents)
    : count_(tangents.rows()), rows_(tangents), radius_(Eigen::ArrayXd::Zero(count_)) {
  for (int64_t point = 0; point < count_; ++point) {
    const double r = rows_.row(point).norm();
    radius_[point] = r;
    if (r > 0) {
      rows_.row(point) /= r;
    } else {
      rows_(point, 0) = 1;
    }
  }
  derive();
}

Points::Points(const Points& all, const std::vector<int64_t>& chosen)
    : count_(std::ssize(chosen)),
      rows_(all.rows_(chosen, Eigen::all)),
      radius_(all.radius_(chosen)) {
  derive();
}

void Points::derive() {
  constexpr int64_t kLanes = kernels::kHyperbolicLanes;
  const int64_t padded = (count_ + kLanes - 1) / kLanes * kLanes;
  const auto pad = [&](const Eigen::ArrayXd& values) {
    Eigen::ArrayXd longer = Eigen::ArrayXd::Zero(padded);
    longer.head(count_) = values;
    return longer;
  };
  sinh_ = pad(radius_.sinh());
  cosh_ = pad(radius_.cosh());
  grown_ = pad((0.5 * radius_).exp());
  shrunk_ = pad((-0.5 * radius_).exp());
  radius_ = pad(radius_);
  axes_ = Eigen::ArrayXXd::Zero(padded, rows_.cols());
  axes_.topRows(count_) = rows_.array();
}

kernels::HyperbolicPoint Points::one(int64_t point) const {
  return {&rows_(point, 0), sinh_[point], cosh_[point], grown_[point], shrunk_[point]};
}

kernels::HyperbolicPoints Points::all() const {
  return {padded(), dimension(), axes_.data(), sinh_.data(), grown_.data(), shrunk_.data()};
}

double Points::square(int64_t from, int64_t to) const {
  const double half = std::sinh(0.5 * (radius_[from] - radius_[to]));
  const double gap = (rows_.row(from) - rows_.row(to)).squaredNorm();
  return half * half + 0.25 * sinh_[from] * sinh_[to] * gap;
}

double Points::distance(int64_t from, int64_t to) const {
  return 2 * std::asinh(std::sqrt(square(from, to)));
}

double distance(const Vector& z, const Vector& w) {
  Matrix both(2, z.size());
  both << z.transpose(), w.transpose();
  return Points(both).distance(0, 1);
}

}  // namespace nsimplex::causal
