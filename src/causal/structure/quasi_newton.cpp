// Minimises a smooth function plus an l1 norm by OWL-QN.

#include "causal/structure/quasi_newton.h"

#include <cmath>
#include <deque>

namespace nsimplex::causal {
namespace {

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

// The steepest one-sided slope of f + |.|_1 per coordinate, 0 if neither side descends.
void pseudo_gradient(const Vector& point, const Vector& gradient, const Vector& l1, Vector& slope) {
  for (int64_t i = 0; i < point.size(); ++i) {
    if (point[i] != 0) {
      slope[i] = gradient[i] + sign(point[i]) * l1[i];
    } else {
      const double shrunk = std::abs(gradient[i]) - l1[i];
      slope[i] = shrunk > 0 ? sign(gradient[i]) * shrunk : 0;
    }
  }
}

// The last steps and changes of the gradient, which represent the inverse Hessian.
class Curvature {
 public:
  explicit Curvature(int64_t memory) : memory_(static_cast<size_t>(memory)) {}

  void add(Vector step, Vector change) {
    const double curvature = step.dot(change);
    // The function is not convex along this step: the pair would make the inverse indefinite.
    if (curvature <= 1e-10 * step.norm() * change.norm()) return;
    if (pairs_.size() == memory_) pairs_.pop_front();
    pairs_.push_back({std::move(step), std::move(change), curvature});
  }

  void forget() { pairs_.clear(); }
  bool empty() const { return pairs_.empty(); }

  // Two-loop recursion (Nocedal, Wright, "Numerical optimization", algorithm 7.4), in place.
  void multiply_inverse_hessian(Vector& vector) const {
    if (pairs_.empty()) return;
    std::vector<double> projections(pairs_.size());
    for (size_t k = pairs_.size(); k-- > 0;) {
      projections[k] = pairs_[k].step.dot(vector) / pairs_[k].curvature;
      vector.noalias() -= projections[k] * pairs_[k].change;
    }
    vector *= pairs_.back().curvature / pairs_.back().change.squaredNorm();
    for (size_t k = 0; k < pairs_.size(); ++k) {
      const double projection = pairs_[k].change.dot(vector) / pairs_[k].curvature;
      vector.noalias() += (projections[k] - projection) * pairs_[k].step;
    }
  }

 private:
  struct Pair {
    Vector step, change;
    double curvature;
  };
  size_t memory_;
  std::deque<Pair> pairs_;
};

}  // namespace

double minimise(const SmoothFunction& function, const Vector& l1, Vector& point,
                const QuasiNewtonOptions& options) {
  constexpr double kSufficient = 1e-4;  // part of the predicted decrease that a step must reach
  constexpr int kHalvings = 40;
  constexpr size_t kWindow = 10;  // iterations over which the decrease is measured

  const int64_t size = point.size();
  Vector gradient(size), slope(size), direction(size), next(size), next_gradient(size);
  const auto norm = [&](const Vector& x) { return l1.dot(x.cwiseAbs()); };
  double value = function(point, gradient) + norm(point);
  Curvature curvature(options.memory);
  std::deque<double> values = {value};

  for (int64_t iteration = 0; iteration < options.iterations; ++iteration) {
    if (options.checkpoint) options.checkpoint();
    if (options.stop && options.stop()) break;
    pseudo_gradient(point, gradient, l1, slope);
    if (slope.squaredNorm() == 0) break;
    direction = -slope;
    curvature.multiply_inverse_hessian(direction);
    for (int64_t i = 0; i < size; ++i) {
      if (l1[i] > 0 && direction[i] * slope[i] >= 0) direction[i] = 0;
    }
    double length = curvature.empty() ? 1 / slope.norm() : 1;
    bool moved = false;
    for (int halving = 0; halving < kHalvings && !moved; ++halving, length /= 2) {
      for (int64_t i = 0; i < size; ++i) {
        const double orthant = point[i] != 0 ? point[i] : -slope[i];
        const double target = point[i] + length * direction[i];
        // Without an l1 norm, zero is not special.
        next[i] = l1[i] > 0 && target * orthant <= 0 ? 0 : target;
      }
      const double next_value = function(next, next_gradient) + norm(next);
      moved = next_value <= value + kSufficient * slope.dot(next - point);
      if (moved) value = next_value;
    }
    if (!moved) {
      if (curvature.empty()) break;  // no decrease even along the gradient: this is rounding
      curvature.forget();
      continue;
    }
    curvature.add(next - point, next_gradient - gradient);
    point.swap(next);
    gradient.swap(next_gradient);
    values.push_back(value);
    if (values.size() > kWindow) {
      const double decrease = values.front() - value;
      if (decrease <= options.tolerance * std::max(std::abs(value), 1e-12)) break;
      values.pop_front();
    }
  }
  return value;
}

}  // namespace nsimplex::causal
