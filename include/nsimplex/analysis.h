// Diagnostics of attention: collapse, Lipschitz constants, sensitivity, masks and trained models.

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

/// Diagnostics that measure how far tokens have collapsed into one. The input is X [.., n, d], one
/// row per token, and every batch entry is measured separately. Inputs are float32 or float64 and
/// are computed in float64. All functions except minimal_residual() are differentiable and run on
/// every device.
///
/// Errors are c10::ValueError or c10::TypeError. Their message is one line that names the argument,
/// the expectation and the value.
namespace nsimplex {

/// ||X||_{1,inf} = sqrt(||X||_1 ||X||_inf), where ||X||_1 is the largest absolute column sum and
/// ||X||_inf the largest absolute row sum. The result is [..], float64. This is not a norm: it is
/// neither convex nor subadditive. O(n d).
///
/// Source: Dong et al., "Attention is not all you need: Pure attention loses rank doubly
/// exponentially with depth".
NSIMPLEX_API at::Tensor composite_norm(const at::Tensor& tokens);

/// X - 1 mean(X)^T, [.., n, d], float64. Its composite_norm() is an upper bound of the smallest
/// residual and is cheap enough for monitoring.
NSIMPLEX_API at::Tensor mean_residual(const at::Tensor& tokens);

/// The smallest residual ||X - 1 u^T||_{1,inf} over u.
struct MinimalResidual {
  at::Tensor norm;    ///< [..], reached by `offset`
  at::Tensor lower;   ///< [..], a certified lower bound: no u gives a smaller value
  at::Tensor offset;  ///< u, [.., d]
};

/// Computes the minimum up to a relative gap of `tolerance`; all results are float64. It runs on
/// the CPU and has no gradients. Values that are not finite are refused. It solves a few linear
/// programmes, each with about 20 factorisations of a matrix of 2 d + n + 2 rows: 1 ms at n = d =
/// 8. It is practical for n and d up to a few hundred.
NSIMPLEX_API MinimalResidual minimal_residual(const at::Tensor& tokens, double tolerance = 1e-7);

/// Theorem 3.1 of "How Smoothing is N-simplicial Attention?" for one head and one X:
///
///     ||res(X')|| <= 4 gamma / sqrt(d) beta' ||X||^(2(N-1)) ||res(X)||^3
///     beta' = (2 max_m ||W_K^(m)||)^(N+1) (2 max_m ||W_V^(m)||)^N
///
/// All norms are ||.||_{1,inf}, and residuals are the smallest ones. gamma is the smallest number
/// with sqrt(max_i r_i sum_i r_i) <= gamma max_{j,j'} sum_i |E_ij - E_ij'|. E is the part of the
/// logits with two or more residual factors, and r_i is the range of row i. gamma is 1 if E is
/// constant in every row.
struct CollapseBound {
  double residual = 0;       ///< ||res(X)||, a lower bound of it
  double next_residual = 0;  ///< ||res(X')||, the value reached
  double next_norm = 0;      ///< ||X'||
  double bound = 0;          ///< the right side, with an upper bound of ||res(X)||
  double gamma = 1;
  double beta = 0;         ///< beta'
  double logit_range = 0;  ///< max_i d^-1/2 r_i

  /// Whether the assumption of the theorem's lemma holds: |E_ij - E_ij'| <= 1.256, scaled.
  bool assumption_holds() const { return logit_range <= kLargestRange; }
  static constexpr double kLargestRange = 1.256;
};

/// keys: W_K^(0) (of the queries) to W_K^(N), each [C, d]. values: W_V^(1) .. W_V^(N), each [C,
/// Dv]. tokens: X [n, C]. The attention has product form, product values, softmax, logits over
/// sqrt(d), no mask and no skip connection. If `output` [Dv, E] is given (one head's slice of an
/// output projection), X' is multiplied by it and the bound by its norm; this extends the theorem.
/// Computed in float64 on the CPU. gamma costs O(n^(2N+1)), so use few tokens.
NSIMPLEX_API CollapseBound collapse_bound(at::TensorList keys, at::TensorList values,
                                          const at::Tensor& tokens,
                                          const std::optional<at::Tensor>& output = std::nullopt);

/// The weights of one head, as collapse_bound() takes them.
struct CollapseHead {
  std::vector<at::Tensor> keys;    ///< W_K^(0) (the queries') .. W_K^(N), each [C, d]
  std::vector<at::Tensor> values;  ///< W_V^(1) .. W_V^(N), each [C, Dv]
  std::optional<at::Tensor> output = std::nullopt;  ///< [Dv, C]; without it Dv = C

