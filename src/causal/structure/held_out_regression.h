#pragma once

#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// How well columns explain others, whatever the form: least squares on random features fitted to
/// some rows, measured on the rest.
///
/// The features of causes z, centred and of standard deviation 1: 1, z, and tanh(w^T z / sqrt(p) +
/// b) for fixed random w and b, of which every column has its own part: as many as the rows can
/// bear, 100 at most. Which rows are held out, 2 in 5, is random as well.
///
/// Source: Huang, Zhu, Siew, "Extreme learning machine: theory and applications", Neurocomputing
/// 2006.
class HeldOutRegression {
 public:
  HeldOutRegression(TableView table, uint64_t seed);

  /// Mean squared residuals of `columns` given `causes` on the rows held out, each at least 1e-10
  /// of its column's variance. Complexity: O(n f^2 + n f c) for f features and c columns.
  Vector residuals(const std::vector<int64_t>& causes, const std::vector<int64_t>& columns) const;

  /// Standard deviation.
  double deviation(int64_t column) const { return deviations_[column]; }

  /// How a column answers to each of its causes where that rises by its standard deviation.
  struct Slopes {
    Vector mean, square;  ///< of the derivative over the rows held out, and of its square
  };
  Slopes slopes(const std::vector<int64_t>& causes, int64_t column) const;

 private:
  using Columns = Eigen::MatrixXd;
  struct Part {
    Columns inputs, outputs;  ///< of some rows: scaled as causes, as they are
  };
  Columns features(const Part& part, const std::vector<int64_t>& causes) const;
  Columns coefficients(const std::vector<int64_t>& causes,
                       const std::vector<int64_t>& columns) const;
  Columns directions(const std::vector<int64_t>& causes) const;

  Vector deviations_;   ///< of the columns
  Columns directions_;  ///< [M, features]: w
  Vector offsets_;      ///< [features]: b
  Part fitted_, held_out_;
};

}  // namespace nsimplex::causal
