#pragma once

#include <cstdint>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// The attention score of a query and a key that turn by angles c e_m and c e_n, by the gap
/// g = e_m - e_n of their points in the ball (Xu et al., arXiv 2509.16629, Eq. 24 to 26, A.56):
///
///     A(g) = sum_t alpha_t cos(c g_t) + beta_t sin(c g_t)
///
/// Channels 2t and 2t + 1 are a plane; alpha = q k + q' k', beta = q k' - q' k of its two. (A.56
/// has -beta: its last line takes the sine of the gap the other way round.)
class RotaryScore {
 public:
  /// query, key [2 planes]; `scale`: c.
  RotaryScore(const Vector& query, const Vector& key, double scale);

  int64_t planes() const { return alpha_.size(); }

  double operator()(const Vector& gap) const;

  /// A+ of Eq. A.59, which bounds |A| where c |g_t| <= pi / 2:
  /// max |alpha| d cos(c |g| / d) + sum |beta|.
  double bound(double gap) const;

  /// |query| |key|.
  double norms() const { return norms_; }
  double scale() const { return scale_; }

 private:
  Eigen::ArrayXd alpha_, beta_;
  double largest_, rest_, norms_, scale_;
};

/// What the angles of one coordinate are multiplied by: `scale`, or `scale` sqrt(planes).
double angle_scale(double scale, bool by_dimension, int64_t planes);

}  // namespace nsimplex::causal
