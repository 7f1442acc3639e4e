#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace nsimplex::causal
