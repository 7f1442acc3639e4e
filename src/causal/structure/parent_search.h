// Declares the prices of edges, the cost of a column given others, and the search for parents.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "causal/graph/edge_constraints.h"
#include "causal/matrix.h"
#include "causal/structure/lasso.h"

namespace nsimplex::causal {

/// The number x for which the F-test of `parameters` more coefficients, with `free` remaining
/// degrees of freedom, has the given level. If an addition leaves the part x of the residual sum of
/// squares, it is significant at exactly that level for Gaussian noise.
///
///     P(RSS_with / RSS_without <= x) = I_x(free / 2, parameters / 2) = level
///
/// `level` and both counts are positive; the answer lies in (0, 1).
double f_test_ratio(double free, double parameters, double level);

/// The probability of a ratio of at most `ratio` if the additional coefficients are all 0.
double f_test_level(double free, double parameters, double ratio);

/// The number that a chi-squared variable with this many degrees of freedom exceeds with the
/// probability `level`. It tests that many coefficients if there are many rows.
double chi_squared_test(double degrees, double level);

/// The level of the test of one edge that gives `false_edges` expected false edges among
/// independent columns: `false_edges` over the number of pairs.
double edge_level(int64_t features, double false_edges);

/// The price of the k-th parent of a column, in units of -2 log-likelihood. It is the larger of 2
/// log n (twice the price of BIC) and the requirement of an F-test at the edge_level() of half a
/// false edge, with the degrees of freedom that k parents leave. The second is larger with few rows
/// or many columns.
class EdgePrices {
 public:
  EdgePrices(int64_t observations, int64_t features);

  double observations() const { return observations_; }
  /// The largest number of parents of a column. One parent is always possible.
  int64_t most() const { return static_cast<int64_t>(sums_.size()) - 1; }
  /// The price of this number of parents together. Only required parents exceed most(). Each of
  /// these costs more than a column's variance can fall by.
  double of(int64_t parents) const;
  /// The price of one more parent.
  double next(int64_t parents) const { return of(parents + 1) - of(parents); }

 private:
  double observations_;
  std::vector<double> sums_;
};

/// Least squares of a column on others, from their covariance. A column that the others explain up
/// to rounding is left out and has coefficient 0.
struct Regression {
  double variance;      ///< of the residual
  Vector coefficients;  ///< in the order of the causes
  Vector increase;      ///< of the variance without this cause
};

/// Complexity: O(p^3) for p causes.
Regression regress(const Matrix& covariance, int64_t column, std::span<const int64_t> causes);

/// Columns given others, which are added one at a time.
class ConditionedColumns {
 public:
  explicit ConditionedColumns(const Matrix& covariance);

  /// O(M p) for the p-th column.
  void condition_on(int64_t column);

  double variance(int64_t column) const { return variance_[column]; }
  /// The covariance of `column` with every column. O(M p).
  Vector covariance_with(int64_t column) const;
  /// Whether the others do not explain a column completely.
  bool varies(int64_t column) const;

 private:
  const Matrix& covariance_;
  Vector variance_;
  /// of the Cholesky factor: covariance = rows^T rows + residual covariance
  std::vector<Vector> rows_;
};

/// The cost of a column: -2 log-likelihood and the prices of its parents. The first is n log v if
/// every column has its own noise variance v, and n v / s if all share s.
struct GaussianCost {
  EdgePrices prices;
  double shared = 0;  ///< s; 0 if every column has its own variance

  double of(double variance, size_t parents) const;
  /// By how much one more parent must lower a variance to lower the cost.
  double worth(double variance, size_t parents) const;
};

/// A residual variance, with the part of a column's variance that counts as noise as its lower
/// limit. Without the limit, a column that others determine would gain without end.
double noise_of(const Matrix& covariance, int64_t column, double variance);

/// The parents of a column among its predecessors.
struct ParentSet {
  std::vector<int64_t> parents;  ///< ascending
  double variance;               ///< of the column, given them
  double cost;
};

/// The cost of each column given others, for any kind of regression: -2 log-likelihood plus the
/// prices of its parents.
class ParentCosts {
 public:
  virtual ~ParentCosts() = default;
  virtual int64_t features() const = 0;
  /// The most parents that a column may have.
  virtual int64_t most(int64_t column) const = 0;
  /// With `without`, it also computes the cost of the column without each of its parents.
  virtual ParentSet of(int64_t column, std::vector<int64_t> parents,
                       Vector* without = nullptr) const = 0;
  /// The columns whose addition would lower the cost, the best first.
  virtual std::vector<int64_t> better(int64_t column, std::span<const int64_t> parents) const = 0;
  /// One coefficient per parent, of the regression of the column on them.
  virtual Vector coefficients(int64_t column, std::span<const int64_t> parents) const = 0;
  /// Entry [i, j] is the amount by which i alone lowers the mean -2 log-likelihood of j.
  virtual Matrix alone() const = 0;
  /// The price of a first parent.
  virtual double price(int64_t column) const = 0;
  /// Whether the costs may depend on the direction of an edge, even between graphs that have the
  /// same independences.
  virtual bool tells(int64_t cause, int64_t effect) const = 0;
};

/// The covariances for the regressions of the columns of a table. Usually there is one, but columns
/// that were intervened on have their own.
struct Covariances {
  Covariance all;                    ///< of all rows
  std::vector<Covariance> own = {};  ///< of some columns
  std::vector<int64_t> place = {};   ///< of each column in `own`, or -1; empty: all use `all`
  /// The number of observations that count for each column; empty: those of its covariance.
  std::vector<int64_t> worth = {};
  /// The covariance of the rows without interventions, if there are enough of them.
  std::optional<Covariance> observed = {};
  /// Sets of columns that were intervened on together; none for a table of observations.
  std::vector<std::vector<int64_t>> targets = {};

