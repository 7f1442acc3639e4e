// Modules that choose keys for a sparse layer or tokens for a dense one.

#pragma once

#include <nsimplex/layers.h>
#include <nsimplex/routing.h>
#include <nsimplex/sparse_attention.h>

#include <functional>

/// Modules that choose keys for a sparse layer or tokens for a dense one. The Python package has
/// the same modules with the same parameter names (nsimplex.nn).
namespace nsimplex {

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
  /// `key`. positions, int64 [B, T], replaces first_position, ..
  IndexParts project(const at::Tensor& x, const std::optional<ReusedPairs>& source = std::nullopt,
                     int64_t first_position = 0,
                     const std::optional<at::Tensor>& positions = std::nullopt);

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

struct RouterOptions {
  std::variant<int64_t, double> tokens = 1.0;  ///< K: a number, or a share of the real tokens
  bool sigmoid = false;                        ///< weigh by sigmoid(s_i) instead of s_i
  bool allow_leak = false;                     ///< allows a causal layer
};

/// The router and the attention layer that it makes.
struct ExpertChoiceOptions {
  SimplicialAttentionOptions attention;  ///< the layer f, without contexts
  std::variant<int64_t, double> tokens = 1.0;
  bool sigmoid = false;
  bool allow_leak = false;
};

/// A module of the caller's for ExpertChoice.
struct Expert {
  std::shared_ptr<torch::nn::Module> module;
  int64_t dim = 0;  ///< C
  /// f: the chosen tokens x [B, K, C] -> [B, K, C], without a skip connection. `tokens` has the
  /// positions of the rows and their number per sequence; later rows are padding.
  std::function<at::Tensor(const at::Tensor& x, const SelectedTokens& tokens)> change;
  /// Draws new weights of the module.
  std::function<void(const Initialization&)> reset = [](const Initialization&) {};
};

/// A layer or block among the K tokens with the highest router scores. The other tokens pass
/// unchanged.
///
///     s_i = <x_i, w>,  y_i = x_i + s_i f(X_chosen)_i for the K tokens of highest s, y_i = x_i else
///
/// with f the layer without a skip connection, or the change that a block makes. The router learns
/// through s_i. Chosen tokens keep their positions, which rotary, masks and windows use. K is at
/// least 1, or a share in (0, 1] of each sequence's real tokens, rounded up in decimal (0.07 of 100
/// is 7, with and without lengths). If K exceeds their number, all are chosen. Padding is never
/// chosen. Among equal scores the earlier token wins.
///
/// The router compares all tokens, so the choice of a token depends on later ones. A causal layer
/// is therefore refused unless allow_leak is set, and there is no cache. The module is made for
/// sets and graphs, and for language models that score whole texts
/// (TransformerBlockImpl::choose_tokens).
///
/// Parameters: `router.weight` [1, C] and `attention.*`, those of the layer, block or module.
/// Invalid options throw InputError.
///
/// Source: "How smoothing is N-simplicial attention?", section 2.3; Raposo et al., arXiv
/// 2404.02258.
class NSIMPLEX_API ExpertChoiceImpl : public torch::nn::Module {
 public:
  explicit ExpertChoiceImpl(const ExpertChoiceOptions& options);
  ExpertChoiceImpl(SimplicialAttention layer, const RouterOptions& router);
  ExpertChoiceImpl(TransformerBlock block, const RouterOptions& router);
  ExpertChoiceImpl(Expert expert, const RouterOptions& router);

  /// x [B, T, C] -> [B, T, C]. lengths, int64 [B]: the number of real tokens. adjacency, bool [T,
  /// T] or [B, T, T]: what a token may attend to.
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& lengths = std::nullopt,
                     const std::optional<at::Tensor>& adjacency = std::nullopt);

  /// forward(x) - x. positions, int64 [B, T] and rising: the tokens' places in a longer sequence.
  at::Tensor change(const at::Tensor& x, const std::optional<at::Tensor>& lengths = std::nullopt,
                    const std::optional<at::Tensor>& adjacency = std::nullopt,
                    const std::optional<at::Tensor>& positions = std::nullopt);

  /// Throws InputError: a cache holds only earlier tokens.
  std::shared_ptr<LayerCache> make_cache() const;

  void reset_parameters(const Initialization& init = {});

  /// Draws the router's weights alone.
  void reset_router(const std::optional<at::Generator>& generator = std::nullopt);

  int64_t dim() const { return expert_.dim; }

  /// The wrapped layer, or the one of the wrapped block. Empty for another module.
  const SimplicialAttention& attention() const { return attention_; }

 private:
  struct Chosen;
  Chosen choose(const at::Tensor& scores, const std::optional<at::Tensor>& lengths) const;

  RouterOptions router_options_;
  Expert expert_;
  torch::nn::Linear router_{nullptr};
  SimplicialAttention attention_{nullptr};
};
TORCH_MODULE(ExpertChoice);

/// How SparseAttention chooses its tuples.
struct SelectionOptions {
  /// product: I_i x .. x I_i of the k keys chosen for query i. path: j1 in I_i, j2 in I_{j1}, ..
  TuplePattern pattern = TuplePattern::product;
  int64_t keys = 64;       ///< k
  IndexerOptions indexer;  ///< as in TopK
  double loss_weight = 0;  ///< weight of the indexer's alignment loss; above 0, reuse learns a w
};

/// N-simplicial attention over the tuples that an indexer chooses, k^N per query. It is
/// SimplicialAttention with `select` TopK or Path.
class NSIMPLEX_API SparseAttentionImpl : public SimplicialAttentionImpl {
 public:
  SparseAttentionImpl(const SimplicialAttentionOptions& options, const SelectionOptions& selection);
};
TORCH_MODULE(SparseAttention);

/// N-simplicial attention with a separable kernel (nsimplex/separable_attention.h) instead of the
/// softmax, in time linear in the length. It is SimplicialAttention with `select` Linear.
class NSIMPLEX_API SeparableAttentionImpl : public SimplicialAttentionImpl {
 public:
  explicit SeparableAttentionImpl(const SimplicialAttentionOptions& options,
                                  const FeatureOptions& features = {});
};
TORCH_MODULE(SeparableAttention);

}  // namespace nsimplex
