#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/export.h>

#include <cstdint>
#include <functional>
#include <vector>

/// How much a function can change its output at most: the largest singular value of its Jacobian,
/// at a point and over a ball of inputs, beside the bounds that the literature has for attention.
///
/// Everything works on any function of tensors that can be differentiated twice: an operator of
/// this library, a layer, the blocks of a model. Products with the Jacobian are taken backwards
/// (once for J^T u, twice for J v), the Jacobian itself is never formed.
namespace nsimplex {

/// A function of one or more tensors. The leading axis of the inputs and of the output counts
/// problems: entry b of the output depends on the entries b of the inputs alone.
using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// How long an ascent goes on. It ends sooner where no problem grew by more than `tolerance`,
/// relatively, in eight steps.
struct AscentOptions {
  int64_t steps = 200;
  double tolerance = 1e-9;
  double step = 0.5;  ///< first step of the inputs, as a share of the longest row of the domain
  std::function<void()> between;  ///< called before every step, to stop by an exception
};

struct JacobianNorm {
  at::Tensor value;      ///< [B]: |J v| with |v| = 1, never above the norm and growing towards it
  at::Tensor direction;  ///< v, as the input
};

/// Largest singular value of the Jacobian of `function` at x [B, ..], one a problem, with Frobenius
/// norms on both sides: power iteration on J^T J from a random direction (torch's generator).
///
/// Cost: two forward, two backward and two double backward passes a step; the value's error falls
/// as (s2/s1)^(4 steps), s1 and s2 the two largest singular values. Errors: InputError where x is
/// not floating or has no axis for problems.
NSIMPLEX_API JacobianNorm jacobian_norm(const TensorFunction& function, const at::Tensor& x,
                                        const AscentOptions& options = {});

struct LipschitzEstimate {
  at::Tensor value;  ///< [B]: |J(x) v|, a lower bound of the constant that is attained at x
  at::Tensor input, direction;
};

/// Empirical local Lipschitz constant on the token-wise ball {every row of x has norm <= radius}:
/// the largest |J(x) v| over unit v and x in the ball, by gradient ascent in x (every row projected
/// onto its ball) and power iteration in v at a time, from start [B, .., C] and a random v.
///
/// A start is one problem: take several and keep the best. The gradient is that of <u, J(x) v> with
/// u = J v / |J v|; a step that does not help is taken back and halved. Cost a step: as
/// jacobian_norm. Domain and norm are those of "How Smoothing is N-simplicial Attention?" ([S]
/// below), Definition 3.6.
NSIMPLEX_API LipschitzEstimate lipschitz_constant(const TensorFunction& function,
                                                  const at::Tensor& start, double radius,
                                                  const AscentOptions& options = {});

/// What the bounds below know of N-simplicial attention with product form, product values, softmax
/// and one head: f(X) = output_scale attention(X W_K^(0), X W_K^(m), X W_V^(m)).
struct AttentionSize {
  int64_t order = 1;        ///< N
  int64_t tokens = 1;       ///< n
  int64_t head_dim = 1;     ///< d, the contracted dimension
  double radius = 1;        ///< R: largest norm of a token
  double key_norm = 1;      ///< K: largest spectral norm of W_K^(m), m = 0..N, the query's is 0
  double value_norm = 1;    ///< V: largest spectral norm of W_V^(m), m = 1..N
  double output_scale = 1;  ///< s2, times the norm of an output projection (our extension)
};

/// Which form of the bound of Theorem 3.7 of [S] (a = sqrt(d) (K R)^(N+1)):
///
///     printed      n sqrt(2n) N V^N R^(N-1) sqrt(1 + N^2 a^2)
///     proof        n sqrt(n) N V^N R^(N-1) (1 + a), what its proof arrives at
///     all_factors  n sqrt(n) V^N R^(N-1) (N + (N + 1) a)
///
/// The third counts the query among the factors of a logit, which Lemma C.2 leaves out.
enum class LipschitzForm { printed, proof, all_factors };

/// The bound, for logits scaled by d^-1/2. Errors: InputError for a size below one or a negative
/// norm.
NSIMPLEX_API double lipschitz_bound(const AttentionSize& size,
                                    LipschitzForm form = LipschitzForm::printed);

/// Castin, Ablin and Peyre, "How smooth is attention?" (arXiv 2312.14820), for ordinary attention:
/// sqrt(3) |W_V| sqrt(|A|^2 R^4 (4n + 1) + n), A = W_K^(0) W_K^(1)T / sqrt(d), spectral norms.
NSIMPLEX_API double pair_lipschitz_bound(int64_t tokens, double radius, double form_norm,
                                         double value_norm);

}  // namespace nsimplex
