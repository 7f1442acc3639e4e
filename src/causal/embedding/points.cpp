// Computes distances and moves of points of hyperbolic space in polar coordinates.

#include "causal/embedding/points.h"

#include <cmath>

#include "kernels/common/rounding.h"

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
  const int64_t padded = round_up(count_, kLanes);
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

namespace {

struct Polar {
  explicit Polar(const Vector& z) : radius(z.norm()), direction(z) {
    if (radius > 0) {
      direction /= radius;
    } else {
      direction = Vector::Unit(z.size(), 0);
    }
  }
  double radius;
  Vector direction;
};

double sinh_over(double x) { return std::abs(x) < 1e-4 ? 1 + x * x / 6 : std::sinh(x) / x; }

}  // namespace

Vector exponential(const Vector& z, const Vector& move) {
  const Polar from(z);
  const double length = move.norm(), stretch = sinh_over(length);
  const double along = from.direction.dot(move);
  const Vector across = move - along * from.direction;
  // cosh(length) p + stretch move, over cosh r: far out, sinh and cosh of r differ only by
  // rounding.
  const double cosh = std::cosh(from.radius);
  const Vector reached =
      (std::cosh(length) * std::tanh(from.radius) + stretch * along) * from.direction +
      stretch / cosh * across;
  const double sinh = reached.norm();
  return sinh == 0 ? Vector::Zero(z.size()) : Vector(std::asinh(cosh * sinh) / sinh * reached);
}

Vector transport(const Vector& z, const Vector& to, const Vector& vector) {
  const Polar from(z), there(to);
  Vector across = there.direction - from.direction;  // accurate for small angles
  across -= from.direction.dot(across) * from.direction;
  const double sin = across.norm();
  if (sin == 0) return vector;
  // tan(area / 2) = T sin / (1 - T cos) with T = tanh(r / 2) tanh(s / 2).
  const double r = 0.5 * from.radius, s = 0.5 * there.radius;
  const double product = std::tanh(r) * std::tanh(s);
  const double rest = std::cosh(r - s) / (std::cosh(r) * std::cosh(s));       // 1 - T
  const double gap = 0.5 * (there.direction - from.direction).squaredNorm();  // 1 - cos
  const double area = 2 * std::atan2(product * sin, rest + product * gap);
  const Vector side = across / sin;
  const double x = from.direction.dot(vector), y = side.dot(vector);
  // Towards the origin's side: against the direction from u to v.
  const double turned_x = std::cos(area) * x + std::sin(area) * y;
  const double turned_y = std::cos(area) * y - std::sin(area) * x;
  return vector + (turned_x - x) * from.direction + (turned_y - y) * side;
}

Vector riemannian(const Vector& z, const Vector& gradient) {
  const Polar point(z);
  const double along = point.direction.dot(gradient);
  return along * point.direction + (gradient - along * point.direction) / sinh_over(point.radius);
}

}  // namespace nsimplex::causal
