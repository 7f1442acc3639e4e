#pragma once

#include <nsimplex/causal_options.h>

#include <functional>
#include <vector>

#include "causal/matrix.h"
#include "causal/structure/low_rank.h"

namespace nsimplex::causal {

/// exp(B) of a matrix without negative entries, by scaling and squaring a Taylor polynomial.
/// Nothing cancels in sums of numbers of one sign, so every entry, however small, has full relative
/// precision. Complexity: O(M^3 (5 + log2 of the largest row sum)).
Matrix exponential_of_nonnegative(const Matrix& matrix);

/// Replaces a Z-matrix (nothing positive beside its diagonal) by its inverse and adds log |det| to
/// `log_det`. False, with the matrix spoiled, where it is no M-matrix, that is where s I - B, B >=
/// 0, has s not above the spectral radius of B.
///
/// An M-matrix needs no pivoting, and all pivots of the elimination without it are positive exactly
/// where a Z-matrix is one. Blocks of halves, so that nearly all of the O(M^3) is matrix products.
///
/// Source: Berman, Plemmons, "Nonnegative matrices in the mathematical sciences", theorem 6.2.3.
[[nodiscard]] bool invert_m_matrix(Eigen::Ref<Matrix> matrix, double& log_det);

// Functions of a weighted graph A that are 0 where it has no cycle and positive where it has one,
// with their gradients dh / dA_ij.

/// h_s(A) = -log det(s I - A o A) + M log s on the matrices whose A o A has a spectral radius below
/// s; +infinity outside. dh/dA = 2 A o (s I - A o A)^-T. Complexity: O(M^3), one inverse.
///
/// Source: Bello, Aragam, Ravikumar, "DAGMA: learning DAGs via M-matrices and a log-determinant
/// acyclicity characterization", NeurIPS 2022, theorem 1.
double log_det_acyclicity(const Matrix& weights, double s, Matrix& gradient);

/// h(A) = tr exp(A o A) - M, dh/dA = 2 A o exp(A o A)^T. Complexity: O(M^3), some ten products.
///
/// Source: Zheng, Aragam, Ravikumar, Xing, "DAGs with NO TEARS", NeurIPS 2018, theorem 1.
double trace_exponential_acyclicity(const Matrix& weights, Matrix& gradient);

/// The edges whose weights an estimator looks for. A vector of weights has one number an edge, all
/// causes of effect 0 first, then those of effect 1, ..., causes ascending.
class CandidateEdges {
 public:
  using Filter = std::function<bool(int64_t cause, int64_t effect)>;

  /// Every edge that the constraints allow, that closes no cycle with required edges, and that
  /// passes `filter`; required edges need not pass it. Throws InputError as AllowedEdges does.
  /// Complexity: O(M^2), and O(M |required|) for the cycles.
  CandidateEdges(const EdgeConstraints& constraints, int64_t features, const Filter& filter = {});

  int64_t features() const { return static_cast<int64_t>(first_.size()) - 1; }
  int64_t size() const { return static_cast<int64_t>(causes_.size()); }

  /// The edges into `effect` are first(effect) .. first(effect + 1) - 1.
  int64_t first(int64_t effect) const { return first_[static_cast<size_t>(effect)]; }
  int64_t cause(int64_t edge) const { return causes_[static_cast<size_t>(edge)]; }

  /// The weight of the l1 norm at each edge: nothing at a required one.
  Vector penalties(double sparsity) const;

  /// [M, M] with the weights in their places, zeros elsewhere.
  Matrix matrix(const Vector& weights) const;

  /// For each edge i -> j its A_ij.
  Vector weights(const Matrix& matrix) const;

 private:
  std::vector<int64_t> first_, causes_;
  std::vector<char> required_;
};

/// rho(A o A), the spectral radius of the squared weights of candidate edges: 0 where they have no
/// cycle and positive where they have one. Complexity: O(edges) for each product of the power
/// iteration; one call starts where the last one ended.
///
/// Source: Lee, Danieletto, Miotto, Cherng, Dudley, "Scaling structural learning with NO-BEARS",
/// 2019; Nazaret, Hong, Azizi, Blei, "Stable differentiable causal discovery", ICML 2024.
class SpectralAcyclicity {
 public:
  explicit SpectralAcyclicity(const CandidateEdges& edges) : edges_(edges) {}

  /// The radius, and its gradient 2 A_ij left_i right_j / (left . right) at every edge i -> j.
  double operator()(const Vector& weights, Vector& gradient);

 private:
  bool find_cyclic_part(const Vector& weights);

  const CandidateEdges& edges_;
  PerronVectors vectors_;
  std::vector<char> cyclic_;  // columns that are left when sources and sinks go, again and again
};

}  // namespace nsimplex::causal
