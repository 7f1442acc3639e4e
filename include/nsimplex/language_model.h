// A decoder-only language model with N-simplicial attention.

#pragma once

#include <nsimplex/sparse_layers.h>
#include <torch/nn/modules/embedding.h>

#include <map>
#include <string>

namespace nsimplex {

/// Which tuples the simplicial layers compute: those of their windows, those of keys that an
/// indexer chooses (topk: I_i x .. x I_i, path: j1 in I_i, j2 in I_{j1}, ..), or all of them as
/// sums of separable features.
enum class Sparsity { window, topk, path, linear };

/// Shape of a decoder-only language model. Every `every`-th block has a simplicial layer of order
/// `order`; all others have ordinary attention. 4 is the published 3:1 interleave, 0 means no
/// simplicial layer.
struct LanguageModelOptions {
  int64_t vocabulary = 256;  ///< bytes by default
  int64_t layers = 4;
  int64_t heads = 4;
  int64_t kv_heads = 0;  ///< 0: as many as heads
  int64_t dim = 128;
  int64_t context = 64;  ///< training length; forward takes any length
  int64_t order = 2;
  int64_t every = 4;

  /// Windows of the simplicial layers, which are causal: one entry, or one per axis. Short axes
  /// first is faster. If an axis were unbounded, a token would cost context^order tuples.
  std::vector<Window> window = {Window::last(16), Window::last(256)};

  /// How the simplicial layers avoid computing context^order tuples per token. linear: separable
  /// features of all tokens so far, elu + 1; `window` is ignored then.
  Sparsity sparse = Sparsity::window;

  // For topk and path.
  int64_t topk = 64;  ///< keys chosen per query
  /// reuse: uses the previous layer, so it cannot be the first
  IndexSource indexer = IndexSource::reuse;
  IndexScores indexer_scores = IndexScores::softmax;
  double indexer_loss = 0.0;       ///< weight of the indexer's loss; at 0 `light` learns nothing
  HeadNorm norm = HeadNorm::none;  ///< of all attention layers
  ScalePreset scale = ScalePreset::standard;  ///< of the simplicial layers
  Activation mlp = Activation::swiglu;
  double mlp_ratio = 0.0;  ///< hidden / dim; 0: the activation's usual one
  bool tied = true;        ///< the embedding is also the output projection

  // Of the simplicial layers, as in SimplicialAttentionOptions.
  Form form = Form::product;
  bool rotary = false;  ///< for order >= 2, which needs form determinant; order 1 always rotates
  Normalizer normalizer = Normalizer::softmax;
  bool augment = false;  ///< a row of ones on all axes but the first
  double dropout = 0.0;

  NSIMPLEX_API bool operator==(const LanguageModelOptions&) const;
};

/// Options as text, for the header of a file or a configuration: every field and every enum value
/// by its name, a window as "left:right,left:right".
NSIMPLEX_API std::map<std::string, std::string> to_map(const LanguageModelOptions& options);

/// The inverse of to_map(). Absent fields keep their defaults. An unknown key or an unreadable
/// value throws InputError.
NSIMPLEX_API LanguageModelOptions
language_model_options(const std::map<std::string, std::string>& fields);

/// Pre-norm transformer over tokens: embedding, blocks, RMSNorm, output projection.
///
/// Positions: the ordinary layers rotate q and k (RoPE). The simplicial layers of order >= 2 get
/// none, because the product form has no rotation invariance. They see order through their causal
/// windows and through the layers below. With form determinant and `rotary` they rotate, too.
///
/// Parameters: `embedding.weight` [V, C], `blocks.<i>.*` (see TransformerBlock), `norm.weight` [C]
/// and, unless tied, `head.weight` [V, C]. Embeddings are initially normal with deviation 0.02. The
/// same generator state gives the same weights, here and in nsimplex.nn.
class NSIMPLEX_API LanguageModelImpl : public torch::nn::Module {
 public:
  explicit LanguageModelImpl(const LanguageModelOptions& options,
                             const std::optional<at::Generator>& generator = std::nullopt);

  /// tokens [B, T], int64 or int32 -> logits [B, T, V]; position t depends only on tokens 0..t.
  at::Tensor forward(const at::Tensor& tokens);

  /// Continues from the caches: the next tokens [B, t], t >= 1 -> their logits [B, t, V]. These
  /// equal, to rounding, the rows of forward(all tokens so far), however the tokens are cut, as
  /// long as no axis without a window has dropped a token. For inference only.
  at::Tensor forward(const at::Tensor& tokens, LayerCaches& caches);

  /// Empty caches, one per layer. Windows bound the simplicial layers. An axis without a window
  /// (all axes of the ordinary layers) holds `unbounded` tokens: absent: the context; -1: all. In a
  /// longer text, each such layer of a token sees the last `unbounded` tokens, at the distances of
  /// training. Through the layers below the token still depends on earlier ones.
  LayerCaches make_cache(std::optional<int64_t> unbounded = std::nullopt) const;

  /// Mean cross entropy in nats of targets [B, T] (int64; -100 is ignored) under forward(tokens),
  /// computed in fp32 or wider. While gradients are recorded, auxiliary_loss() is added.
  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& targets);

  /// The hidden states between the blocks over tokens [B, T]: the embeddings, then the output of
  /// each block, layers + 1 of [B, T, C].
  std::vector<at::Tensor> hidden_states(const at::Tensor& tokens);

  /// Block `index` of the options' layers, counted from 0.
  TransformerBlock block(int64_t index) const;

  /// Sum of the indexers' losses in the last forward(tokens); undefined if there were none.
  at::Tensor auxiliary_loss() const;

  /// Whether the layers that choose keys attend to all tuples for now (see SparseAttention).
  void set_warm_up(bool warms_up);

  /// The share of dense attention's weight on the chosen tuples, for each layer that chooses keys,
  /// in the order of the blocks. It costs a forward pass over tokens [B, T] with dense attention
  /// besides.
  std::vector<double> retained_mass(const at::Tensor& tokens);

  void reset_parameters(const std::optional<at::Generator>& generator = std::nullopt);

  const LanguageModelOptions& options() const { return options_; }

 private:
  at::Tensor embed(const at::Tensor& tokens);
  at::Tensor run(const at::Tensor& tokens, LayerCaches* caches);
  std::vector<std::shared_ptr<SparseAttentionImpl>> choosing_layers() const;

  LanguageModelOptions options_;
  torch::nn::Embedding embedding_{nullptr};
  torch::nn::ModuleList blocks_{nullptr};
  RMSNorm norm_{nullptr};
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(LanguageModel);

}  // namespace nsimplex