  int64_t order() const { return static_cast<int64_t>(values.size()); }
};

/// Both sides of Corollary 3.2 of the same paper after 0, 1, .., L layers, as natural logarithms:
///
///     ||res(X^(L))|| <= ||res(X)||^(3^L)
///                       (4 gamma H / sqrt(d) beta max_t ||X^(t)||^(2(N-1)))^((3^L - 1) / 2)
///
/// gamma and beta (as beta') take maxima over all layers and heads up to the depth, H is the
/// largest number of heads of a layer, and d the smallest width of a head's keys.
struct DepthBound {
  at::Tensor residual;     ///< [L + 1], float64: log ||res(X^(t))||, reached; -inf if it is 0
  at::Tensor bound;        ///< [L + 1], float64: log of the right side; the residual for no layer
  at::Tensor norm;         ///< [L + 1], float64: ||X^(t)||
  double gamma = 0;        ///< the largest of all layers and heads
  double beta = 0;         ///< of the whole stack
  double logit_range = 0;  ///< the largest of all layers and heads

  /// Whether the assumption of Theorem 3.1 holds in every layer and head.
  bool assumption_holds() const { return logit_range <= CollapseBound::kLargestRange; }
};

/// layers: per layer its heads, all of one order. tokens: X [n, C]. The outputs of the heads of a
/// layer are added. Layers have the setting of collapse_bound(), without a norm and without skip
/// connections. `output` multiplies beta by its norm, which extends the corollary. Computed in
/// float64 on the CPU, without gradients; the result lies on the device of the tokens. O(n^(2N+1)) per head, so use few tokens. Errors:
/// c10::ValueError or c10::TypeError for heads of several orders or shapes that do not fit.
NSIMPLEX_API DepthBound depth_bound(const std::vector<std::vector<CollapseHead>>& layers,
                                    const at::Tensor& tokens);

enum class FlowMethod { euler, rk4 };

struct FlowOptions {
  int64_t steps = 100;                  ///< of equal length, at most 1,000,000
  FlowMethod method = FlowMethod::rk4;  ///< rk4: the classical Runge-Kutta method of order 4
  bool normalized = false;  ///< divides each token by its root mean square after every step
};

/// Tokens that follow dX/dt = f(X), at the times of the steps.
struct AttentionFlow {
  at::Tensor times;             ///< [steps + 1], float64
  at::Tensor tokens;            ///< [.., n, d], at the last time
  at::Tensor dirichlet_energy;  ///< [steps + 1, ..], float64
  at::Tensor largest_distance;  ///< [steps + 1, ..], float64: of two tokens
};

/// Follows dX/dt = f(X) from `tokens` [.., n, d] at t = 0 to t = `time` > 0, and measures the
/// collapse of the tokens. `function` is f, for example an attention layer without its skip
/// connection; its result has the shape of its argument. The flow runs in the dtype and on the
/// device of the tokens, without gradients. Values that overflow become infinite or NaN and are
/// kept: orders above 1 can reach infinity in finite time.
///
/// Complexity: per step one call of f with FlowMethod::euler and four with rk4, and O(n^2 d) for
/// the distances. Errors: c10::ValueError for arguments out of range or an f that changes the
/// shape. Source: "How Smoothing is N-simplicial Attention?", section 3.2.1.
NSIMPLEX_API AttentionFlow
attention_flow(const std::function<at::Tensor(const at::Tensor&)>& function,
               const at::Tensor& tokens, double time, const FlowOptions& options = {});

/// exp(-sum_i p_i log p_i), where p = s / sum s are the normalised singular values: [..]. It is 1
/// if all tokens are multiples of one token, at most min(n, d), and 0 if all tokens are 0.
///
/// Source: Roy and Vetterli, "The effective rank: a measure of effective dimensionality".
NSIMPLEX_API at::Tensor effective_rank(const at::Tensor& tokens);

/// Mean cosine over all pairs of different tokens: [..]. It is 1 if all tokens point in the same
/// direction. A zero token has cosine 0 with every other token. The result is NaN for fewer than
/// two tokens. O(n d).
NSIMPLEX_API at::Tensor mean_cosine(const at::Tensor& tokens);

/// 1/n sum_i sum_j ||x_i - x_j||^2 over all pairs of tokens: [..]. O(n d).
///
/// Source: Rusch et al., "A survey on oversmoothing in graph neural networks", for the complete
/// graph.
NSIMPLEX_API at::Tensor dirichlet_energy(const at::Tensor& tokens);

/// Masks as hypergraphs: how many layers information needs to spread under a mask. A mask is a
/// batch of tuples (i, j1, .., jN), one for every admissible tuple J of query i. These are the
/// indices of the true entries of a bool mask, or the rows of a list of sparse_attention() with
/// their query in front. In one layer i receives from j1 .. jN. Every row of an undirected batch
/// stands for all its permutations, so a graph is the mask of attention between neighbours.

struct MaskExtent {
  /// int64 [n]: the number of layers after which a node has reached all others of its mask, or -1
  /// if it never does. A node that reaches all others is a centre. A mask with a centre is
  /// quasi-strongly connected.
  at::Tensor eccentricities;
  at::Tensor loops;  ///< bool [n]: the node is target and source of the same tuple
  at::Tensor radii;  ///< int64 [B]: the least eccentricity of a centre, or -1 if there is none

