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

/// min_u (w_a a + w_b b), a linear programme, from both sides: `offset` reaches `norms`, and no u
/// stays below `lower`.
struct WeightedResidual {
  Eigen::VectorXd offset;
  ResidualNorms norms;
  double lower = 0;
};

/// By an interior point method; w_a, w_b > 0. `lower` is the value of a dual point and holds
/// whatever was reached, but for the rounding of one sum. O((n + d)^3) an iteration, some 20 of
/// them.
WeightedResidual weighted_residual(const Eigen::Ref<const TokenMatrix>& tokens,
                                   double weight_columns, double weight_rows);

/// The smallest residual of tokens in ||.||_{1,inf}, which is neither convex nor a norm.
struct ResidualMinimum {
  Eigen::VectorXd offset;  ///< u
  double norm = 0;         ///< ||X - 1 u^T||_{1,inf}: the minimum, up to the tolerance
  double lower = 0;        ///< certified: no u stays below
  int programmes = 0;      ///< linear programmes that were solved
};

/// min_u ||X - 1 u^T||_{1,inf} up to a relative gap. The pairs (a, b) that some u stays within are
/// a convex set of the plane, and sqrt(a b) is least at one of its corners. Each linear programme
/// gives a point of the set and a line below it, w_a a + w_b b >= lower; the lines' own corners
/// bound the minimum, and the lowest is cut off next.
///
/// `norm - lower` is the gap; where it stays above `tolerance * norm` the search had spent its
/// programmes. Throws std::invalid_argument for a NaN or infinity.
ResidualMinimum minimal_residual(const Eigen::Ref<const TokenMatrix>& tokens,
                                 double tolerance = 1e-7);

}  // namespace nsimplex::analysis
