#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/attention.h>
#include <nsimplex/graph.h>
#include <nsimplex/language_model.h>
#include <nsimplex/version.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

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

/// Masks as hypergraphs: how far information has to go under them. A mask is a batch of tuples (i,
/// j1, .., jN), one for every admissible tuple J of query i: the indices of a bool mask's entries
/// that are true, or the rows of a list of sparse_attention() behind their query. In one layer i
/// receives from j1 .. jN. Of an undirected batch every row stands for all its orders, so a graph
/// is the mask of attention between neighbours.

struct MaskExtent {
  /// int64 [n]: layers until a node has reached all others of its mask; -1 where it never does.
  /// Nodes that reach all are centres; a mask that has one is quasi-strongly connected.
  at::Tensor eccentricities;
  at::Tensor loops;  ///< bool [n]: the node is target and source of one tuple
  at::Tensor radii;  ///< int64 [B]: the least eccentricity of a centre, -1 without one

  /// int64 [B]: the longest way between two nodes of the 1-skeleton, in which those that share a
  /// tuple are neighbours, both ways and whatever their places; -1 where it is not connected.
  at::Tensor diameters;

  /// float64 [B]: lambda_2, the second smallest eigenvalue of the skeleton's I - D^-1/2 A D^-1/2; 0
  /// where it is not connected, NaN for less than two nodes.
  at::Tensor gaps;
};

/// Radius, diameter and spectral gap of every mask of a batch.
///
/// Complexity: O(n (n + pairs of neighbours)) for the ways; for the eigenvalue O(n^3) up to 256
/// nodes, above about 50 sparse factorisations while these stay thin (windows, chains, trees,
/// meshes: 0.05 s at 20,000 nodes), else as laplacian_eigenvectors(). Masks run in parallel.
///
/// Source: "How Smoothing is N-simplicial Attention?", definitions 3.3 and 3.5 and section 3.1.
NSIMPLEX_API MaskExtent mask_extent(const TupleBatch& masks);

/// Layers from node j until i depends on it: int64 [n, n] at [j, i], 0 for j itself, -1 where it
/// never does. O(n (n + pairs)) time, O(n^2) memory.
NSIMPLEX_API at::Tensor mask_distances(const TupleBatch& masks);

/// How much a function can change its output at most: the largest singular value of its Jacobian,
/// at a point and over a ball of inputs, beside the bounds that the literature has for attention.
///
/// Everything works on any function of tensors that can be differentiated twice: an operator of
/// this library, a layer, the blocks of a model. Products with the Jacobian are taken backwards
/// (once for J^T u, twice for J v), the Jacobian itself is never formed.

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

/// Sensitivity and sharpness of attention under inf-RMS norms, after Cesista, "Sensitivity and
/// Sharpness of n-Simplicial Attention" (2025), [L] below.

/// The largest root mean square of a row: x [.., C] -> a number. Rows are along the last axis.
NSIMPLEX_API at::Tensor inf_rms(const at::Tensor& x);

/// The largest sum of absolute values over everything but the query: weights of `order` key axes,
/// [.., Tq, T_1, .., T_N] -> a number.
NSIMPLEX_API at::Tensor inf_op(const at::Tensor& weights, int64_t order);

struct SensitivityOptions {
  AscentOptions ascent;

  /// Largest root mean square of a row, one an input. Given, the inputs are optimised together with
  /// the perturbations, each row projected onto that root mean square; empty, they stay: the
  /// sensitivity at a point, of a checkpoint for example.
  std::vector<double> input_rms;

  int64_t starts = 1;  ///< random directions from which each block (pair of blocks) is climbed
};

struct SensitivityEstimate {
  at::Tensor value;   ///< [B], the largest over blocks and starts
  at::Tensor blocks;  ///< [blocks, B]: of each input, or of each pair (i <= j, in that order)
  std::vector<at::Tensor> inputs;                   ///< where the value is attained, [B, ..] each
  std::vector<std::vector<at::Tensor>> directions;  ///< a; or a and b; one tensor an input
};

/// max |DF[a]| / |a| with |a| the sum over the inputs of their inf-RMS norms and |.| inf-RMS ([L],
/// Definition 2). The sum norm is extremal where a single input is perturbed, so each is climbed by
/// itself: a lower bound of the sensitivity, attained at `inputs` and `directions`.
///
/// Inputs [B, .., C_i]; B counts problems, whatever else there is (heads, positions) is part of
/// one. Cost: two forward, two backward and two double backward passes a step, of a batch that is
/// (inputs x starts) times as large.
NSIMPLEX_API SensitivityEstimate sensitivity(const TensorFunction& function,
                                             const std::vector<at::Tensor>& inputs,
                                             const SensitivityOptions& options = {});

