#pragma once

#include <functional>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// out = B in, or B^T in, for a matrix B without negative entries that may exist nowhere.
using Product = std::function<void(const Vector& in, Vector& out)>;

/// Eigenvectors of the largest eigenvalue of a nonnegative matrix, kept between calls: where the
/// matrix changed little, few products follow.
struct PerronVectors {
  Vector left, right;  ///< each of norm 1; empty before the first call
};

/// The spectral radius of a nonnegative M x M matrix by power iteration from both sides. Then its
/// derivative by B_ij is left_i right_j / (left . right).
///
/// Multiplies by B + shift I, since the largest eigenvalue of B need not be alone on its circle (an
/// edge each way has +-r). At most `products` pairs of products; an answer that did not settle by
/// then, of matrices near to a nilpotent one, is an estimate.
double spectral_radius(const Product& times, const Product& times_transposed, int64_t features,
                       PerronVectors& vectors, int products = 40);

/// A = U V^T without its diagonal, U and V of M x r: a weighted graph that is never written out.
struct LowRankGraph {
  Matrix cause, effect;  ///< U, V

  Vector diagonal() const { return cause.cwiseProduct(effect).rowwise().sum(); }
  /// [M, M]. O(M^2 r)
  Matrix dense() const;
};

// Functions of A that need O(M^2 r) at most, each with its derivatives by U and V, which are added
// to `slopes` times `scale`.

/// tr((I - A)^T S (I - A)) / 2. O(M^2 r), or O(M r^2) beside two products with S.
double low_rank_loss(const LowRankGraph& graph, const Matrix& covariance, LowRankGraph& slopes);

/// (I - A)^-1 = D^-1 + D^-1 U (I_r - V^T D^-1 U)^-1 V^T D^-1, D = I + diag(u_i . v_i), by its
/// parts. O(M r^2 + r^3)
class LowRankInverse {
 public:
  /// Least part of D that is allowed: what is nearer to zero has no useful inverse.
  static constexpr double kLeastDiagonal = 0.1;

  explicit LowRankInverse(const LowRankGraph& graph);

  /// Whether D is not below kLeastDiagonal and det(I - A) > 0, so that A = 0 can be reached without
  /// passing a singular matrix.
  bool exists() const { return exists_; }
  double log_det() const { return log_det_; }
  /// (I - A)^-T times a thin matrix.
  Matrix transposed_times(const Matrix& thin) const;
  Matrix times(const Matrix& thin) const;
  Vector diagonal() const;

 private:
  const LowRankGraph& graph_;
  Vector inverse_diagonal_;  // of D
  Matrix core_;              // (I_r - V^T D^-1 U)^-1
  double log_det_ = 0;
  bool exists_ = false;
};

/// Adds `scale` times the derivatives of -log det(I - A).
void add_log_det_slopes(const LowRankGraph& graph, const LowRankInverse& inverse, double scale,
                        LowRankGraph& slopes);

/// rho(A o A) by power iteration: (A o A) x = (u_i^T (sum_j x_j v_j v_j^T) u_i)_i less the
/// diagonal's, O(M r^2) a product; its gradient 2 diag(a) A diag(b) / (a . b), for the eigenvectors
/// a and b, is as thin.
double low_rank_radius(const LowRankGraph& graph, PerronVectors& vectors, double scale,
                       LowRankGraph& slopes);

}  // namespace nsimplex::causal
