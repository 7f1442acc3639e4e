// Declares points of hyperbolic space in polar coordinates.

#pragma once

#include <cstdint>
#include <vector>

#include "causal/matrix.h"
#include "kernels/cpu/hyperbolic/hyperbolic_pairs.h"

namespace nsimplex::causal {

/// Points of hyperbolic space in polar coordinates around the origin o: z = r u, where r is the
/// distance to o and u a unit vector. z is the point's tangent vector at o. Everything else is
/// derived: the hyperboloid point is (cosh r, sinh r u), the point of the Poincare ball tanh(r / 2)
/// u. Distances are never computed from these, which have lost them at radius 20 (1 - tanh(r / 2)
/// is 4e-9 there, and cosh r^2 - sinh r^2 is rounding noise), but from
///
///     sinh(d / 2)^2 = sinh((r - s) / 2)^2 + sinh r sinh s |u - v|^2 / 4.
class Points {
 public:
  /// Rows of tangent vectors. The origin gets the first axis as its direction, which changes no
  /// distance and no gradient.
  explicit Points(const Matrix& tangents);

  /// Some of the points of `all`.
  Points(const Points& all, const std::vector<int64_t>& chosen);

  int64_t count() const { return count_; }
  int64_t padded() const { return radius_.size(); }  ///< padded length of kernel rows
  int64_t dimension() const { return axes_.cols(); }

  double radius(int64_t point) const { return radius_[point]; }
  double sinh_radius(int64_t point) const { return sinh_[point]; }
  double cosh_radius(int64_t point) const { return cosh_[point]; }
  auto direction(int64_t point) const { return rows_.row(point).transpose(); }

  kernels::HyperbolicPoint one(int64_t point) const;
  kernels::HyperbolicPoints all() const;

  /// sinh(d / 2)^2 of two points, and d.
  double square(int64_t from, int64_t to) const;
  double distance(int64_t from, int64_t to) const;

 private:
  void derive();

  int64_t count_;
  Matrix rows_;  // [count, dimension], u
  // Padded with zeros. axes_ [padded, dimension] holds u again, one column per axis.
  Eigen::ArrayXd radius_, sinh_, cosh_, grown_, shrunk_;
  Eigen::ArrayXXd axes_;
};

/// The largest radius of computations; cosh overflows at 710.
inline constexpr double kLargestRadius = 300;

/// The largest norm of points of the Poincare ball, for the precision of their type. With it, a
/// norm that is computed from their rounded coordinates is below 1.
inline constexpr double largest_ball_norm(double epsilon) { return 1 - 4 * epsilon; }

/// d(z, w) of two tangent vectors.
double distance(const Vector& z, const Vector& w);

/// Points are given by their tangents z = r u at the origin. A vector at z is given by the vector
/// at the origin that the geodesic from there transports to it: its part along u is along the
/// geodesic, and its length is the hyperbolic one. All of this works at radii where coordinates on
/// the hyperboloid do not.

/// exp_z(move), Eq. A.16: the point at distance |move| from z in the direction of `move`. Series
/// near 0.
Vector exponential(const Vector& z, const Vector& move);

/// Transports a vector at z to `to` along the geodesic between them: a rotation in the plane of
/// both by the area of their triangle with the origin.
Vector transport(const Vector& z, const Vector& to, const Vector& vector);

/// The Riemannian gradient at z from the gradient with respect to z; Eq. 19 and 20 in these
/// coordinates.
Vector riemannian(const Vector& z, const Vector& gradient);

}  // namespace nsimplex::causal
