#include "causal/claims/ball_pairs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "causal/embedding/geodesic.h"
#include "causal/embedding/points.h"

namespace nsimplex::causal {

Vector to_ball(const Vector& tangent) {
  const double radius = tangent.norm();
  constexpr double kMost = largest_ball_norm(std::numeric_limits<double>::epsilon());
  const double norm = std::min(std::tanh(0.5 * radius), kMost);
  return radius == 0 ? tangent : Vector(norm / radius * tangent);
}

Vector to_tangent(const Vector& ball) {
  const double norm = ball.norm();
  return norm == 0 ? ball : Vector(2 * std::atanh(norm) / norm * ball);
}

double gap_of(double first, double second, double distance) {
  return std::sinh(0.5 * distance) * std::sqrt((1 - first * first) * (1 - second * second));
}

Vector normal_vector(int64_t size, RandomStream& random) {
  return Vector::NullaryExpr(size, [&] { return random.normal(); });
}

Vector random_direction(int64_t dimension, RandomStream& random) {
  return normal_vector(dimension, random).normalized();
}

BallPair pair_at_angle(double first, double second, double angle, int64_t dimension,
                       RandomStream& random) {
  const Vector along = random_direction(dimension, random);
  Vector across = random_direction(dimension, random);
  across = (across - along.dot(across) * along).normalized();
  BallPair pair{first * along, second * (std::cos(angle) * along + std::sin(angle) * across), 0};
  pair.distance = distance(to_tangent(pair.first), to_tangent(pair.second));
  return pair;
}

BallPair random_pair(int64_t dimension, RandomStream& random) {
  const double first = random.unit(), second = random.unit();
  return pair_at_angle(first, second, std::numbers::pi * random.unit(), dimension, random);
}

BallPair pair_at_distance(double first, double distance, int64_t dimension, RandomStream& random) {
  const Vector start = to_tangent(first * random_direction(dimension, random));
  const Vector end = exponential(start, distance * random_direction(dimension, random));
  return {to_ball(start), to_ball(end), distance};
}

}  // namespace nsimplex::causal
