#pragma once

#include <nsimplex/layers.h>
#include <nsimplex/routing.h>
#include <nsimplex/sparse_attention.h>

/// Modules that choose keys for a sparse layer or tokens for a dense one. The Python package has
/// the same modules with the same parameter names (nsimplex.nn).
namespace nsimplex {

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

/// The tensors that give scores: arguments of topk_keys() and indexer_loss().
struct IndexParts {
  at::Tensor query, key;
  std::optional<at::Tensor> weights, lse;
};

/// Chooses k keys per query for a sparse attention layer.
///
/// light: q = x Wq with H heads, one key head k = x Wk, w = x Ww. reuse: q, k^(1) and lse of the
/// source, detached, with w = 1, or w = x Ww if `learned`. With softmax scores w = softplus(x Ww),
/// which is not negative.
///
/// No gradient passes through the choice. The parameters learn only from loss(), and loss() affects
/// nothing else.
///
/// Parameters: light `query.weight` [H D, C], `key.weight` [D, C], `weight.weight` [H, C]; reuse
/// none, or `weight.weight`. Invalid options throw InputError.
class NSIMPLEX_API IndexerImpl : public torch::nn::Module {
 public:
  explicit IndexerImpl(const IndexerOptions& options);

  /// x [B, T, C] -> the tensors that give scores. While decoding, put keys of earlier tokens before
  /// `key`.
  IndexParts project(const at::Tensor& x, const std::optional<ReusedPairs>& source = std::nullopt,
                     int64_t first_position = 0);

  /// The chosen keys of x. weights, scores and lse of `options` are replaced by the indexer's own.
  TopkKeys forward(const at::Tensor& x, int64_t k, TopkOptions options = {},
                   const std::optional<ReusedPairs>& source = std::nullopt);

  /// indexer_loss() of x against the attention layer with `query` and `keys`. weights, scores and
  /// lse of `options` are replaced by the indexer's own. The gradient reaches only the indexer's
  /// parameters.
  at::Tensor loss(const at::Tensor& x, const at::Tensor& query, at::TensorList keys,
                  IndexerLossOptions options = {},
                  const std::optional<ReusedPairs>& source = std::nullopt);

  void reset_parameters(const Initialization& init = {});

  const IndexerOptions& options() const { return options_; }

 private:
  IndexerOptions options_;
  torch::nn::Linear query_{nullptr}, key_{nullptr}, weight_{nullptr};
};
TORCH_MODULE(Indexer);

struct ExpertChoiceOptions {
  SimplicialAttentionOptions attention;        ///< the layer f, without contexts
  std::variant<int64_t, double> tokens = 1.0;  ///< K: a number, or a share of the real tokens
  bool sigmoid = false;                        ///< weigh by sigmoid(s_i) instead of s_i
  bool allow_leak = false;                     ///< allows a causal layer
};

/// Attention among the K tokens with the highest router scores. The other tokens pass unchanged.
///
///     s_i = <x_i, w>,  y_i = x_i + s_i f(X_chosen)_i for the K tokens of highest s, y_i = x_i else
///
/// with f the attention layer without a skip connection. The router learns through s_i. Chosen
/// tokens keep their positions, which rotary, masks and windows use. K is at least 1, or a share in
/// (0, 1] of each sequence's real tokens, rounded up in decimal (0.07 of 100 is 7, with and without
/// lengths). If K exceeds their number, all are chosen. Padding is never chosen. Among equal scores
/// the earlier token wins.
///
/// The router compares all tokens, so the choice of a token depends on later ones. A causal layer
/// is therefore refused unless allow_leak is set. The layer is made for sets and graphs.
///
/// Parameters: `router.weight` [1, C] and `attention.*`.
///
/// Source: "How smoothing is N-simplicial attention?", section 2.3; Raposo et al., arXiv
/// 2404.02258.
class NSIMPLEX_API ExpertChoiceImpl : public torch::nn::Module {
 public:
  explicit ExpertChoiceImpl(const ExpertChoiceOptions& options);

