#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "causal/graph/edge_constraints.h"
#include "causal/matrix.h"
#include "causal/structure/lasso.h"

namespace nsimplex::causal {

/// The number x for which the F-test of `parameters` more coefficients, with `free` degrees of
/// freedom left, has the given level: an addition that leaves the part x of the residual sum of
/// squares is significant at exactly that level, where the noise is Gaussian.
///
///     P(RSS_with / RSS_without <= x) = I_x(free / 2, parameters / 2) = level
///
/// `level` and both counts are positive; the answer lies in (0, 1).
double f_test_ratio(double free, double parameters, double level);

/// The probability of a ratio of at most `ratio` where the additional coefficients are all 0.
double f_test_level(double free, double parameters, double ratio);

/// The level of one edge's test at which so many false edges are expected among independent columns,
/// whatever the number of columns: `false_edges` over the number of pairs.
double edge_level(int64_t features, double false_edges);

/// What the k-th parent of a column costs, in units of -2 log-likelihood: the larger of 2 log n
/// (twice the price of BIC) and what an F-test asks for with the degrees of freedom that k parents
/// leave, at the edge_level() of half a false edge. Few rows or many columns make the second the larger one.
class EdgePrices {
 public:
  EdgePrices(int64_t observations, int64_t features);

  double observations() const { return observations_; }
  /// The most parents that a column may have. One parent is always possible.
  int64_t most() const { return static_cast<int64_t>(sums_.size()) - 1; }
  /// Of so many parents together. Beyond most(), which only required parents reach, each costs more
  /// than all that a column's variance can fall by.
  double of(int64_t parents) const;
  /// Of one more parent than there are.
  double next(int64_t parents) const { return of(parents + 1) - of(parents); }

 private:
  double observations_;
  std::vector<double> sums_;
};

/// Says that a table has fewer rows than columns, so that a graph learned from it shows strong effects
/// at most; empty where it has not.
std::string few_rows_warning(int64_t rows, int64_t columns);

/// Least squares of a column on others, by their covariance. What other columns already explain
/// (but for rounding) takes no part and has coefficient 0.
struct Regression {
  double variance;      ///< of the residual
  Vector coefficients;  ///< in the order of the causes
  Vector increase;      ///< of the variance, were this cause left out
};

/// Complexity: O(p^3) for p causes.
Regression regress(const Matrix& covariance, int64_t column, std::span<const int64_t> causes);

/// Columns given others, one more at a time.
class ConditionedColumns {
 public:
  explicit ConditionedColumns(const Matrix& covariance);

  /// O(M p) for the p-th column.
  void condition_on(int64_t column);

  double variance(int64_t column) const { return variance_[column]; }
  /// Of `column` with every column. O(M p).
  Vector covariance_with(int64_t column) const;
  /// Whether something is left of a column that the others do not explain.
  bool varies(int64_t column) const;

 private:
  const Matrix& covariance_;
  Vector variance_;
  std::vector<Vector> rows_;  ///< of the Cholesky factor: covariance = rows^T rows + what is left
};

/// What a column costs, as -2 log-likelihood and the prices of its parents: n log v where every
/// column has a noise variance v of its own, n v / s where all share s.
struct GaussianCost {
  EdgePrices prices;
  double shared = 0;  ///< s; 0 where every column has its own

  double of(double variance, size_t parents) const;
  /// How much one parent more than there are must take off a variance to lower the cost.
  double worth(double variance, size_t parents) const;
};

/// A residual variance, but at least the part of a column's variance that counts as noise: a column
/// that others determine would gain without end.
double noise_of(const Matrix& covariance, int64_t column, double variance);

/// The parents of a column among those that stand before it.
struct ParentSet {
  std::vector<int64_t> parents;  ///< ascending
  double variance;               ///< of the column, given them
  double cost;
};

/// Grow-shrink search of the parents of every column, for any causal order: from its required
/// parents a set grows by the predecessor that lowers the cost most, while one does and the set has
/// fewer than prices.most() members; then it shrinks by the parent whose absence lowers the cost most, while one does.
///
/// What was computed for one order answers for others: a tree a column, whose path is what was
/// added so far and whose branches are all columns that would lower the cost next, best first. The
/// next step is the first branch that stands before the column; no arithmetic, once it is there. The
/// trees are forgotten whenever they have grown to about a gigabyte.
///
/// Source: Andrews, Ramsey, Sanchez-Romero, Camchong, Kummerfeld, "Fast scalable and accurate
/// discovery of DAGs using the best order score search and grow-shrink trees", NeurIPS 2023.
class ParentSearch {
 public:
  /// Covariance and constraints must outlive the search.
  ParentSearch(const Covariance& covariance, const AllowedEdges& edges, const GaussianCost& cost);
  ~ParentSearch();
  ParentSearch(const ParentSearch&) = delete;
  ParentSearch& operator=(const ParentSearch&) = delete;

  int64_t features() const { return covariance_.matrix.rows(); }
  const GaussianCost& cost() const { return cost_; }

  /// The parents of `column` among the columns whose place is less than `end`; valid until the next
  /// call.
  const ParentSet& best(int64_t column, std::span<const int64_t> place, int64_t end);

 private:
  struct Step;
  void forget();
  std::vector<int64_t> added(int64_t column, const Step& step) const;
  void branch(int64_t column, Step& step);
  void shrink(int64_t column, Step& step);

  const Covariance& covariance_;
  const AllowedEdges& edges_;
  GaussianCost cost_;
  std::vector<std::vector<int64_t>> required_;  ///< causes of each column
  std::vector<std::vector<Step>> trees_;
  int64_t stored_ = 0;  ///< numbers in the trees, about
};

}  // namespace nsimplex::causal
