#include "lab/claims/attenuation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>

#include "causal/embedding/points.h"

namespace nsimplex::causal {
namespace {

TEST(BallPairs, StayInsideTheBall) {
  RandomStream random(4);
  for (const double radius : {20.0, 36.0, 38.0, 100.0, 700.0}) {
    for (const int64_t dimension : {1, 3, 50}) {
      const Vector ball = to_ball(radius * random_direction(dimension, random));
      EXPECT_LT(ball.norm(), 1);
      EXPECT_NEAR(to_tangent(ball).norm(), std::min(radius, 35.35), 0.3);  // the last bits
    }
  }
}

TEST(RotaryScore, IsTheProductOfTurnedVectors) {
  RandomStream random(3);
  const Vector query = normal_vector(6, random), key = normal_vector(6, random);
  const Vector first = normal_vector(3, random), second = normal_vector(3, random);
  const double c = 0.7;
  const auto turned = [&](const Vector& x, const Vector& e) {
    Vector y(6);
    for (int64_t t = 0; t < 3; ++t) {
      const double sin = std::sin(c * e[t]), cos = std::cos(c * e[t]);
      y[2 * t] = cos * x[2 * t] - sin * x[2 * t + 1];
      y[2 * t + 1] = sin * x[2 * t] + cos * x[2 * t + 1];
    }
    return y;
  };
  const RotaryScore score(query, key, c);
  EXPECT_NEAR(score(first - second), turned(query, first).dot(turned(key, second)), 1e-12);
  EXPECT_NEAR(score(Vector::Zero(3)), query.dot(key), 1e-12);
}

TEST(BallPairs, HaveTheDistanceAskedFor) {
  RandomStream random(5);
  for (int64_t draw = 0; draw < 20; ++draw) {
    const double norm = random.unit(), wanted = 1 + 4 * random.unit();
    const BallPair pair = pair_at_distance(norm, wanted, 4, random);
    EXPECT_NEAR(pair.first.norm(), norm, 1e-12);
    EXPECT_NEAR(distance(to_tangent(pair.first), to_tangent(pair.second)), wanted, 1e-6);
    EXPECT_NEAR(pair.gap().norm(), gap_of(pair.first.norm(), pair.second.norm(), wanted), 1e-6);
    const BallPair turned = pair_at_angle(0.5, 0.25, 0.3, 4, random);
    EXPECT_NEAR(turned.first.dot(turned.second), 0.125 * std::cos(0.3), 1e-12);
  }
}

TEST(Attenuation, SurfaceLeavesOutWhatDoesNotExist) {
  const AttenuationOptions options{.planes = 3};
  const std::array norms{0.5, 0.9};
  const std::array distances{1.0, 5.0};
  const auto points = attenuation_surface(options, norms, distances);
  ASSERT_EQ(points.size(), 3U);  // norm .5 ends at 4 artanh(.5) = 2.2
  EXPECT_DOUBLE_EQ(points[0].gap, std::sinh(0.5) * 0.75);
  for (const AttenuationPoint& point : points) EXPECT_LT(point.bound, 1);
  EXPECT_GT(points[1].bound, points[2].bound);
}

TEST(Attenuation, RisesAtOneDistanceTowardsTheOrigin) {
  const auto path = attenuation_path({.planes = 3}, 3, 5);
  ASSERT_EQ(path.size(), 5U);
  EXPECT_NEAR(path.front().gap, 2 * std::tanh(0.75), 1e-12);
  EXPECT_NEAR(path.back().gap, std::tanh(1.5), 1e-12);
  EXPECT_DOUBLE_EQ(path.back().first, 0);
  for (size_t k = 1; k < path.size(); ++k) {
    EXPECT_GT(path[k].bound, path[k - 1].bound);
    EXPECT_GT(path[k].equal_score, path[k - 1].equal_score);
  }
}

TEST(Attenuation, HoldsWhereItsConditionsAreHeldAndNotAsPrinted) {
  int64_t last = 0;
  const AttenuationOptions options{
      .planes = 8, .draws = 300, .seed = 2, .checkpoint = [&](int64_t done) { last = done; }};
  std::map<std::string, double> shares;
  for (const analysis::Statement& claim : attenuation_claims(options)) {
    ASSERT_EQ(claim.draws(), 300);
    shares[claim.source() + ": " + claim.name()] = claim.share();
  }
  EXPECT_EQ(last, attenuation_draws(options));
  const std::string weaker = "at one distance the more general m has the smaller A+";
  for (const std::string& name :
       {std::string("Eq. A.59: |A| <= A+"),
        std::string("Prop. 4.1, both norms held: the farther pair has the smaller A+"),
        std::string("Cor. A.1, antipodes on one line: k = q: the farther pair scores less"),
        "Prop. 4.2, |e_n| held: " + weaker, "Prop. 4.2, |e_m| = |e_n|: " + weaker,
        std::string("Cor. A.2: with m at the origin, A+ is a"),
        std::string("Cor. A.2: a falls with the distance")}) {
    EXPECT_EQ(shares.at(name), 1) << name;
  }
  for (const std::string& name :
       {std::string("Prop. 4.1: the farther pair has the smaller A+"),
        std::string("Cor. A.1: k = q: the farther pair scores less"), "Prop. 4.2: " + weaker,
        std::string("Cor. A.2: everywhere else A+ is larger"),
        std::string("Cor. A.3: k = q: at one distance the more general m scores less")}) {
    EXPECT_LT(shares.at(name), 1) << name;
    EXPECT_GT(shares.at(name), 0) << name;
  }
  EXPECT_EQ(shares.at("Prop. 4.2, from antipode to origin: " + weaker), 0);
}

TEST(Attenuation, LargeAnglesLeaveTheRangeOfTheProof) {
  // Beyond pi / 2 the cosine is not concave.
  const auto claims = attenuation_claims(
      {.planes = 2, .scale = std::numbers::pi, .by_dimension = true, .draws = 200});
  EXPECT_LT(claims.front().share(), 1);
}

}  // namespace
}  // namespace nsimplex::causal
