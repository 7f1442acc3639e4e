#include "causal/structure/lasso.h"

#include <cmath>

namespace nsimplex::causal {

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

// One pass over all coordinates, or those that are not zero; whether one of them moved.
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

}  // namespace nsimplex::causal
