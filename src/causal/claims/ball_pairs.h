#pragma once

#include "causal/matrix.h"
#include "support/random.h"

namespace nsimplex::causal {

/// Two points of the unit ball, e_m and e_n, and their hyperbolic distance.
struct BallPair {
  Vector first, second;
  double distance;

  Vector gap() const { return first - second; }
};

/// tanh(|z| / 2) in the direction of z, Eq. A.22, and back.
Vector to_ball(const Vector& tangent);
Vector to_tangent(const Vector& ball);

/// |e_m - e_n| of two points of given norms and distance, Eq. A.70.
double gap_of(double first, double second, double distance);

/// With independent standard normal entries, and divided by its length.
Vector normal_vector(int64_t size, RandomStream& random);
Vector random_direction(int64_t dimension, RandomStream& random);

/// Points of given norms below 1 whose directions are `angle` apart, otherwise random.
BallPair pair_at_angle(double first, double second, double angle, int64_t dimension,
                       RandomStream& random);

/// Norms uniform in [0, 1), angle uniform in [0, pi): near and far pairs of every kind.
BallPair random_pair(int64_t dimension, RandomStream& random);

/// The first point of norm `first`, the second at `distance` from it in a random direction.
BallPair pair_at_distance(double first, double distance, int64_t dimension, RandomStream& random);

}  // namespace nsimplex::causal
