#include "causal/embedding/optimiser.h"

#include <algorithm>
#include <cmath>

#include "causal/embedding/geodesic.h"
#include "causal/embedding/points.h"

namespace nsimplex::causal {
namespace {

constexpr double kLongestMove = 1;
// The second moment forgets as fast as the first: gradients of a node change by orders of magnitude
// while its cluster finds its place (0.999 leaves ten times as many nodes in wrong places).
constexpr double kFirst = 0.9, kSecond = 0.9, kEpsilon = 1e-12;

void cap(Matrix& points, int64_t point) {
  const double radius = points.row(point).norm();
  if (radius > kLargestRadius) points.row(point) *= kLargestRadius / radius;
}

Vector shortened(const Vector& move) {
  const double length = move.norm();
  return length > kLongestMove ? Vector(move * (kLongestMove / length)) : move;
}

class RiemannianDescent : public PointOptimiser {
 public:
  void step(Matrix& points, const Matrix& gradient, double learning_rate) override {
    for (int64_t point = 0; point < points.rows(); ++point) {
      const Vector z = points.row(point);
      const Vector slope = riemannian(z, gradient.row(point).transpose());
      points.row(point) = exponential(z, shortened(-learning_rate * slope));
      cap(points, point);
    }
  }
};

class RiemannianAdam : public PointOptimiser {
 public:
  RiemannianAdam(int64_t nodes, int64_t dimension)
      : first_(Matrix::Zero(nodes, dimension)), second_(Eigen::ArrayXd::Zero(nodes)) {}

  void step(Matrix& points, const Matrix& gradient, double learning_rate) override {
    ++steps_;
    const double first_part = 1 - std::pow(kFirst, steps_);
    const double second_part = 1 - std::pow(kSecond, steps_);
    for (int64_t point = 0; point < points.rows(); ++point) {
      const Vector z = points.row(point);
      const Vector slope = riemannian(z, gradient.row(point).transpose());
      const Vector first = kFirst * first_.row(point).transpose() + (1 - kFirst) * slope;
      double& second = second_[point];
      second = kSecond * second + (1 - kSecond) * slope.squaredNorm();
      const double size = std::sqrt(second / second_part) + kEpsilon;
      const Vector to = exponential(z, shortened(-learning_rate / (first_part * size) * first));
      points.row(point) = to;
      cap(points, point);
      first_.row(point) = transport(z, points.row(point).transpose(), first);
    }
  }

 private:
  Matrix first_;
  Eigen::ArrayXd second_;
  double steps_ = 0;
};

class TangentAdam : public PointOptimiser {
 public:
  TangentAdam(int64_t nodes, int64_t dimension)
      : first_(Eigen::ArrayXXd::Zero(nodes, dimension)), second_(first_) {}

  void step(Matrix& points, const Matrix& gradient, double learning_rate) override {
    ++steps_;
    first_ = kFirst * first_ + (1 - kFirst) * gradient.array();
    second_ = kSecond * second_ + (1 - kSecond) * gradient.array().square();
    const double first_part = 1 - std::pow(kFirst, steps_);
    const double second_part = 1 - std::pow(kSecond, steps_);
    points.array() -=
        learning_rate / first_part * first_ / ((second_ / second_part).sqrt() + kEpsilon);
    for (int64_t point = 0; point < points.rows(); ++point) cap(points, point);
  }

 private:
  Eigen::ArrayXXd first_, second_;
  double steps_ = 0;
};

}  // namespace

std::unique_ptr<PointOptimiser> make_optimiser(EmbeddingOptimiser kind, int64_t nodes,
                                               int64_t dimension) {
  switch (kind) {
    case EmbeddingOptimiser::rsgd:
      return std::make_unique<RiemannianDescent>();
    case EmbeddingOptimiser::radam:
      return std::make_unique<RiemannianAdam>(nodes, dimension);
    case EmbeddingOptimiser::tangent:
      break;
  }
  return std::make_unique<TangentAdam>(nodes, dimension);
}

double default_learning_rate(EmbeddingOptimiser kind) {
  switch (kind) {
    case EmbeddingOptimiser::rsgd:
      return 0.1;
    case EmbeddingOptimiser::radam:
      return 0.3;
    case EmbeddingOptimiser::tangent:
      break;
  }
  return 1;
}

}  // namespace nsimplex::causal
