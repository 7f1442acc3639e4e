// Declares graphs of low rank and the spectral radius of a nonnegative matrix.

#pragma once

#include <functional>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// out = B in, or B^T in, for a matrix B without negative entries that need not be stored.
using Product = std::function<void(const Vector& in, Vector& out)>;

/// Eigenvectors of the largest eigenvalue of a nonnegative matrix. They are kept between calls, so
/// that few products are necessary after a small change of the matrix.
struct PerronVectors {
  Vector left, right;  ///< each of norm 1; empty before the first call
};

/// The spectral radius of a nonnegative M x M matrix by power iteration from both sides. Its
/// derivative by B_ij is left_i right_j / (left . right).
///
/// The iteration multiplies by B + shift I, because B may have several eigenvalues of the largest
/// modulus (an edge each way has +-r). It takes at most `products` pairs of products. If it has not
/// converged by then, which happens for nearly nilpotent matrices, the answer is an estimate.
double spectral_radius(const Product& times, const Product& times_transposed, int64_t features,
                       PerronVectors& vectors, int products = 40);

/// A = U V^T without its diagonal, with U and V of M x r: a weighted graph that is never stored.
struct LowRankGraph {
  Matrix cause, effect;  ///< U, V

  Vector diagonal() const { return cause.cwiseProduct(effect).rowwise().sum(); }
  /// The matrix [M, M]. O(M^2 r)
  Matrix dense() const;
};

// Functions of A that need at most O(M^2 r). Their derivatives by U and V times `scale` are added
// to `slopes`.

/// tr((I - A)^T S (I - A)) / 2. O(M^2 r): two products with S, and O(M r^2).
double low_rank_loss(const LowRankGraph& graph, const Matrix& covariance, LowRankGraph& slopes);

/// The factors of (I - A)^-1 = D^-1 + D^-1 U (I_r - V^T D^-1 U)^-1 V^T D^-1 with D = I + diag(u_i .
/// v_i). O(M r^2 + r^3)
class LowRankInverse {
 public:
  /// Smallest allowed entry of D. The inverse is useless if an entry is nearer to zero.
  static constexpr double kLeastDiagonal = 0.1;

  explicit LowRankInverse(const LowRankGraph& graph);

  /// Whether D >= kLeastDiagonal and det(I - A) > 0. Then A can move to 0 without becoming
  /// singular.
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

/// rho(A o A) by power iteration with (A o A) x = (u_i^T (sum_j x_j v_j v_j^T) u_i)_i less the part
/// of the diagonal, O(M r^2) per product. Its gradient 2 diag(a) A diag(b) / (a . b), for the
/// eigenvectors a and b, has low rank too.
double low_rank_radius(const LowRankGraph& graph, PerronVectors& vectors, double scale,
                       LowRankGraph& slopes);

}  // namespace nsimplex::causal