  const Covariance& of(int64_t column) const {
    const int64_t at = place.empty() ? -1 : place[static_cast<size_t>(column)];
    return at < 0 ? all : own[static_cast<size_t>(at)];
  }
  int64_t observations(int64_t column) const {
    return worth.empty() ? of(column).observations : worth[static_cast<size_t>(column)];
  }
  /// The covariance from which starting orders are made.
  const Covariance& start() const { return observed ? *observed : all; }
};

/// Whether interventions on sets of columns tell the direction of an edge: some set contains one of
/// the two columns and not the other.
///
/// Source: Hauser, Buehlmann, "Characterization and greedy learning of interventional Markov
/// equivalence classes of directed acyclic graphs", JMLR 2012, theorem 10.
bool tells_of(const std::vector<std::vector<int64_t>>& targets, int64_t cause, int64_t effect);

/// Linear regressions with Gaussian noise.
class GaussianCosts : public ParentCosts {
 public:
  /// `shared`: the noise variance that all columns have, or 0. The covariances must outlive it.
  explicit GaussianCosts(const Covariances& covariances, double shared = 0);

  /// The costs if all columns have the noise variance `shared`. The prices are copied: their tests
  /// take longer than the search with few columns.
  GaussianCosts with_shared(double shared) const;

  int64_t features() const override { return covariances_.all.matrix.rows(); }
  int64_t most(int64_t column) const override { return cost(column).prices.most(); }
  ParentSet of(int64_t column, std::vector<int64_t> parents,
               Vector* without = nullptr) const override;
  std::vector<int64_t> better(int64_t column, std::span<const int64_t> parents) const override;
  Vector coefficients(int64_t column, std::span<const int64_t> parents) const override;
  Matrix alone() const override;
  double price(int64_t column) const override { return cost(column).prices.next(0); }
  bool tells(int64_t cause, int64_t effect) const override {
    return tells_of(covariances_.targets, cause, effect);
  }

  const EdgePrices& prices(int64_t column) const { return cost(column).prices; }

 private:
  const Matrix& matrix(int64_t column) const { return covariances_.of(column).matrix; }
  const GaussianCost& cost(int64_t column) const {
    return costs_[cost_of_[static_cast<size_t>(column)]];
  }

  const Covariances& covariances_;
  std::vector<GaussianCost> costs_;  ///< of each number of observations
  std::vector<size_t> cost_of_;      ///< each column's
};

/// Grow-shrink search of the parents of every column, for any causal order. A set starts with the
/// required parents. It grows by the predecessor that lowers the cost most, until none does or the
/// set has most() members. Then it shrinks by the parent whose removal lowers the cost most,
/// until none does.
///
/// Results for one order are reused for others. Each column has a tree. A path in it is the
/// sequence of added parents, and its branches are all columns that would lower the cost next, the
/// best first. The next step is the first branch that precedes the column; it needs no arithmetic
/// if it exists already. The trees are deleted when they have grown to about a gigabyte.
///
/// Source: Andrews, Ramsey, Sanchez-Romero, Camchong, Kummerfeld, "Fast scalable and accurate
/// discovery of DAGs using the best order score search and grow-shrink trees", NeurIPS 2023.
class ParentSearch {
 public:
  /// Costs and constraints must outlive the search.
  ParentSearch(const ParentCosts& costs, const AllowedEdges& edges);
  ~ParentSearch();
  ParentSearch(const ParentSearch&) = delete;
  ParentSearch& operator=(const ParentSearch&) = delete;

  int64_t features() const { return costs_.features(); }
  const ParentCosts& costs() const { return costs_; }

  /// The parents of `column` among the columns with a place less than `end`. The result is valid
  /// until the next call. `looked_at` becomes the columns whose places were looked at: moving any
  /// other column to the other side of `end` does not change the result.
  const ParentSet& best(int64_t column, std::span<const int64_t> place, int64_t end,
                        std::vector<int64_t>* looked_at = nullptr);

 private:
  struct Step;
  void forget();
  std::vector<int64_t> added(int64_t column, const Step& step) const;
  void branch(int64_t column, Step& step);
  void shrink(int64_t column, Step& step);

  const ParentCosts& costs_;
  const AllowedEdges& edges_;
  std::vector<std::vector<int64_t>> required_;  ///< causes per column
  std::vector<std::vector<Step>> trees_;
  int64_t stored_ = 0;  ///< approximate number of numbers in the trees
};

/// The columns on whose places the parents of each column depend in an order, as rows of bits.
class LookedAt {
 public:
  explicit LookedAt(int64_t features);

  bool at(int64_t column, int64_t other) const {
    return (bits_[word(column, other)] >> (other % 64) & 1) != 0;
  }

  /// ParentSearch::best() of a column, whose row becomes that of the answer.
  const ParentSet& best(ParentSearch& search, int64_t column, std::span<const int64_t> place,
                        int64_t end);

 private:
  size_t word(int64_t column, int64_t other) const {
    return static_cast<size_t>(column * words_ + other / 64);
  }

  int64_t words_;
  std::vector<uint64_t> bits_;
  std::vector<std::vector<int64_t>> columns_;
};

}  // namespace nsimplex::causal
