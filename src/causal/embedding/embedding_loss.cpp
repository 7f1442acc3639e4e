// Computes the loss of a hyperbolic embedding and its gradient, and runs the optimisers.

#include "causal/embedding/embedding_loss.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "causal/embedding/points.h"
#include "kernels/common/rounding.h"

namespace nsimplex::causal {
namespace {

constexpr int64_t kRows = 32;  // nodes of a task

// The gradient of a node with respect to z = r u, from df/dr and df/du = -sinh r / 2 turn: along u,
// and across it divided by r.
Vector by_tangent(const Points& points, int64_t node, double radial, const Vector& turn) {
  const auto u = points.direction(node);
  const double r = points.radius(node);
  const double stretch = r == 0 ? 1.0 : points.sinh_radius(node) / r;
  return radial * u - 0.5 * stretch * (turn - u.dot(turn) * u);
}

// e^-d of a pair.
double nearness(const Points& points, int64_t from, int64_t to) {
  const double q = points.square(from, to), grown = std::sqrt(q) + std::sqrt(1 + q);
  return 1 / (grown * grown);
}

// f(r) and its slope. log cosh r in a form that does not overflow.
double pull(PullShape shape, double r) {
  if (shape == PullShape::distance) return r;
  return r + std::log1p(std::exp(-2 * r)) - std::numbers::ln2;
}

double pull_slope(PullShape shape, double r) {
  return shape == PullShape::distance ? 1 : std::tanh(r);
}

}  // namespace

struct ContrastiveLoss::Sums {
  const std::vector<int64_t>& negatives;
  std::vector<int64_t> place;  // of a node among the negatives, or -1
  Eigen::ArrayXd negative;     // S_m
  Eigen::ArrayXd repulsion;    // minus dL/dd over e^-d of a negative of m
  Eigen::ArrayXd nearness;     // e^-d of every attracting pair
  Eigen::ArrayXd loss;         // of each node
};

void ContrastiveLoss::attract(const Points& points, int64_t node, const Points& negatives,
                              Sums& sums) const {
  Eigen::ArrayXd near(negatives.padded());
  kernels::hyperbolic_nearness(points.one(node), negatives.all(), near.data());
  int64_t left = negatives.count();
  const auto drop = [&](int64_t other) {
    if (sums.place[other] < 0) return;
    near[sums.place[other]] = 0;
    --left;
  };
  drop(node);
  for (const Attraction::Pair& pair : attraction_.of(node)) {
    if (pair.attracts) drop(pair.other);
  }
  const auto all = static_cast<double>(attraction_.negatives(node));
  const double scale = left == 0 ? 0.0 : all / static_cast<double>(left);
  const double negative = scale * near.head(negatives.count()).sum();
  double repulsion = 0, loss = generality_[node] * pull(shape_, points.radius(node));
  for (int64_t at = attraction_.first(node); at < attraction_.last(node); ++at) {
    const Attraction::Pair& pair = attraction_[at];
    const double positive = nearness(points, node, pair.other);
    sums.nearness[at] = positive;
    repulsion += pair.weight / (positive + negative);
    loss += pair.weight * std::log1p(negative / positive);
  }
  sums.negative[node] = negative;
  sums.repulsion[node] = scale * repulsion;
  sums.loss[node] = loss;
}

void ContrastiveLoss::differentiate(const Points& points, int64_t node, const Points& negatives,
                                    const Sums& sums, Matrix& gradient) const {
  // A node outside C repels C. A node of C repels all nodes and is repelled by all. Its own pairs
  // follow.
  const bool chosen = sums.place[node] >= 0;
  const Points& others = chosen ? points : negatives;
  Eigen::ArrayXd weights = Eigen::ArrayXd::Zero(others.padded());
  if (chosen) {
    weights.head(others.count()) = sums.repulsion;
    for (const int64_t other : sums.negatives) weights[other] += sums.repulsion[node];
  } else {
    weights.head(others.count()) = sums.repulsion[node];
  }
  const auto drop = [&](int64_t other) {
    const int64_t place = chosen ? other : sums.place[other];
    if (place >= 0) weights[place] = 0;
  };
  drop(node);
  for (const Attraction::Pair& pair : attraction_.of(node)) drop(pair.other);
  double radial = 0;
  Vector turn(points.dimension());
  kernels::hyperbolic_pull(points.one(node), others.all(), weights.data(), &radial, turn.data());

  for (int64_t at = attraction_.first(node); at < attraction_.last(node); ++at) {
    const Attraction::Pair& pair = attraction_[at];
    const int64_t other = pair.other;
    const double q = points.square(node, other);
    if (q <= kernels::kHyperbolicLeastSquare) continue;  // the distance has no slope there
    const double near = sums.nearness[at];
    const auto attracted = [&](double weight, int64_t of) {
      return weight * sums.negative[of] / (near + sums.negative[of]);
    };
    double by_distance = attracted(pair.weight, node) + attracted(pair.back_weight, other);
    if (!pair.attracts && sums.place[other] >= 0) by_distance -= near * sums.repulsion[node];
    if (!pair.back && chosen) by_distance -= near * sums.repulsion[other];
    const double by_square = by_distance / std::sqrt(q * (1 + q));
    const Vector across = points.direction(other) - points.direction(node);
    const double sinh = points.sinh_radius(other);
    radial += by_square * (0.5 * std::sinh(points.radius(node) - points.radius(other)) +
                           0.25 * points.cosh_radius(node) * sinh * across.squaredNorm());
    turn += by_square * sinh * across;
  }
  radial += generality_[node] * pull_slope(shape_, points.radius(node));
  gradient.row(node) = by_tangent(points, node, radial, turn);
}

LossGradient ContrastiveLoss::operator()(const Points& points,
                                         const std::vector<int64_t>& negatives,
                                         const TaskLoop& loop) const {
  const int64_t nodes = points.count();
  const Points columns(points, negatives);
  Sums sums{negatives,
            std::vector<int64_t>(static_cast<size_t>(nodes), -1),
            Eigen::ArrayXd(nodes),
            Eigen::ArrayXd(nodes),
            Eigen::ArrayXd(attraction_.pairs()),
            Eigen::ArrayXd(nodes)};
  for (int64_t at = 0; at < std::ssize(negatives); ++at) sums.place[negatives[at]] = at;

  LossGradient answer{0, Matrix(nodes, points.dimension())};
  const auto for_nodes = [&](const auto& body) {
    loop(ceil_div(nodes, kRows), [&](int64_t task) {
      for (int64_t node = task * kRows; node < std::min(nodes, (task + 1) * kRows); ++node) {
        body(node);
      }
    });
  };
  for_nodes([&](int64_t node) { attract(points, node, columns, sums); });
  for_nodes([&](int64_t node) { differentiate(points, node, columns, sums, answer.gradient); });
  answer.loss = sums.loss.sum();
  return answer;
}

namespace {

constexpr double kLongestMove = 1;
// The second moment decays as fast as the first, because gradients of a node change by orders of
// magnitude while its cluster finds its place (0.999 leaves ten times as many nodes in wrong
// places).
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
