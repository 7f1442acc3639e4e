// Declares one small network per column, whose first layer is the graph.

#pragma once

#include "causal/matrix.h"

namespace nsimplex::causal {

/// One small network per column j, whose inputs are all columns that may cause it:
///
///     x^_j = sum_h v_jh sigmoid(b_jh + sum_i T_jhi x_i) + c_j
///
/// All parameters are one vector: T, then b, v and c. The strength of i -> j is the norm of the
/// weights from x_i into network j, A_ij = (sum_h T_jhi^2)^(1/2).
class ColumnNetworks {
 public:
  /// `possible` is 1 for the allowed edges. The T_jhi of all others have no gradient and stay 0.
  /// The table must outlive the networks.
  ColumnNetworks(TableView table, int64_t hidden, const Matrix& possible);

  /// Start: T = 0, so that the graph is empty; b and v are small and random.
  Vector start(uint64_t seed) const;

  /// M/2 log of the mean over rows of |x - x^|^2, and its gradient. This is the likelihood of
  /// noises with one unknown variance. O(n M^2 hidden)
  double loss(const Vector& point, Vector& gradient) const;

  /// A, [M, M].
  Matrix strengths(const Vector& point) const;

  /// A vector of the size of the parameters: entry (i, j) at every T_jhi, and 0 elsewhere.
  Vector first_layer(const Matrix& edges) const;

 private:
  int64_t units() const { return table_.cols() * hidden_; }
  int64_t size() const { return units() * (table_.cols() + 2) + table_.cols(); }

  TableView table_;
  int64_t hidden_;
  Vector possible_;  // per parameter
};

}  // namespace nsimplex::causal
