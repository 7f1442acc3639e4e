// Functions that choose which tuples are computed.

#pragma once

#include <nsimplex/separable_attention.h>

#include <variant>

/// Functions that choose which tuples are computed: scores of pairs, the k best keys per query, and
/// tables or lists made of these keys. Sparse attention (nsimplex/sparse_attention.h) computes the
/// chosen tuples. The options of layers that choose are here, too.
///
/// Tables of keys are int64 [B, Tq, k], or [1, Tq, k] for all batch entries, with -1 after the last
/// key of a row. Lists of tuples are (indices int64 [nnz, N], offsets int64 [B, 1, Tq + 1]): query
/// i of entry b has the rows offsets[b, 0, i] .. offsets[b, 0, i + 1] of indices.
namespace nsimplex {

/// How the pair logits of one head become scores: max(logit, 0), or exp(logit - lse), the head's
/// softmax over the admissible keys.
enum class IndexScores { relu, softmax };

struct TopkOptions {
  std::optional<at::Tensor> weights;  ///< w [B, H, Tq]; absent: ones
  IndexScores scores = IndexScores::relu;
  bool causal = false;          ///< j <= i + (T - Tq), aligned to the ends as in attention()
  std::optional<double> scale;  ///< of the logits; absent: D^-1/2
  /// [B, H, Tq], only for softmax; absent: one more pass over the keys
  std::optional<at::Tensor> lse;

  /// int64 or int32 [B]: keys at and beyond a length are not admissible. With `causal` only if
  /// T = Tq, as in attention().
  std::optional<at::Tensor> key_lengths;

  /// Admissible pairs: bool [1 or B, Tq, T] or [Tq, T], or a sparse CSR tensor [Tq, T] whose values
  /// are ignored. Only the stored pairs of a CSR tensor are scored.
  std::optional<at::Tensor> adjacency;