  /// int64 [B]: the largest distance between two nodes of the 1-skeleton, or -1 if it is not
  /// connected. Nodes are neighbours in the 1-skeleton if they share a tuple, in any place and in
  /// both directions.
  at::Tensor diameters;

  /// float64 [B]: lambda_2, the second smallest eigenvalue of the skeleton's I - D^-1/2 A D^-1/2.
  /// It is 0 if the skeleton is not connected and NaN for fewer than two nodes.
  at::Tensor gaps;
};

/// Computes the radius, diameter and spectral gap of every mask of a batch.
///
/// Complexity: distances cost O(n (n + pairs of neighbours)). The eigenvalue costs O(n^3) up to 256
/// nodes. For more nodes it costs about 50 sparse factorisations if these stay thin (windows,
/// chains, trees, meshes: 0.05 s at 20,000 nodes), and otherwise as much as
/// laplacian_eigenvectors(). Masks run in parallel.
///
/// Source: "How Smoothing is N-simplicial Attention?", definitions 3.3 and 3.5 and section 3.1.
NSIMPLEX_API MaskExtent mask_extent(const TupleBatch& masks);

/// The number of layers until node i depends on node j: int64 [n, n] at [j, i]. It is 0 for i = j
/// and -1 if i never depends on j. O(n (n + pairs)) time, O(n^2) memory.
NSIMPLEX_API at::Tensor mask_distances(const TupleBatch& masks);

/// Discrete Ricci curvatures of every row of a batch of pairs, float64 [m], NaN for a loop. Edges
/// {u, v} have T triangles. Negative edges are bottlenecks.
struct EdgeCurvatures {
  at::Tensor plain;      ///< 4 - deg u - deg v (Forman)
  at::Tensor augmented;  ///< 4 - deg u - deg v + 3 T (Forman with triangles as faces)
  at::Tensor balanced;   ///< with squares too; 0 if an end has degree 1
};

/// The curvatures of every edge of a graph, an attention graph or a line_graph(), whose batch has
/// order 2. Directed pairs count as edges between their nodes; the neighbours are those of
/// adjacency(). With S the neighbours of u and of v on a square through {u, v} without a diagonal,
/// and gamma the largest number of such squares that one of them closes:
///
///     balanced = 2 / deg u + 2 / deg v - 2 + 2 T / max deg + T / min deg + S / (gamma max deg)
///
/// Complexity: O(m d^2) for degrees of d, on the CPU. Errors: c10::ValueError for tuples of another
/// length than 2. Sources: Forman, "Bochner's method for cell complexes and combinatorial Ricci
/// curvature"; for balanced, Topping et al., "Understanding over-squashing and bottlenecks on
/// graphs via curvature", definition 1; "How Smoothing is N-simplicial Attention?", appendix F.2.
NSIMPLEX_API EdgeCurvatures edge_curvatures(const TupleBatch& batch);

/// A query of attention with product form, softmax and `tuples` admissible tuples. Its logits are
/// scale <x_i W_K^(0), x_j1 W_K^(1), .., x_jN W_K^(N)>.
struct WeightSetting {
  int64_t order = 1;    ///< N
  int64_t tuples = 1;   ///< n, the number of admissible tuples of the query
  double radius = 1;    ///< R: largest norm of a token
  double key_norm = 1;  ///< K: largest spectral norm of W_K^(m), m = 0..N; m = 0 is the query's
  double scale = 1;     ///< of the logits
};

struct WeightBounds {
  double logit = 0;  ///< L, of the magnitude of every logit
  double lower = 0;  ///< of every weight of an admissible tuple
  double upper = 0;
};

/// Bounds of the entries of the attention weights:
///
///     L = scale (K R)^(N+1),   1 / (1 + (n - 1) e^(2L)) <= weight <= 1 / (1 + (n - 1) e^(-2L))
///
/// No bounds that depend on n and L alone are closer. With the largest n of all queries and the
/// largest norms of all layers, the lower one serves as the epsilon with which the proof of Theorem
/// 3.4 begins: no admissible weight is smaller. For queries and keys of your own, R is their
/// largest norm and K = 1. Errors: c10::ValueError for an order or number of tuples below 1, and
/// for numbers that are negative or not finite.
///
/// Source: "How Smoothing is N-simplicial Attention?", appendix B, with its C^2 as L.
NSIMPLEX_API WeightBounds weight_bounds(const WeightSetting& setting);

/// The influence of every token of x [B, T, C] on some tokens of function(x) [B, T', C']: the
/// Frobenius norm of d function(x)_bi / d x_bj, [B, rows, T] in the dtype of x. Entry b of the
/// output must depend on entry b of x alone. rows: indices of output tokens, rising; without it all
/// of them. mask_distances() has the number of layers that information needs.
///
/// Complexity: one forward pass, and one backward pass for each row and output channel. Errors:
/// c10::ValueError if x or the output is not [B, .., C], for an index out of range, or an output
/// without gradient. Source: "How Smoothing is N-simplicial Attention?", section 3.1; Topping et
/// al., "Understanding over-squashing and bottlenecks on graphs via curvature".
NSIMPLEX_API at::Tensor token_influence(
    const std::function<at::Tensor(const at::Tensor&)>& function, const at::Tensor& x,
    const std::optional<std::vector<int64_t>>& rows = std::nullopt);

/// How much a function can change its output: the largest singular value of its Jacobian, at a
/// point or over a ball of inputs, and the bounds that the literature gives for attention.
///
/// This works for any function of tensors that is twice differentiable: an operator of this
/// library, a layer or the blocks of a model. Products with the Jacobian use backward passes (one
/// for J^T u, two for J v). The Jacobian itself is never formed.

/// A function of one or more tensors. The leading axis of the inputs and of the output indexes
/// problems: entry b of the output depends only on the entries b of the inputs.
using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// When an ascent stops: after `steps`, or earlier if no problem grew by more than `tolerance`
/// (relative) in eight steps.
struct AscentOptions {
  int64_t steps = 200;
  double tolerance = 1e-9;
  double step = 0.5;  ///< first step of the inputs, relative to the longest row of the domain
  std::function<void()> between;  ///< called before every step; may throw to stop the ascent
};

struct JacobianNorm {
  at::Tensor value;      ///< [B]: |J v| with |v| = 1, a lower bound that grows towards the norm
  at::Tensor direction;  ///< v, shaped like the input
};

/// The largest singular value of the Jacobian of `function` at x [B, ..], one per problem, with
/// Frobenius norms of inputs and outputs. The method is power iteration on J^T J from a random
/// direction (torch's generator).
///
/// Cost: two forward, two backward and two double backward passes per step. The error of the value
/// falls as (s2/s1)^(4 steps), where s1 and s2 are the two largest singular values. Errors:
/// InputError for x that is not floating [B, ..], c10::ValueError for an output without gradient.
NSIMPLEX_API JacobianNorm jacobian_norm(const TensorFunction& function, const at::Tensor& x,
                                        const AscentOptions& options = {});

struct LipschitzEstimate {
  at::Tensor value;  ///< [B]: |J(x) v|, a lower bound of the constant, attained at x
  at::Tensor input, direction;
};

/// Empirical local Lipschitz constant on the token-wise ball {every row of x has norm <= radius}:
/// the largest |J(x) v| over unit v and x in the ball. It alternates gradient ascent in x, which
/// projects every row onto its ball, with power iteration in v. It starts from start [B, .., C] and
/// a random v.
///
/// Each start is one problem. Use several and keep the best. The gradient is that of <u, J(x) v>
/// with u = J v / |J v|. A step that does not help is taken back and halved. Each step costs as
/// much as in jacobian_norm(). Domain and norm are those of "How Smoothing is N-simplicial
/// Attention?" ([S] below), Definition 3.6.
NSIMPLEX_API LipschitzEstimate lipschitz_constant(const TensorFunction& function,
                                                  const at::Tensor& start, double radius,
                                                  const AscentOptions& options = {});

/// The sizes and norms that the bounds below need. They describe N-simplicial attention with
/// product form, product values, softmax and one head: f(X) = output_scale attention(X W_K^(0), X
/// W_K^(m), X W_V^(m)).
struct AttentionSize {
  int64_t order = 1;        ///< N
  int64_t tokens = 1;       ///< n
  int64_t head_dim = 1;     ///< d, the contracted dimension
  double radius = 1;        ///< R: largest norm of a token
  double key_norm = 1;      ///< K: largest spectral norm of W_K^(m), m = 0..N; m = 0 is the query's
  double value_norm = 1;    ///< V: largest spectral norm of W_V^(m), m = 1..N
  double output_scale = 1;  ///< s2, times the norm of an output projection (our extension)
};

/// The forms of the bound of Theorem 3.7 of [S] (a = sqrt(d) (K R)^(N+1)):
///
///     printed      n sqrt(2n) N V^N R^(N-1) sqrt(1 + N^2 a^2)
///     proof        n sqrt(n) N V^N R^(N-1) (1 + a), the result of its proof
///     all_factors  n sqrt(n) V^N R^(N-1) (N + (N + 1) a)
///
/// The third form counts the query among the factors of a logit, which Lemma C.2 omits.
enum class LipschitzForm { printed, proof, all_factors };

/// Returns the bound for logits scaled by d^-1/2. Errors: InputError for a size below one or a
/// negative norm.
NSIMPLEX_API double lipschitz_bound(const AttentionSize& size,
                                    LipschitzForm form = LipschitzForm::printed);

/// The bound of Castin, Ablin and Peyre, "How smooth is attention?" (arXiv 2312.14820), for
/// ordinary attention: sqrt(3) |W_V| sqrt(|A|^2 R^4 (4n + 1) + n) with A = W_K^(0) W_K^(1)T /
/// sqrt(d) and spectral norms.
NSIMPLEX_API double pair_lipschitz_bound(int64_t tokens, double radius, double form_norm,
                                         double value_norm);

/// Sensitivity and sharpness of attention under inf-RMS norms, after Cesista, "Sensitivity and
/// Sharpness of n-Simplicial Attention" (2025), [L] below.

/// The largest root mean square of a row: x [.., C] -> scalar. Rows run along the last axis.
NSIMPLEX_API at::Tensor inf_rms(const at::Tensor& x);

/// The largest sum of absolute values over all key axes, per query: weights of `order` key axes,
/// [.., Tq, T_1, .., T_N] -> scalar.
NSIMPLEX_API at::Tensor inf_op(const at::Tensor& weights, int64_t order);

struct SensitivityOptions {
  AscentOptions ascent;

