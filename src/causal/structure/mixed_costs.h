// Declares regressions suited to the kind of each column.

#pragma once

#include <nsimplex/causal_options.h>

#include <map>
#include <span>
#include <vector>

#include "causal/matrix.h"
#include "causal/structure/parent_search.h"

namespace nsimplex::causal {

/// Regressions suited to the kind of each column, by maximum likelihood:
///
/// - continuous: linear, Gaussian noise of its own variance
/// - binary, category of K values: multinomial logit, K - 1 equations
/// - count: negative binomial, log link, one shape; the Poisson regression is its limit
///
/// As a cause, a continuous column enters as it is, a count as log(1 + x), and K values as K - 1
/// indicators. Groups have intercepts. Rows in which a column was intervened on are left out of its
/// regression. A cause of p columns in e equations costs the larger of (1 + p e) log n, which is 2
/// log n for one coefficient, and the requirement of a chi-squared test of p e coefficients at the
/// edge_level() of half a false edge. Score tests rank the gains. A ridge of 1e-3 keeps coefficients
/// finite if a cause separates the values.
///
/// Complexity: O(n p^2 e^2) a Newton step, O(n p D e^2) for the gains of D columns of causes.
///
/// Sources: McCullagh, Nelder, "Generalized linear models", 1989; Hilbe, "Negative binomial
/// regression", 2011.
class MixedCosts : public ParentCosts {
 public:
  /// Expects prepared continuous columns; the other columns keep their values. Throws InputError
  /// "kinds: .." if values do not fit their kind.
  MixedCosts(TableView table, const CausalFitOptions& options);

  int64_t features() const override { return std::ssize(kinds_); }
  int64_t most(int64_t column) const override;
  ParentSet of(int64_t column, std::vector<int64_t> parents,
               Vector* without = nullptr) const override;
  std::vector<int64_t> better(int64_t column, std::span<const int64_t> parents) const override;
  /// Per unit of a continuous column, of log(1 + x) or of the larger of two values; the length of
  /// all coefficients of a cause where there are several.
  Vector coefficients(int64_t column, std::span<const int64_t> parents) const override;
  Matrix alone() const override;
  double price(int64_t column) const override { return price_of(column, column); }
  bool tells(int64_t cause, int64_t effect) const override;

  /// Correlations of columns as numbers, for orders to start from.
  Matrix correlations() const;

 private:
  using Columns = Eigen::MatrixXd;  // column-major
  struct Fit {
    Columns design;
    Columns coefficients;         // [p, equations]
    double deviance = 0;          // -2 log-likelihood, but for a constant of the column
    double shape = 0;             // of a count
    Columns residuals;            // slopes of the log-likelihood in the linear predictors
    std::vector<Vector> weights;  // of pairs of equations, row by row of the lower triangle
  };
  int64_t equations(int64_t column) const;
  int64_t width(int64_t column) const {
    return first_[static_cast<size_t>(column) + 1] - first_[static_cast<size_t>(column)];
  }
  double observations(int64_t column) const;
  double price_of(int64_t cause, int64_t effect) const;
  Fit fit(int64_t column, std::span<const int64_t> parents) const;
  void fit_gaussian(int64_t column, Fit& fit) const;
  // Deviance, residuals and weights at the coefficients.
  void evaluate(int64_t column, Fit& fit) const;
  void estimate_shape(int64_t column, Fit& fit) const;
  std::map<double, double> counts_of(int64_t column) const;  // rows of each value
  // A^T W B, with W of every pair of equations; the equations of a column stand side by side.
  Columns information(const Fit& fit, const Columns& left, const Columns& right) const;
  // What each cause would about raise twice the log-likelihood by.
  Vector score_tests(int64_t column, const Fit& fit) const;

  std::vector<ColumnKind> kinds_;
  Columns values_;               // [n, M], categories as numbers 0 .. K - 1
  std::vector<int64_t> levels_;  // of binary columns and categories
  Columns causes_;               // [n, D], centred, of deviation 1
  Vector scale_;                 // [D] what they were divided by
  std::vector<int64_t> first_;   // of each column in causes_
  Columns base_;                 // [n, groups]
  std::vector<Vector> used_;     // of each column: 1 for rows that take part; empty for all
  std::vector<std::vector<int64_t>> targets_;
  mutable std::map<int64_t, double> tests_;  // by numbers of coefficients
};

}  // namespace nsimplex::causal
