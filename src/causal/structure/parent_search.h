#pragma once

#include <span>
#include <vector>

#include "causal/structure/constraints.h"
#include "causal/structure/covariance.h"
#include "causal/structure/edge_price.h"

namespace nsimplex::causal {

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
