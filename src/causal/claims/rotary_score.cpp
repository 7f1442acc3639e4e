#include "causal/claims/rotary_score.h"

#include <cmath>

namespace nsimplex::causal {

RotaryScore::RotaryScore(const Vector& query, const Vector& key, double scale) : scale_(scale) {
  const int64_t planes = query.size() / 2;
  alpha_.resize(planes);
  beta_.resize(planes);
  for (int64_t t = 0; t < planes; ++t) {
    const double a = query[2 * t], b = query[2 * t + 1], x = key[2 * t], y = key[2 * t + 1];
    alpha_[t] = a * x + b * y;
    beta_[t] = a * y - b * x;
  }
  largest_ = alpha_.abs().maxCoeff();
  rest_ = beta_.abs().sum();
  norms_ = query.norm() * key.norm();
}

double RotaryScore::operator()(const Vector& gap) const {
  const Eigen::ArrayXd angles = scale_ * gap.array();
  return (alpha_ * angles.cos() + beta_ * angles.sin()).sum();
}

double RotaryScore::bound(double gap) const {
  const auto d = static_cast<double>(planes());
  return largest_ * d * std::cos(scale_ * gap / d) + rest_;
}

double angle_scale(double scale, bool by_dimension, int64_t planes) {
  return by_dimension ? scale * std::sqrt(static_cast<double>(planes)) : scale;
}

}  // namespace nsimplex::causal
