#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/export.h>

#include <optional>

/// How far tokens have collapsed into one: diagnostics of X [.., n, d], a token a row, in every
/// batch dimension on its own. They take float32 or float64 and are computed in float64; all but
/// minimal_residual() are differentiable, on every device.
///
/// Errors are c10::ValueError or c10::TypeError of one line that names the argument, what was
/// expected and what came.
namespace nsimplex {

/// ||X||_{1,inf} = sqrt(||X||_1 ||X||_inf), the largest sum of magnitudes of a column times that of
/// a row: [..], float64. Not a norm: it is neither convex nor subadditive. O(n d).
///
/// Source: Dong et al., "Attention is not all you need: Pure attention loses rank doubly
/// exponentially with depth".
NSIMPLEX_API at::Tensor composite_norm(const at::Tensor& tokens);

/// X - 1 mean(X)^T, of which composite_norm() is an upper bound of the least residual: to monitor
/// with. [.., n, d], float64.
NSIMPLEX_API at::Tensor mean_residual(const at::Tensor& tokens);

/// The smallest residual ||X - 1 u^T||_{1,inf} over u.
struct MinimalResidual {
  at::Tensor norm;    ///< [..], reached by `offset`
  at::Tensor lower;   ///< [..], certified: no u stays below
  at::Tensor offset;  ///< u, [.., d]
};

/// The minimum up to a relative gap of `tolerance`, all float64. On the CPU, without gradients;
/// what is not finite is refused. A few linear programmes, each some 20 factorisations of a matrix
/// of 2 d + n + 2 rows: 1 ms at n = d = 8, for n and d up to some hundred.
NSIMPLEX_API MinimalResidual minimal_residual(const at::Tensor& tokens, double tolerance = 1e-7);

/// Theorem 3.1 of "How Smoothing is N-simplicial Attention?" for one head and one X:
///
///     ||res(X')|| <= 4 gamma / sqrt(d) beta' ||X||^(2(N-1)) ||res(X)||^3
///     beta' = (2 max_m ||W_K^(m)||)^(N+1) (2 max_m ||W_V^(m)||)^N
///
/// all norms ||.||_{1,inf}, residuals the smallest. gamma is the smallest number with
/// sqrt(max_i r_i sum_i r_i) <= gamma max_{j,j'} sum_i |E_ij - E_ij'|, where E are the parts of the
/// logits with two residual factors or more and r_i the range of row i; 1 where E has no range.
struct CollapseBound {
  double residual = 0;       ///< ||res(X)||, from below
  double next_residual = 0;  ///< ||res(X')||, as reached
  double next_norm = 0;      ///< ||X'||
  double bound = 0;          ///< the right side, with ||res(X)|| from above
  double gamma = 1;
  double beta = 0;         ///< beta'
  double logit_range = 0;  ///< max_i d^-1/2 r_i

  /// Whether the lemma behind the theorem may be used: |E_ij - E_ij'| <= 1.256, scaled.
  bool assumption_holds() const { return logit_range <= kLargestRange; }
  static constexpr double kLargestRange = 1.256;
};

/// keys: W_K^(0), the queries', to W_K^(N), each [C, d]; values: W_V^(1) .. W_V^(N), each [C, Dv];
/// tokens: X [n, C]. Product form and values, softmax, logits over sqrt(d), no mask, no skip. With
/// `output` [Dv, E], a head's slice of an output projection, X' is multiplied by it and the bound
/// by its norm (an extension of the theorem). Computed in float64 on the CPU. O(n^(2N+1)) for
/// gamma: for few tokens.
NSIMPLEX_API CollapseBound collapse_bound(at::TensorList keys, at::TensorList values,
                                          const at::Tensor& tokens,
                                          const std::optional<at::Tensor>& output = std::nullopt);

/// exp(-sum_i p_i log p_i) of the singular values' shares p = s / sum s: [..], from 1, where all
/// tokens are multiples of one, to min(n, d); 0 where all are 0.
///
/// Source: Roy and Vetterli, "The effective rank: a measure of effective dimensionality".
NSIMPLEX_API at::Tensor effective_rank(const at::Tensor& tokens);

/// Mean of the cosines of all pairs of different tokens: [..], 1 where all point the same way. A
/// token 0 has cosine 0 with all others; NaN for less than two tokens. O(n d).
NSIMPLEX_API at::Tensor mean_cosine(const at::Tensor& tokens);

/// 1/n sum_i sum_j ||x_i - x_j||^2 over all pairs of tokens: [..]. O(n d).
///
/// Source: Rusch et al., "A survey on oversmoothing in graph neural networks", with all nodes
/// neighbours of each other.
NSIMPLEX_API at::Tensor dirichlet_energy(const at::Tensor& tokens);

}  // namespace nsimplex
