// Declares tests of how rotary attention scores fall with the distance of hyperbolic points.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "analysis/statement.h"
#include "causal/matrix.h"
#include "support/random.h"

namespace nsimplex::causal {

/// The attention score of a query and a key that are rotated by angles c e_m and c e_n, as a
/// function of the gap g = e_m - e_n of their points in the ball (Xu et al., arXiv 2509.16629, Eq.
/// 24 to 26, A.56):
///
///     A(g) = sum_t alpha_t cos(c g_t) + beta_t sin(c g_t)
///
/// Channels 2t and 2t + 1 form a plane, with alpha = q k + q' k' and beta = q k' - q' k of its two.
/// (A.56 has -beta: its last line uses the sine of the reversed gap.)
class RotaryScore {
 public:
  /// query, key [2 planes]; `scale`: c.
  RotaryScore(const Vector& query, const Vector& key, double scale);

  int64_t planes() const { return alpha_.size(); }

  double operator()(const Vector& gap) const;

  /// A+ of Eq. A.59, which bounds |A| if c |g_t| <= pi / 2:
  /// max |alpha| d cos(c |g| / d) + sum |beta|.
  double bound(double gap) const;

  /// |query| |key|.
  double norms() const { return norms_; }
  double scale() const { return scale_; }

 private:
  Eigen::ArrayXd alpha_, beta_;
  double largest_, rest_, norms_, scale_;
};

/// The factor of the angles of one coordinate: `scale`, or `scale` sqrt(planes).
double angle_scale(double scale, bool by_dimension, int64_t planes);

/// Two points of the unit ball, e_m and e_n, and their hyperbolic distance.
struct BallPair {
  Vector first, second;
  double distance;

  Vector gap() const { return first - second; }
};

/// tanh(|z| / 2) in the direction of z, Eq. A.22, and back.
Vector to_ball(const Vector& tangent);
Vector to_tangent(const Vector& ball);

/// |e_m - e_n| of two points with given norms and distance, Eq. A.70.
double gap_of(double first, double second, double distance);

/// A vector with independent standard normal entries, divided by its length.
Vector normal_vector(int64_t size, RandomStream& random);
Vector random_direction(int64_t dimension, RandomStream& random);

/// Points with given norms below 1, whose directions are `angle` apart and otherwise random.
BallPair pair_at_angle(double first, double second, double angle, int64_t dimension,
                       RandomStream& random);

/// Norms uniform in [0, 1), angle uniform in [0, pi): all kinds of near and far pairs.
BallPair random_pair(int64_t dimension, RandomStream& random);

/// The first point has the norm `first`; the second is at `distance` from it in a random direction.
BallPair pair_at_distance(double first, double distance, int64_t dimension, RandomStream& random);

/// Tests the statements on causal angles and attention scores in sections 4.1 and 4.2 of Xu et al.,
/// arXiv 2509.16629. Plain C++, one thread.

struct AttenuationOptions {
  int64_t planes = 64;  ///< d: coordinates of a point, and pairs of channels of a query
  double scale = 0.78539816339744831;  ///< c
  bool by_dimension = false;           ///< c sqrt(d)
  int64_t draws = 2000;                ///< per statement
  double least_distance = 1, largest_distance = 5;
  uint64_t seed = 1;
  std::function<void(int64_t done)> checkpoint = {};  ///< after each draw, of all statements
};

/// One point of a surface over norms and distances (Fig. S2) or of a path at one distance.
struct AttenuationPoint {
  double first, second;  ///< |e_m|, |e_n|
  double distance;       ///< d_p
  double gap;            ///< |e_m - e_n|
  double bound;          ///< A+, relative to its value without a gap
  double equal_score;    ///< A of equal query and key, relative to its value without a gap
};

/// Pairs with |e_m| = |e_n| = norm for all norms and distances, except those that no two points
/// have: distance > 4 artanh(norm). Query, key and the direction of the gap come from the seed.
std::vector<AttenuationPoint> attenuation_surface(const AttenuationOptions& options,
                                                  std::span<const double> norms,
                                                  std::span<const double> distances);

/// Pairs at one distance on a line through the origin: m moves from n's antipode to the origin.
std::vector<AttenuationPoint> attenuation_path(const AttenuationOptions& options, double distance,
                                               int64_t points);

/// Propositions 4.1 and 4.2 and corollaries A.1, A.2 and A.3: as printed, and with the conditions
/// under which they are true. Slacks are relative to the score or bound without a gap.
/// Complexity: O(draws planes).
std::vector<analysis::Statement> attenuation_claims(const AttenuationOptions& options);

/// The number of draws that attenuation_claims() reports.
int64_t attenuation_draws(const AttenuationOptions& options);

}  // namespace nsimplex::causal
