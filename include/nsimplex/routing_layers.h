#pragma once

#include <nsimplex/layers.h>
#include <nsimplex/routing.h>

/// Modules that choose: keys for a sparse layer, tokens for a dense one. The Python package has the
/// same with the same parameter names (nsimplex.nn).
namespace nsimplex {

/// Where an indexer has its queries and keys from: projections of its own, or the attention layer
/// before.
enum class IndexSource { light, reuse };

struct IndexerOptions {
  int64_t dim = 0;         ///< C, width of the input
  int64_t heads = 4;       ///< H; for reuse the query heads of the source
  int64_t index_dim = 32;  ///< D of light
  IndexSource source = IndexSource::light;
  IndexScores scores = IndexScores::relu;
  bool learned = false;  ///< a learned w for reuse; light always has one
  bool rotary = false;   ///< light turns queries and keys by their positions (pairs of channels)
  double rotary_base = 10000.0;
};

/// What scores are made of: arguments of topk_keys() and indexer_loss().
struct IndexParts {
  at::Tensor query, key;
  std::optional<at::Tensor> weights, lse;
};

/// Chooses k keys a query for a sparse attention layer.
///
/// light: q = x Wq with H heads, one key head k = x Wk, w = x Ww. reuse: q, k^(1) and lse of the
/// source, detached, with w = 1, or w = x Ww where `learned`. With softmax scores w = softplus(x
/// Ww), which is not negative.
///
/// No gradient passes through the choice: the parameters learn from loss() alone, and it reaches
/// nothing but them.
///
/// Parameters: light `query.weight` [H D, C], `key.weight` [D, C], `weight.weight` [H, C]; reuse
/// none, or `weight.weight`. Options that cannot be built throw InputError.
class NSIMPLEX_API IndexerImpl : public torch::nn::Module {
 public:
  explicit IndexerImpl(const IndexerOptions& options);

  /// x [B, T, C] -> what scores are made of. While decoding keys of earlier tokens go before `key`.
  IndexParts project(const at::Tensor& x, const std::optional<ReusedPairs>& source = std::nullopt,
                     int64_t first_position = 0);

  /// The chosen keys of x. Of `options` weights, scores and lse are the indexer's own.
  TopkKeys forward(const at::Tensor& x, int64_t k, TopkOptions options = {},
                   const std::optional<ReusedPairs>& source = std::nullopt);

  /// indexer_loss() of x against the attention layer with `query` and `keys`. Of `options` weights,
  /// scores and lse are the indexer's own. The gradient reaches its parameters alone.
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
  bool allow_leak = false;                     ///< a causal layer all the same
};

/// Attention among the K tokens that a router likes best; the others pass.
///
///     s_i = <x_i, w>,  y_i = x_i + s_i f(X_chosen)_i for the K tokens of highest s, y_i = x_i else
///
/// with f the attention layer without skip. The router learns through s_i. Chosen tokens keep their
/// positions: the layer turns, masks and windows by them. K is at least 1, or a share in (0, 1] of
/// each sequence's real tokens, rounded up as decimals are (0.07 of 100 is 7, with lengths and
/// without); more than those is all of them. Padding is never chosen; equal scores go to the
/// earlier token.
///
/// It compares all tokens, so a token's fate depends on later ones: a causal layer is refused
/// unless allow_leak. Made for sets and graphs.
///
/// Parameters: `router.weight` [1, C] and `attention.*`.
///
/// Source: "How smoothing is N-simplicial attention?", section 2.3; Raposo et al., arXiv
/// 2404.02258.
class NSIMPLEX_API ExpertChoiceImpl : public torch::nn::Module {
 public:
  explicit ExpertChoiceImpl(const ExpertChoiceOptions& options);

  /// x [B, T, C] -> [B, T, C]. lengths, int64 [B]: the real tokens. adjacency, bool [T, T] or
  /// [B, T, T]: what a token may attend to.
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

}  // namespace nsimplex