  /// Instead of adjacency: a table int64 [1 or B, Tq, n] of the admissible keys, without
  /// repetitions in a row; -1 is no key. Only these pairs are scored.
  std::optional<at::Tensor> candidates;
};

struct TopkKeys {
  at::Tensor indices;  ///< int64 [B, Tq, k], best first; -1 after the last admissible key
  at::Tensor scores;   ///< [B, Tq, k] float32, or float64 for float64 inputs; -inf where -1
};

/// The k best keys of every query, by pair scores summed over heads.
///
///     logit_hij = scale <query_hi, key_j>
///     s_ij      = sum_h w_hi act(logit_hij)          act: see IndexScores
///     I_i       = TopK_j s_ij over the admissible j
///
/// With a separate query and key (few channels, one key head) this is the indexer of DeepSeek
/// Sparse Attention. With q, k^(1) and lse of the previous layer it is Pappone's variant, which
/// needs no parameters. Among equal scores the lower index wins, so the result is the same for any
/// number of threads. A score that is NaN or -inf is never chosen. k > T is allowed: the columns
/// after the admissible keys are -1.
///
/// Shapes: query [B, H, Tq, D], key [B, Hk, T, D], H a multiple of Hk. dtypes: float32, float64,
/// bfloat16, float16, computed in float32 or wider. There is no gradient: see indexer_loss().
///
/// Complexity: 2 D flops for every head and admissible pair. Memory is O(T k) besides the inputs:
/// only the scores of a tile are stored. The CPU runs a SIMD kernel, except for candidates and CSR.
/// Calls without a kernel run plain ATen calls.
///
/// Errors: c10::ValueError or c10::TypeError that names the argument, also for k < 1.
///
/// Sources: DeepSeek-AI, "DeepSeek-V3.2-Exp" (2025), equation 1: relu and weights; Pappone: reuse.
NSIMPLEX_API TopkKeys topk_keys(const at::Tensor& query, const at::Tensor& key, int64_t k,
                                const TopkOptions& options = {});

/// The same function from plain ATen calls. The kernel is compared with it.
NSIMPLEX_API TopkKeys topk_keys_reference(const at::Tensor& query, const at::Tensor& key, int64_t k,
                                          const TopkOptions& options = {});

struct TupleList {
  at::Tensor indices;  ///< int64 [nnz, N]
  at::Tensor offsets;  ///< int64 [B, 1, Tq + 1]
};

/// The `count` best tuples of every query. Every tuple is scored separately:
///
///     s_iJ = sum_h w_hi max(logit_hiJ, 0)
///
/// with the logits, masks and windows of attention() for the same arguments (normalizer, sink and
/// dropout have no effect). `count` = k^N has the budget of the other selections at k. Rows are
/// best first. Among equal scores the tuple that is lower in lexicographic order wins.
///
/// It computes every logit, so it is as expensive as dense attention. Use it to measure what the
/// cheaper selections miss. It consists of plain ATen calls on any device, tile by tile, with O(T
/// count) memory.
///
/// Source: "How smoothing is N-simplicial attention?", section 2.3.
NSIMPLEX_API TupleList topk_tuples(const at::Tensor& query, at::TensorList keys, int64_t count,
                                   const std::optional<at::Tensor>& weights = std::nullopt,
                                   const AttentionOptions& options = {});

/// All tuples I_i x .. x I_i of a table [B, Tq, k] as a list, in the order of the table's columns.
NSIMPLEX_API TupleList product_list(const at::Tensor& table, int64_t order);

/// All tuples with j1 in I_i, j2 in I_{j1}, .. of a table [B, T, k] as a list. The last `queries`
/// rows belong to queries (-1: all rows).
NSIMPLEX_API TupleList path_list(const at::Tensor& table, int64_t order, int64_t queries = -1);

/// The table of a graph's neighbours, ascending: int64 [1 or B, T, largest degree]. Use it for the
/// product pattern (every j_m in N(i)) or the path pattern (walks). `self_loops` adds i to N(i) if
/// it is absent. adjacency: bool [T, T] or [B, T, T], or sparse CSR [T, T]. Entry (i, j) makes j a
/// neighbour of i.
NSIMPLEX_API at::Tensor neighbours(const at::Tensor& adjacency, bool self_loops = true);

/// The list of given hyperedges int64 [E, N + 1] over `nodes` nodes. With `permute`, each node of a
/// hyperedge becomes a query once, with the other nodes in every order as its tuples. Without it,
/// the first column is the query and the rest is its tuple. Repeated tuples count once.
NSIMPLEX_API TupleList hyperedge_list(const at::Tensor& hyperedges, int64_t nodes,
                                      bool permute = true);

struct IndexerLossOptions {
  std::optional<at::Tensor> weights;  ///< as in TopkOptions
  IndexScores scores = IndexScores::relu;
  bool causal = false;
  std::optional<double> scale;  ///< of the index logits; absent: D^-1/2
  std::optional<at::Tensor>
      lse;  ///< as in TopkOptions; absent with softmax: computed, with gradient

  /// A table of chosen keys [1 or B, Tq, k], after the warm-up. Absent: all admissible keys.
  std::optional<at::Tensor> indices;
  bool path = false;  ///< the layer attends along paths of `indices` instead of their product

