#include "causal/structure/least_squares.h"

namespace nsimplex::causal {

LeastSquares::LeastSquares(const Matrix& covariance, const CandidateEdges& edges)
    : covariance_(covariance), edges_(edges), left_(covariance.rows()) {}

double LeastSquares::operator()(const Vector& weights, Vector& gradient) {
  // Whole rows of S are added up where most of a row is wanted: no index, so SIMD.
  constexpr int64_t kWholeRow = 4;
  const int64_t features = edges_.features();
  gradient.resize(edges_.size());
  double loss = 0;
  for (int64_t effect = 0; effect < features; ++effect) {
    const int64_t begin = edges_.first(effect);
    const int64_t end = edges_.first(effect + 1);
    const auto covariance = covariance_.row(effect);
    if ((end - begin) * kWholeRow > features) {
      left_ = covariance;
      for (int64_t k = begin; k < end; ++k) {
        if (weights[k] == 0) continue;
        left_.noalias() -= weights[k] * covariance_.row(edges_.cause(k)).transpose();
      }
    } else {
      for (int64_t i = begin; i < end; ++i) left_[edges_.cause(i)] = covariance[edges_.cause(i)];
      for (int64_t k = begin; k < end; ++k) {
        if (weights[k] == 0) continue;
        const double* row = covariance_.row(edges_.cause(k)).data();
        for (int64_t i = begin; i < end; ++i) {
          left_[edges_.cause(i)] -= weights[k] * row[edges_.cause(i)];
        }
      }
    }
    double explained = 0;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t cause = edges_.cause(k);
      explained += weights[k] * (covariance[cause] + left_[cause]);
      gradient[k] = -left_[cause];
    }
    loss += (covariance[effect] - explained) / 2;
  }
  return loss;
}

}  // namespace nsimplex::causal
