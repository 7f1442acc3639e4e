// Equivariant attention over lists of tuples, and its plans.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/equivariant_classes.h>
#include <nsimplex/graph.h>

#include <optional>
#include <vector>

namespace nsimplex {

/// How a query q and a key k of dim d give the coefficient of the key.
enum class AttentionForm {
  softmax,    ///< exp(q . k / sqrt(d))
  kernel,     ///< phi(q) . phi(k), exactly over the keys of the class, in linear time
  decoupled,  ///< the same over a larger set of keys: they may share further nodes with the query
};

/// Which part of its tuple a key depends on.
enum class AttentionKeys {
  paper,  ///< all input tuples over its nodes
  node,   ///< if query and key share a node: only the tuples (n, .., n) of the other nodes
};

/// Features phi of queries and keys x' = x / d^(1/4), with random directions W [d, features].
/// `exponential` are the positive random features of the softmax. If coefficients are normalised,
/// their exponents are shifted to avoid overflow: those of a query by their maximum, and those of
/// all keys of a graph and head by theirs. The normaliser cancels the shifts.
enum class FeatureMap {
  relu,         ///< relu(x' W) + 1e-3
  exponential,  ///< exp(x' W - |x'|^2 / 2) + 1e-30, in float64 + 1e-200
};

struct AttentionClassOptions {
  AttentionKeys keys = AttentionKeys::paper;
  /// Whether to include classes that sum over keys which share no node with the query.
  bool global = true;
};

/// A class of attention, and the number of weight matrices for its queries and its keys.
struct EquivariantAttentionClass {
  EquivariantClass own;
  int64_t query_weights = 0, key_weights = 0;
};

/// The classes of Attn_{k->l} that attend. These are the classes of L_{k->l} that sum over the
/// input (1 of 1 -> 1, 4 of 2 -> 1, 10 of 2 -> 2). The other classes are light: a look-up and a
/// learned map.
///
/// Queries and keys of a class are light layers to tuples of u distinct nodes. They have u^k
/// weights if the input is ordered (Proposition 1 of the paper).
/// the input is ordered (Proposition 1 of the paper).
///
/// Errors: those of equivariant_classes().
NSIMPLEX_API std::vector<EquivariantAttentionClass> equivariant_attention_classes(
    const TensorKind& input, const TensorKind& output, const AttentionClassOptions& options = {});

struct EquivariantAttentionPlanOptions {
  AttentionForm form = AttentionForm::softmax;  ///< a plan for `kernel` serves all three
  AttentionClassOptions classes;
  bool input_loops = true, output_loops = true;  ///< as in EquivariantPlanOptions
};

/// Which input tuples each output tuple attends to, per class. A plan is made once for two lists of
/// tuples, and every layer between them uses it in every step.
struct EquivariantAttentionPlan {
  TensorKind input, output;
  AttentionForm form = AttentionForm::softmax;
  AttentionClassOptions classes;
  int64_t input_rows = 0, output_rows = 0;  ///< m, m'

  /// The number of classes that attend, and of the matrices of all their queries and keys.
  int64_t class_count = 0, query_weights = 0, key_weights = 0;

  /// As the operators take them. The last one is a fingerprint: modified plans are refused.
  std::vector<at::Tensor> tensors;
  std::vector<int64_t> parts;  ///< the meaning of `tensors`

  NSIMPLEX_API EquivariantAttentionPlan to(at::Device device) const;
};

/// Makes the plan of attention from features of `input` to features of `output`, two lists over the
/// same nodes. It takes O(C (m + m')) time and memory for the look-ups of all classes, with radix
/// sorts and merges.
///
/// Errors: c10::ValueError for lists over different nodes, for an undirected tuple with a repeated
/// node if the options exclude loops, or for orders beyond those of equivariant_classes().
NSIMPLEX_API EquivariantAttentionPlan
equivariant_attention_plan(const TupleBatch& input, const TupleBatch& output,
                           const EquivariantAttentionPlanOptions& options = {});

/// Weights of attention from C to D channels. There are H heads with d channels in queries and keys
/// and e in values. The classes are those of equivariant_attention_classes(), in their order.
struct EquivariantAttentionWeights {
  at::Tensor query;       ///< [sum of query_weights, C, H d]
  at::Tensor query_bias;  ///< [classes, H d]
  at::Tensor key;         ///< [sum of key_weights, C, H d]
  at::Tensor key_bias;    ///< [classes, H d]
  at::Tensor value;       ///< [classes, C, H e]
  at::Tensor output;      ///< [classes, H e, D]
};

struct AttentionFormOptions {
  int64_t heads = 1;
  AttentionForm form = AttentionForm::softmax;
  bool normalise = true;                 ///< divide by the sum of a class's coefficients
  std::optional<at::Tensor> directions;  ///< W [d, features] of the kernel forms
  FeatureMap features = FeatureMap::relu;
};

/// Attention over the classes of Attn_{k->l} that sum over the input, on lists of tuples. For every
/// output tuple j
///
///     y_j = sum_h sum_mu  sum_{i: (i, j) in mu} s(q_j, k_i) / Z_j  x_i w^V_{h,mu} w^O_{h,mu}
///
/// Here s is the form, q and k are the queries and keys of head and class, and Z_j is the sum of s
/// if `normalise` is set, else 1. A class without an admissible key contributes exactly 0, with
/// gradient 0. With `normalise` and constant features the layer cannot count keys, so degrees must
/// be given as features.
///
/// x [m, C] is in the order of the input list, floating. The result is [m', D] in the order of the
/// output list. Differentiable any number of times. The backward pass computes queries, keys and
/// values again, so only x and the weights are kept.
///
/// Complexity: softmax visits every pair once and keeps O(rows). The kernel form takes O(features
/// e) for each of C look-ups of every tuple. Sums over a class are differences of sums over groups
/// of tuples that share some nodes; they are computed in double. Groups of at most 32 keys are
/// visited pair by pair. The kernels' results do not depend on the number of threads. torch's
/// matrix products around them may, in the last bit.
///
/// Errors: c10::ValueError or c10::TypeError that names the argument.
///
/// Sources: Kim, Oh and Hong, arXiv 2110.14416, equations 10, 13 and 16; Choromanski et al., arXiv
/// 2009.14794, for the features.
NSIMPLEX_API at::Tensor equivariant_attention(const at::Tensor& x,
                                              const EquivariantAttentionWeights& weights,
                                              const EquivariantAttentionPlan& plan,
                                              const AttentionFormOptions& options = {});

/// Random directions W [dim, features], orthogonal within blocks of dim columns: columns of random
/// orthogonal matrices, scaled to the lengths of normal vectors.
///
/// Source: Choromanski et al., arXiv 2009.14794, section 2.4.
NSIMPLEX_API at::Tensor orthogonal_directions(
    int64_t dim, int64_t features, const std::optional<at::Generator>& generator = std::nullopt,
    const at::TensorOptions& options = {});

}  // namespace nsimplex