  Form form = Form::product;             ///< of the attention layer
  std::optional<Scale> attention_scale;  ///< of the attention layer; absent: Scale::standard
};

/// How far an indexer's scores are from the weights of an attention layer of order N:
///
///     p_i = softmax_j(s_ij) for relu scores, s_ij / sum_j s_ij for softmax scores
///     t_i = the marginal mass that query i puts on key j, summed over axes and the other indices,
///           divided by N, averaged over heads and renormalised
///     loss = mean_i KL(t_i || p_i)
///
/// over the queries with an admissible key. j runs over all admissible keys (warm-up), or over I_i;
/// in this case the layer's softmax is taken over I_i too. Targets have no gradient, so query and
/// keys (of the layer) get none. query_index, key_index, weights and lse get gradients, once
/// differentiable.
///
/// Shapes: query_index [B, H, Tq, D'], key_index [B, H', T, D'], query [B, Hq, Tq, D], keys N of
/// [B, Hk, T, D]. The result is a scalar, float32 or float64.
///
/// Complexity: one forward of the layer per axis, with as many value channels as j has values.
/// Memory is O(T (D + k)): gradients are computed along with the forward, in chunks of queries.
///
/// Errors: c10::ValueError or c10::TypeError that names the argument.
///
/// Source: DeepSeek-AI, "DeepSeek-V3.2-Exp" (2025), equations 3 and 4, for pairs.
NSIMPLEX_API at::Tensor indexer_loss(const at::Tensor& query_index, const at::Tensor& key_index,
                                     const at::Tensor& query, at::TensorList keys,
                                     const IndexerLossOptions& options = {});

/// The share of dense attention's weight that a selection keeps, averaged over the queries that
/// attend to something: mean exp(lse_sparse - lse_dense), a scalar. This is exact, since lse is the
/// logarithm of the sum of all unnormalised weights, provided that the selected tuples are
/// admissible and distinct. Shapes: the same for both, [..].
NSIMPLEX_API at::Tensor retained_mass(const at::Tensor& sparse_lse, const at::Tensor& dense_lse);

/// The source of an indexer's queries and keys: its own projections (light), or the previous
/// attention layer (reuse).
enum class IndexSource { light, reuse };

struct IndexerOptions {
  int64_t dim = 0;         ///< C, width of the input
  int64_t heads = 4;       ///< H; for reuse, the query heads of the source
  int64_t index_dim = 32;  ///< D of light
  IndexSource source = IndexSource::light;
  IndexScores scores = IndexScores::relu;
  bool learned = false;  ///< a learned w for reuse; light always has one
  bool rotary = false;   ///< light rotates queries and keys by their positions (pairs of channels)
  double rotary_base = 10000.0;
};

// Which tuples an attention layer (nsimplex/layers.h) computes: the values of its option `select`.

/// All tuples of the k keys that an indexer scores highest, k^N per query.
struct TopK {
  std::vector<int64_t> k;  ///< one number, or N: axis m then takes the first k[m] of one ranking
  IndexerOptions indexer;  ///< dim 0: that of the layer; learned of reuse: whether loss > 0
  /// Weight of indexer_loss() in auxiliary_loss(). Without it an indexer of source light does not
  /// learn. With N numbers the loss is that of the largest k on every axis.
  double loss = 0.0;
};

/// The chains j1 in I_i, j2 in I_{j1}, .. of the k keys that an indexer scores highest.
struct Path {
  int64_t k = 0;
  IndexerOptions indexer;
  double loss = 0.0;
};

/// All tuples of a token's neighbours in a graph, deg^N per token.
struct Neighbours {
  /// bool [T, T] or [B, T, T], sparse CSR [T, T] whose values are ignored, or edges (i, j), int64
  /// [E, 2]: j is a neighbour of i. AttentionMasks::adjacency replaces it.
  std::optional<at::Tensor> adjacency;
  bool self_loops = true;  ///< every token is its own neighbour
  int64_t nodes = 0;       ///< T of a list of edges; 0: the largest node and 1
};

/// All tuples, by a separable kernel (nsimplex/separable_attention.h) instead of the softmax, in
/// time linear in the length. `scale` has no effect.
struct Linear {
  std::optional<FeatureOptions> features = FeatureOptions{};  ///< absent: q and keys are features
};

/// A part of a Union: the first tokens of the sequence or packed document.
struct Sinks {
  int64_t count = 1;
};

/// Tuples of the keys of several selections, each key once: (I_i^1 + I_i^2 + ..)^N per query. At
/// most one TopK and one Neighbours. A Window has a left end.
struct Union {
  std::vector<std::variant<Window, Sinks, Neighbours, TopK>> parts;
};

/// std::monostate: all tuples in the window.
using Select = std::variant<std::monostate, TopK, Path, Neighbours, Linear, Union>;

}  // namespace nsimplex
