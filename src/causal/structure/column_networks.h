#pragma once

#include "causal/matrix.h"

namespace nsimplex::causal {

/// A small network for each column j from all columns that may cause it:
///
///     x^_j = sum_h v_jh sigmoid(b_jh + sum_i T_jhi x_i) + c_j
///
/// All parameters are one vector: T, then b, v and c. The strength of i -> j is the norm of
/// what leads from x_i into network j, A_ij = (sum_h T_jhi^2)^(1/2).
class ColumnNetworks {
 public:
  /// `possible` has 1 at the edges that may be; other T_jhi have no gradient and stay 0. The table
  /// must outlive the networks.
  ColumnNetworks(TableView table, int64_t hidden, const Matrix& possible);

  /// T = 0, so that the graph starts empty; b and v small and random.
  Vector start(uint64_t seed) const;

  /// M/2 log of the mean over rows of |x - x^|^2, the likelihood of noises of one unknown
  /// variance; its gradient. O(n M^2 hidden)
  double loss(const Vector& point, Vector& gradient) const;

  /// A, [M, M].
  Matrix strengths(const Vector& point) const;

  /// Of the size of the parameters: entry (i, j) at every T_jhi, zeros at the rest.
  Vector first_layer(const Matrix& edges) const;

 private:
  int64_t units() const { return table_.cols() * hidden_; }
  int64_t size() const { return units() * (table_.cols() + 2) + table_.cols(); }

  TableView table_;
  int64_t hidden_;
  Vector possible_;  // of every parameter
};

}  // namespace nsimplex::causal
