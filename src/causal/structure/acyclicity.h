// Declares acyclicity functions and the candidate edges of an optimiser.

#pragma once

#include <nsimplex/causal_options.h>

#include <functional>
#include <span>
#include <vector>

#include "causal/matrix.h"
#include "causal/structure/low_rank.h"

namespace nsimplex::causal {

/// exp(B) of a matrix without negative entries, by scaling and squaring of a Taylor polynomial.
/// Sums of numbers of one sign have no cancellation, so every entry has full relative precision,
/// however small it is. Complexity: O(M^3 (5 + log2 of the largest row sum)).
Matrix exponential_of_nonnegative(const Matrix& matrix);

/// Replaces a Z-matrix (no positive entry off its diagonal) by its inverse and adds log |det| to
/// `log_det`. Returns false if the matrix is no M-matrix; its entries are then undefined. An
/// M-matrix is s I - B with B >= 0 and s above the spectral radius of B.
///
/// An M-matrix needs no pivoting. A Z-matrix is an M-matrix if and only if all pivots of the
/// elimination without pivoting are positive. The matrix is halved recursively, so that nearly all
/// of the O(M^3) operations are matrix products.
///
/// Source: Berman, Plemmons, "Nonnegative matrices in the mathematical sciences", theorem 6.2.3.
[[nodiscard]] bool invert_m_matrix(Eigen::Ref<Matrix> matrix, double& log_det);

// Functions of a weighted graph A with their gradients dh / dA_ij. They are 0 if A has no cycle,
// and positive if it has one.

/// h_s(A) = -log det(s I - A o A) + M log s if the spectral radius of A o A is below s, otherwise
/// +infinity. dh/dA = 2 A o (s I - A o A)^-T. Complexity: O(M^3), one inverse.
///
/// Source: Bello, Aragam, Ravikumar, "DAGMA: learning DAGs via M-matrices and a log-determinant
/// acyclicity characterization", NeurIPS 2022, theorem 1.
double log_det_acyclicity(const Matrix& weights, double s, Matrix& gradient);

/// h(A) = tr exp(A o A) - M, dh/dA = 2 A o exp(A o A)^T. Complexity: O(M^3), about ten products.
///
/// Source: Zheng, Aragam, Ravikumar, Xing, "DAGs with NO TEARS", NeurIPS 2018, theorem 1.
double trace_exponential_acyclicity(const Matrix& weights, Matrix& gradient);

/// The edges whose weights an estimator determines. A vector of weights has one number per edge:
/// all causes of effect 0 first, then those of effect 1, and so on, with ascending causes.
class CandidateEdges {
 public:
  using Filter = std::function<bool(int64_t cause, int64_t effect)>;

  /// Every edge that the constraints allow, that closes no cycle with required edges, and that
  /// passes `filter`. Required edges need not pass it. Throws the InputError of AllowedEdges.
  /// Complexity: O(M^2), and O(M |required|) for the cycles.
  CandidateEdges(const EdgeConstraints& constraints, int64_t features, const Filter& filter = {});

  int64_t features() const { return static_cast<int64_t>(first_.size()) - 1; }
  int64_t size() const { return static_cast<int64_t>(causes_.size()); }

  /// The edges into `effect` are first(effect) .. first(effect + 1) - 1.
  int64_t first(int64_t effect) const { return first_[static_cast<size_t>(effect)]; }
  int64_t cause(int64_t edge) const { return causes_[static_cast<size_t>(edge)]; }
  std::span<const int64_t> causes(int64_t effect) const {
    const auto begin = static_cast<size_t>(first(effect));
    return std::span(causes_).subspan(begin, static_cast<size_t>(first(effect + 1)) - begin);
  }

  /// The weight of the l1 norm per edge, 0 for a required edge.
  Vector penalties(double sparsity) const;

  /// The matrix [M, M] of these weights, 0 for all other edges.
  Matrix matrix(const Vector& weights) const;

  /// A_ij for each edge i -> j.
  Vector weights(const Matrix& matrix) const;

 private:
  std::vector<int64_t> first_, causes_;
  std::vector<char> required_;
};

/// rho(A o A), the spectral radius of the squared weights of candidate edges. It is 0 if they have
/// no cycle, and positive if they have one. Complexity: O(edges), and per product of the power
/// iteration the edges with a weight between columns that cycles may pass. A call starts from the
/// eigenvectors of the last one.
///
/// Source: Lee, Danieletto, Miotto, Cherng, Dudley, "Scaling structural learning with NO-BEARS",
/// 2019; Nazaret, Hong, Azizi, Blei, "Stable differentiable causal discovery", ICML 2024.
class SpectralAcyclicity {
 public:
  explicit SpectralAcyclicity(const CandidateEdges& edges) : edges_(edges) {}

  /// Returns the radius, and its gradient 2 A_ij left_i right_j / (left . right) per edge i -> j.
  double operator()(const Vector& weights, Vector& gradient);

 private:
  bool find_cyclic_part(const Vector& weights);

  struct Edge {
    int64_t cause, effect, number;
    double square;
  };

  const CandidateEdges& edges_;
  PerronVectors vectors_;
  std::vector<Edge> weighted_;  // between columns of the cyclic part
  std::vector<char> cyclic_;  // columns that remain after sources and sinks are removed repeatedly
};

}  // namespace nsimplex::causal