  /// x [B, T, C] -> [B, T, C]. lengths, int64 [B]: the number of real tokens. adjacency, bool [T,
  /// T] or [B, T, T]: what a token may attend to.
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& lengths = std::nullopt,
                     const std::optional<at::Tensor>& adjacency = std::nullopt);

  void reset_parameters(const Initialization& init = {});

 private:
  struct Chosen;
  Chosen choose(const at::Tensor& scores, const std::optional<at::Tensor>& lengths) const;

  ExpertChoiceOptions options_;
  torch::nn::Linear router_{nullptr};
  SimplicialAttention attention_{nullptr};
};
TORCH_MODULE(ExpertChoice);

/// How a layer chooses its tuples.
struct SelectionOptions {
  /// product: I_i x .. x I_i of the k keys chosen for query i. path: j1 in I_i, j2 in I_{j1}, ..
  TuplePattern pattern = TuplePattern::product;
  int64_t keys = 64;       ///< k
  IndexerOptions indexer;  ///< dim 0: that of the layer; heads of reuse: those of the source
  double loss_weight = 0;  ///< weight of the indexer's alignment loss; above 0, reuse learns a w
};

/// N-simplicial attention over the tuples that an indexer chooses, k^N per query.
///
/// Projections and their parameters are those of SimplicialAttention with the same options, without
/// contexts, windows and key lengths. Those of the indexer are `indexer.*` (see Indexer). The
/// choice passes no gradient: the indexer learns only from auxiliary_loss(), which affects nothing
/// else.
///
/// An indexer with source `reuse` scores the pairs of the layer given to set_source(). That layer
/// must have run before in the same pass.
class NSIMPLEX_API SparseAttentionImpl : public SimplicialAttentionImpl {
 public:
  SparseAttentionImpl(const SimplicialAttentionOptions& options, const SelectionOptions& selection);

  at::Tensor forward(const at::Tensor& x, at::TensorList contexts = {},
                     const std::optional<at::Tensor>& key_lengths = std::nullopt) override;
  at::Tensor forward_masked(const at::Tensor& x, const AttentionMasks& masks,
                            at::TensorList contexts = {}) override;

  /// With an IndexedCache.
  at::Tensor forward(const at::Tensor& x, LayerCache& cache) override;

  /// An IndexedCache that holds all tokens, whatever `unbounded` is: any of them may be chosen.
  std::shared_ptr<LayerCache> make_cache(int64_t unbounded = -1) const override;

  void reset_parameters(const Initialization& init = {}) override;

  /// Sets the layer whose pairs are reused; it stores them from now on. Not owned.
  void set_source(const std::shared_ptr<SimplicialAttentionImpl>& source);

  /// loss_weight times indexer_loss() of the last forward(x). Undefined if gradients were not
  /// recorded or the indexer has no parameters.
  const at::Tensor& auxiliary_loss() const { return auxiliary_loss_; }

  /// During warm-up the layer attends to all admissible tuples, O(T^N) per query, and the indexer
  /// learns over all admissible keys. Afterwards both use the chosen keys only.
  void set_warm_up(bool warms_up) { warms_up_ = warms_up; }

  /// From now on forward(x) stores retained_mass(), the share of dense attention's weight on the
  /// chosen tuples (nsimplex/routing.h). This costs dense attention besides.
  void measure_retained_mass(bool measures) { measures_mass_ = measures; }
  const at::Tensor& retained_mass() const { return retained_mass_; }

 private:
  IndexParts index_of(const at::Tensor& x, int64_t first_position);
  at::Tensor choose(const IndexParts& index) const;
  at::Tensor alignment_loss(const IndexParts& index, const at::Tensor& query, at::TensorList keys,
                            const std::optional<at::Tensor>& chosen) const;
  AttentionOutput attend(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                         const at::Tensor& chosen) const;
  AttentionOutput attend_to_all(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                                bool with_sink) const;

  SelectionOptions selection_;
  Indexer indexer_{nullptr};
  std::weak_ptr<SimplicialAttentionImpl> source_;
  bool warms_up_ = false, measures_mass_ = false;
  at::Tensor auxiliary_loss_, retained_mass_;
};
TORCH_MODULE(SparseAttention);

}  // namespace nsimplex
