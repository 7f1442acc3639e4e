// Declares the distance of tokens from a common row.

#pragma once

#include <Eigen/Dense>

namespace nsimplex::analysis {

/// Tokens are rows: [n, d].
using TokenMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Columns' and rows' norms of R = X - 1 u^T: a = max_j sum_i |R_ij|, b = max_i sum_j |R_ij|.
struct ResidualNorms {
  double columns = 0, rows = 0;

  double composite() const;  ///< ||R||_{1,inf} = sqrt(a b)
};

ResidualNorms residual_norms(const Eigen::Ref<const TokenMatrix>& tokens,
                             const Eigen::Ref<const Eigen::VectorXd>& offset);

/// min_u (w_a a + w_b b), a linear programme, bounded from both sides: `offset` attains `norms`,
/// and no u gives less than `lower`.
struct WeightedResidual {
  Eigen::VectorXd offset;
  ResidualNorms norms;
  double lower = 0;
};

/// Uses an interior point method; w_a, w_b > 0. `lower` is the value of a dual point and therefore
/// always valid, except for the rounding of one sum. O((n + d)^3) per iteration, about 20 of them.
WeightedResidual weighted_residual(const Eigen::Ref<const TokenMatrix>& tokens,
                                   double weight_columns, double weight_rows);

/// The smallest residual of tokens in ||.||_{1,inf}, which is neither convex nor a norm.
struct ResidualMinimum {
  Eigen::VectorXd offset;  ///< u
  double norm = 0;         ///< ||X - 1 u^T||_{1,inf}: the minimum, up to the tolerance
  double lower = 0;        ///< certified: no u gives a smaller norm
  int programmes = 0;      ///< linear programmes that were solved
};

/// min_u ||X - 1 u^T||_{1,inf} up to a relative gap. The pairs (a, b) that bound some u's norms are
/// a convex set of the plane, and sqrt(a b) is least at one of its corners. Each linear programme
/// gives a point of the set and a line below it, w_a a + w_b b >= lower. The corners of these lines
/// bound the minimum, and the lowest one is cut off next.
///
/// `norm - lower` is the gap. If it stays above `tolerance * norm`, the search has used up its
/// programmes. Throws std::invalid_argument for a NaN or infinity.
ResidualMinimum minimal_residual(const Eigen::Ref<const TokenMatrix>& tokens,
                                 double tolerance = 1e-7);

}  // namespace nsimplex::analysis
