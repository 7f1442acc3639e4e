#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "causal/claims/claim.h"

/// What causal angles do to attention scores: sections 4.1 and 4.2 of Xu et al., arXiv 2509.16629,
/// and what of them holds. Plain C++, one thread.
namespace nsimplex::causal {

struct AttenuationOptions {
  int64_t planes = 64;                 ///< d: coordinates of a point, pairs of channels of a query
  double scale = 0.78539816339744831;  ///< c
  bool by_dimension = false;           ///< c sqrt(d)
  int64_t draws = 2000;                ///< of every statement
  double least_distance = 1, largest_distance = 5;
  uint64_t seed = 1;
  std::function<void(int64_t done)> checkpoint = {};  ///< after each draw, of all statements
};

/// One point of a surface over norms and distances (Fig. S2) or of a path at one distance.
struct AttenuationPoint {
  double first, second;  ///< |e_m|, |e_n|
  double distance;       ///< d_p
  double gap;            ///< |e_m - e_n|
  double bound;          ///< A+, over its value without a gap
  double equal_score;    ///< A of equal query and key, over its value without a gap
};

/// Pairs with |e_m| = |e_n| = norm for all norms and distances, but for those that no two points
/// have: distance > 4 artanh(norm). Query, key and the direction of the gap come from the seed.
std::vector<AttenuationPoint> attenuation_surface(const AttenuationOptions& options,
                                                  std::span<const double> norms,
                                                  std::span<const double> distances);

/// Pairs at one distance on a line through the origin: from n's antipode m moves to the origin.
std::vector<AttenuationPoint> attenuation_path(const AttenuationOptions& options, double distance,
                                               int64_t points);

/// Propositions 4.1 and 4.2 and corollaries A.1, A.2 and A.3: as printed, and with what has to be
/// held for them to be true. Slacks are relative to the score or bound without a gap.
/// Complexity: O(draws planes).
std::vector<Claim> attenuation_claims(const AttenuationOptions& options);

/// How many draws attenuation_claims() reports.
int64_t attenuation_draws(const AttenuationOptions& options);

}  // namespace nsimplex::causal
