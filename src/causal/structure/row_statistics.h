// Declares covariances of tables with groups, interventions and missing values.

#pragma once

#include <nsimplex/causal_options.h>

#include <span>
#include <vector>

#include "causal/matrix.h"
#include "causal/structure/parent_search.h"

namespace nsimplex::causal {

/// Subtracts the mean of the row's group from every column. Groups are numbered 0, 1, ..
Matrix without_groups(TableView table, std::span<const int64_t> groups);

/// Groups by the numbers 0, 1, .. in the order of their first rows. InputError unless there is one
/// for each row and some group has two rows.
std::vector<int64_t> numbered_groups(std::span<const int64_t> groups, int64_t rows);

/// The maximum likelihood covariance of Gaussian columns with missing values (NaN). It uses all
/// values that are present. It assumes that whether a value is missing depends only on values that
/// are present. Expectation and maximisation start from independent columns, and end when no
/// correlation changes by more than 1e-4 or after 200 steps. Rows without values do not count.
///
/// Complexity: O(M^3 + n M^2 + p M u^2) a step for p patterns of u missing values.
///
/// Sources: Dempster, Laird, Rubin, "Maximum likelihood from incomplete data via the EM algorithm",
/// JRSS B 1977; Little, Rubin, "Statistical analysis with missing data", chapter 11.
Matrix likelihood_covariance(const Matrix& table);

/// The covariances of a table with options.groups, options.targets or missing values.
///
/// - Groups: columns are centred within groups. n rows in G groups count as n - G + 1 observations.
/// - Perfect interventions: rows in which a column was intervened on are left out of its regression.
/// - Soft interventions: these rows count with their own intercept and their own noise variance
///   v' = v / ratio. The covariance of such a column is (W + ratio W') / n, with the sums of squares
///   W without and W' with intervention. The ratio is 1 until weigh() knows a graph.
/// - Missing values: likelihood_covariance(). The number of observations of a column is the mean
///   number of rows that have it and another column. Groups and soft interventions need whole
///   tables.
///
/// Complexity: O(n M^2), and O(M^2) memory for each column that was intervened on.
class RowStatistics {
 public:
  /// Throws InputError that names the option if there are too few rows.
  RowStatistics(TableView table, const CausalFitOptions& options);

  const Covariances& covariances() const { return covariances_; }
  bool soft() const { return soft_ && !changed_.empty(); }
  /// Computes the ratios of noise variances from the residuals of a graph.
  void weigh(const Matrix& weights);

 private:
  // Sums over some rows.
  struct Moments {
    Matrix products;  ///< of columns
    Matrix sums;      ///< [groups, M] of each group
    Vector rows;      ///< of each group
  };
  // Sums of products less the means of the groups.
  struct Scatter {
    Matrix products;
    int64_t rows, groups;
    int64_t worth() const { return rows - groups + 1; }
  };
  Moments moments_of(std::span<const int64_t> rows) const;
  static Scatter scatter_of(const Moments& moments);
  void read_targets(const CausalFitOptions& options);
  void add_own();
  void treat_missing(const CausalFitOptions& options);

  Matrix table_;
  std::vector<int64_t> groups_;  ///< each row's
  bool soft_;
  std::vector<int64_t> changed_;               ///< columns that were intervened on
  std::vector<std::vector<int64_t>> rows_of_;  ///< in which each of them was
  std::vector<Scatter> plain_, intervened_;    ///< of the rows without and with
  Covariances covariances_;
};

}  // namespace nsimplex::causal