/// max |D2F[a, b]| / (|a| |b|) over two directions, each for itself ([L], Definition 3): the mixed
/// derivative, by climbing a and b in turns for every pair of inputs, the equal ones included. As
/// sensitivity() otherwise; one derivative more a pass.
NSIMPLEX_API SensitivityEstimate sharpness(const TensorFunction& function,
                                           const std::vector<at::Tensor>& inputs,
                                           const SensitivityOptions& options = {});

/// inf-RMS norms of the inputs of attention; no keys or values: all one.
struct InputNorms {
  double query = 1;
  std::vector<double> keys, values;
};

/// What bounds the sensitivity of attention(q, k_1.., v_1..) with product form and softmax, one
/// number an input in the order q, k_1.., v_1... With c1 = s1 D^((N+1)/2), c2 = s2 Dv^((N-1)/2),
/// norms Q, K_t, V_t:
///
///     q:    c1 c2 prod K prod V
///     k_t:  c1 c2 Q prod_{s != t} K_s prod V
///     v_t:  c2 prod_{s != t} V_s
///
/// The sensitivity is at most their largest: 1 with Scale::unit and norms of 1 ([L], Claim 9).
NSIMPLEX_API std::vector<double> sensitivity_bounds(int64_t order, int64_t head_dim,
                                                    int64_t value_dim, const Scale& scale,
                                                    const InputNorms& norms = {});

/// What bounds the sharpness, one number a pair of inputs (i <= j, in that order). With the inputs
/// divided by their norms, c1 and c2 multiplied by Q prod K and prod V, and x, y the two norms:
///
///     q or k with another of them:  c2 (c1 + 2 c1^2) / (x y)      with itself:  2 c1^2 c2 / x^2
///     q or k with v:                c1 c2 / (x y)
///     v_t with v_s:                 c2 / (x y)                    with itself:  0
///
/// The sharpness is at most their largest: 3 with Scale::unit and norms of 1 ([L], Claim 10).
NSIMPLEX_API std::vector<double> sharpness_bounds(int64_t order, int64_t head_dim,
                                                  int64_t value_dim, const Scale& scale,
                                                  const InputNorms& norms = {});

/// What goes on between the layers of a trained language model.

/// One layer over some texts. Tensors are float64 [B], one number a text; those that do not apply
/// are undefined.
struct LayerReading {
  int64_t order = 0;           ///< N of its attention; 0: the embedding
  bool attends_to_all = true;  ///< false: over chosen tuples, or separable

  // Of what it passes on, [T, C], as the functions above say.
  at::Tensor residual;  ///< ||X - 1 mean(X)^T||_{1,inf}
  at::Tensor ratio;     ///< over ||X||_{1,inf}
  at::Tensor effective_rank, mean_cosine, dirichlet_energy;

  // Of layers that attend to all tuples of their windows, over queries and heads.
  at::Tensor logit_range;       ///< largest difference of two logits of a query
  at::Tensor alignment;         ///< largest |<q, k_1 o .. o k_N>| / (|q| |k_1| .. |k_N|)
  at::Tensor entropy;           ///< of a query's weights, mean, in nats
  at::Tensor relative_entropy;  ///< over log of the number of tuples, mean; queries of one left out

  // Derivatives, where they are asked for.
  at::Tensor block_jacobian;      ///< largest singular value, of the whole block
  at::Tensor attention_jacobian;  ///< of the attention, from its normalised input
  at::Tensor sensitivity;         ///< of the operator at its q, k and v, under inf-RMS norms
  at::Tensor sensitivity_bound;   ///< for its scales and the norms of its q, k and v
};

struct ModelReadingOptions {
  bool jacobians = true, sensitivities = true;
  AscentOptions ascent = {.steps = 30, .tolerance = 1e-4};
  std::function<void(int64_t)> layer_done;  ///< called after each, with its number
};

/// Reads the embedding and every layer over tokens [B, T], layers + 1 readings. The model stays as
/// it is; run it in float64 (model->to(at::kDouble)). Derivatives are those at the hidden states of
/// the texts, by power iteration: lower bounds, see jacobian_norm() and sensitivity(). What chosen
/// tuples are chosen by is held.
///
/// Cost: the weights of all tuples of a text at a time, at most kMaxAttentionWeights,
/// c10::ValueError beyond; derivatives some ten forward passes a step, through the reference.
NSIMPLEX_API std::vector<LayerReading> read_layers(LanguageModel& model, const at::Tensor& tokens,
                                                   const ModelReadingOptions& options = {});

}  // namespace nsimplex