  /// The largest root mean square of a row, one per input. If it is given, the inputs are optimised
  /// together with the perturbations, and each row is projected onto that root mean square. If it
  /// is empty, the inputs stay fixed: this is the sensitivity at a point, for example of a
  /// checkpoint.
  std::vector<double> input_rms;

  int64_t starts = 1;  ///< random directions from which each block (or pair of blocks) starts
};

struct SensitivityEstimate {
  at::Tensor value;   ///< [B], the largest over blocks and starts
  at::Tensor blocks;  ///< [blocks, B]: per input, or per pair of inputs (i <= j, in that order)
  std::vector<at::Tensor> inputs;  ///< inputs at which the value is attained, [B, ..] each
  std::vector<std::vector<at::Tensor>> directions;  ///< a, or a and b; one tensor per input
};

/// max |DF[a]| / |a|, where |a| is the sum over the inputs of their inf-RMS norms and |.| is the
/// inf-RMS norm ([L], Definition 2). The sum norm is extremal if a single input is perturbed, so
/// each input is climbed separately. The value is a lower bound of the sensitivity, attained at
/// `inputs` and `directions`.
///
/// Inputs are [B, .., C_i]. B counts problems; all other axes (heads, positions) belong to one
/// problem. Cost: two forward, two backward and two double backward passes per step, on a batch
/// that is (inputs x starts) times as large.
NSIMPLEX_API SensitivityEstimate sensitivity(const TensorFunction& function,
                                             const std::vector<at::Tensor>& inputs,
                                             const SensitivityOptions& options = {});

/// max |D2F[a, b]| / (|a| |b|) over two independent directions ([L], Definition 3). This is the
/// mixed derivative. It is maximised over a and b alternately, for every pair of inputs, including
/// pairs of the same input. Otherwise like sensitivity(), with one more derivative per pass.
NSIMPLEX_API SensitivityEstimate sharpness(const TensorFunction& function,
                                           const std::vector<at::Tensor>& inputs,
                                           const SensitivityOptions& options = {});

/// inf-RMS norms of the inputs of attention. Empty `keys` or `values` mean norms of one.
struct InputNorms {
  double query = 1;
  std::vector<double> keys, values;
};

/// Upper bounds of the sensitivity of attention(q, k_1.., v_1..) with product form and softmax, one
/// number per input in the order q, k_1.., v_1... With c1 = s1 D^((N+1)/2), c2 = s2 Dv^((N-1)/2)
/// and norms Q, K_t, V_t:
///
///     q:    c1 c2 prod K prod V
///     k_t:  c1 c2 Q prod_{s != t} K_s prod V
///     v_t:  c2 prod_{s != t} V_s
///
/// The sensitivity is at most the largest of them: 1 with Scale::unit and norms of 1 ([L], Claim
/// 9).
NSIMPLEX_API std::vector<double> sensitivity_bounds(int64_t order, int64_t head_dim,
                                                    int64_t value_dim, const Scale& scale,
                                                    const InputNorms& norms = {});

/// Upper bounds of the sharpness, one number per pair of inputs (i <= j, in that order). The inputs
/// are divided by their norms, c1 and c2 are multiplied by Q prod K and prod V, and x, y are the
/// two norms:
///
///     q or k with another of them:  c2 (c1 + 2 c1^2) / (x y)      with itself:  2 c1^2 c2 / x^2
///     q or k with v:                c1 c2 / (x y)
///     v_t with v_s:                 c2 / (x y)                    with itself:  0
///
/// The sharpness is at most the largest of them: 3 with Scale::unit and norms of 1 ([L], Claim 10).
NSIMPLEX_API std::vector<double> sharpness_bounds(int64_t order, int64_t head_dim,
                                                  int64_t value_dim, const Scale& scale,
                                                  const InputNorms& norms = {});

/// Diagnostics between the layers of a trained language model.

/// The diagnostics of one layer over a batch of texts. Tensors are float64 [B], one number per
/// text. Those that do not apply are undefined.
struct LayerReading {
  int64_t order = 0;           ///< N of its attention; 0 for the embedding
  bool attends_to_all = true;  ///< false: the layer attends to chosen tuples, or is separable

