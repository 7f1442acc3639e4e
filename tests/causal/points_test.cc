// Hyperbolic geometry by tangents at the origin, against the hyperboloid where that has digits.

#include "causal/embedding/points.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/random.h"

namespace nsimplex::causal {
namespace {

Vector draw(RandomStream& draws, int64_t size, double length) {
  Vector vector(size);
  for (double& each : vector) each = 2 * draws.unit() - 1;
  return vector * (length / vector.norm());
}

double lorentz(const Vector& p, const Vector& q) { return p.dot(q) - 2 * p[0] * q[0]; }

// (cosh r, sinh r u).
Vector hyperboloid(const Vector& z) {
  Vector p(z.size() + 1);
  const double r = z.norm();
  p << std::cosh(r), (r == 0 ? 1 : std::sinh(r) / r) * z;
  return p;
}

// The vector at p that the geodesic from the origin carries `vector` to.
Vector carried(const Vector& z, const Vector& vector) {
  const double r = z.norm();
  const Vector u = z / r;
  const double along = u.dot(vector);
  Vector result(z.size() + 1);
  result << std::sinh(r) * along, vector + (std::cosh(r) - 1) * along * u;
  return result;
}

TEST(Points, DistanceIsThatOfTheHyperboloid) {
  RandomStream draws(1);
  for (const double r : {0.0, 1e-3, 0.7, 3.0}) {
    for (const double s : {1e-5, 0.5, 2.5}) {
      const Vector z = draw(draws, 4, r), w = draw(draws, 4, s);
      const double expected = std::acosh(-lorentz(hyperboloid(z), hyperboloid(w)));
      // arcosh near 1 is what limits the comparison.
      EXPECT_NEAR(distance(z, w), expected, 1e-12 / std::max(expected, 1e-5));
    }
  }
}

TEST(Points, DistanceKeepsItsDigitsFarOut) {
  Vector z = Vector::Zero(3), w = Vector::Zero(3);
  z[0] = 30;
  w[0] = 30.25;
  EXPECT_NEAR(distance(z, w), 0.25, 1e-13);
  w[0] = -20;
  EXPECT_NEAR(distance(z, w), 50, 1e-12);
  // Two leaves at radius 25 whose directions differ by 1e-8: d = 2 asinh(sinh r sin(angle / 2)).
  z << 25, 0, 0;
  w << 25 * std::cos(1e-8), 25 * std::sin(1e-8), 0;
  EXPECT_NEAR(distance(z, w), 2 * std::asinh(std::sinh(25.0) * std::sin(5e-9)), 1e-9);
  EXPECT_EQ(distance(z, z), 0);
}

TEST(Points, KernelsAgreeWithPairs) {
  RandomStream draws(2);
  for (const int64_t count : {1, 7, 8, 19}) {
    Matrix rows(count, 3);
    for (int64_t i = 0; i < count; ++i) rows.row(i) = draw(draws, 3, 6 * draws.unit());
    if (count > 2) rows.row(2).setZero();
    const Points points(rows);
    Eigen::ArrayXd squares(points.padded()), near(points.padded());
    for (int64_t from = 0; from < count; ++from) {
      kernels::hyperbolic_squares(points.one(from), points.all(), squares.data());
      kernels::hyperbolic_nearness(points.one(from), points.all(), near.data());
      for (int64_t to = 0; to < count; ++to) {
        EXPECT_NEAR(squares[to], points.square(from, to), 1e-13 * (1 + squares[to]));
        EXPECT_NEAR(std::log(near[to]), -points.distance(from, to), 1e-12);
      }
    }
  }
}

// Eq. A.16 and A.9: exp_p(v) = cosh |v| p + sinh |v| v / |v|, at distance |v| from p.
TEST(Geodesic, ExponentialIsThatOfTheHyperboloid) {
  RandomStream draws(3);
  for (const double length : {0.0, 1e-9, 1e-3, 0.4, 1.0}) {
    const Vector z = draw(draws, 3, 2.2), move = draw(draws, 3, 1) * length;
    const Vector v = carried(z, move), reached = exponential(z, move);
    const double stretch = length == 0 ? 1 : std::sinh(length) / length;
    const Vector expected = std::cosh(length) * hyperboloid(z) + stretch * v;
    EXPECT_LT((hyperboloid(reached) - expected).norm(), 1e-13);
    EXPECT_NEAR(distance(z, reached), length, 1e-12);
    EXPECT_NEAR(lorentz(v, v), length * length, 1e-12);
    EXPECT_NEAR(lorentz(v, hyperboloid(z)), 0, 1e-12);  // tangent, A.8
  }
  EXPECT_LT(
      (exponential(Vector::Zero(3), Vector::Unit(3, 1) * 0.5) - Vector::Unit(3, 1) * 0.5).norm(),
      1e-15);
}

TEST(Geodesic, ExponentialKeepsItsDistanceFarOut) {
  RandomStream draws(4);
  for (const double radius : {10.0, 20.0, 28.0}) {
    const Vector z = draw(draws, 4, radius), move = draw(draws, 4, 0.5);
    // A direction has 1e-16, which is e^radius 1e-16 across.
    EXPECT_NEAR(distance(z, exponential(z, move)), 0.5, 1e-15 * std::exp(radius) + 1e-12);
  }
}

// Eq. 19 and 20 with A.17: g^-1 times the gradient by p, less what is not tangent.
TEST(Geodesic, RiemannianGradientIsTheProjectedOne) {
  RandomStream draws(5);
  const Vector z = draw(draws, 3, 1.7), goal = draw(draws, 4, 1.0);
  const auto value = [&](const Vector& at) { return goal.dot(hyperboloid(at)); };  // linear in p
  Vector by_z(3);
  for (int64_t i = 0; i < 3; ++i) {
    const Vector step = 1e-6 * Vector::Unit(3, i);
    by_z[i] = (value(z + step) - value(z - step)) / 2e-6;
  }
  const Vector p = hyperboloid(z);
  Vector ambient = goal;
  ambient[0] = -ambient[0];
  const Vector expected = ambient + lorentz(p, ambient) * p;
  EXPECT_LT((carried(z, riemannian(z, by_z)) - expected).norm(), 1e-8);
}

TEST(Geodesic, TransportCarriesVelocityAndLengths) {
  RandomStream draws(6);
  for (const double radius : {0.3, 2.0, 15.0}) {
    const Vector z = draw(draws, 3, radius), move = draw(draws, 3, 0.8);
    const Vector to = exponential(z, move), other = draw(draws, 3, 1.3);
    // A geodesic carries its own velocity: going on from `to` is going twice as far from z.
    const Vector on = transport(z, to, move);
    EXPECT_LT(distance(exponential(to, on), exponential(z, 2 * move)),
              1e-15 * std::exp(radius) + 1e-7);
    const Vector moved = transport(z, to, other);
    EXPECT_NEAR(moved.norm(), other.norm(), 1e-12);
    EXPECT_NEAR(moved.dot(on), other.dot(move), 1e-12 + 1e-15 * std::exp(radius));
    EXPECT_LT((transport(to, z, moved) - other).norm(), 1e-12);
  }
}

}  // namespace
}  // namespace nsimplex::causal