  // Of the layer's output, [T, C]; the functions above define these.
  at::Tensor residual;  ///< ||X - 1 mean(X)^T||_{1,inf}
  at::Tensor ratio;     ///< the residual over ||X||_{1,inf}
  at::Tensor effective_rank, mean_cosine, dirichlet_energy;

  // Only for layers that attend to all tuples of their windows, with the product form, softmax and
  // no augment; over queries and heads.
  at::Tensor logit_range;  ///< largest difference between two logits of a query
  at::Tensor alignment;    ///< largest |<q, k_1 o .. o k_N>| / (|q| |k_1| .. |k_N|)
  at::Tensor entropy;      ///< mean entropy of a query's weights, in nats
  /// mean of entropy over log(number of tuples); skips queries with one tuple
  at::Tensor relative_entropy;

  // Derivatives, if they are asked for.
  at::Tensor block_jacobian;      ///< largest singular value of the Jacobian of the whole block
  at::Tensor attention_jacobian;  ///< the same of the attention alone, from its normalised input
  at::Tensor sensitivity;         ///< of the same layers' operator at q, k, v; inf-RMS norms
  at::Tensor sensitivity_bound;   ///< its bound, for its scales and the norms of its q, k and v
};

struct ModelReadingOptions {
  bool jacobians = true, sensitivities = true;
  AscentOptions ascent = {.steps = 30, .tolerance = 1e-4};
  std::function<void(int64_t)> layer_done;  ///< called after each layer, with its number
};

/// Reads the embedding and every layer over tokens [B, T] and returns layers + 1 readings. The
/// model is not changed. Run it in float64 (model->to(at::kDouble)). Derivatives are taken at the
/// hidden states of the texts by power iteration; they are lower bounds, see jacobian_norm() and
/// sensitivity(). The choice of tuples is held fixed.
///
/// Cost: the weights of all tuples of one text at a time, at most kMaxAttentionWeights
/// (c10::ValueError beyond). Derivatives cost about ten forward passes per step, through the
/// reference.
NSIMPLEX_API std::vector<LayerReading> read_layers(LanguageModel& model, const at::Tensor& tokens,
                                                   const ModelReadingOptions& options = {});

}  // namespace nsimplex
