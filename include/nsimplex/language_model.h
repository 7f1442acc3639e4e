// A decoder-only language model with N-simplicial attention.

#pragma once

#include <nsimplex/sparse_layers.h>
#include <torch/nn/modules/embedding.h>

#include <map>
#include <string>

namespace nsimplex {

/// Which tuples the simplicial layers compute: those of their windows, those of keys that an
/// indexer chooses (topk: I_i x .. x I_i, path: j1 in I_i, j2 in I_{j1}, ..), all of them as sums of
/// separable features (linear), or those of the keys of several parts, each key once (Union): a
/// window, the first tokens of the text, and keys that an indexer chooses.
enum class Sparsity {
  window,
  topk,
  path,
  linear,
  window_sinks,
  window_topk,
  sinks_topk,
  window_sinks_topk
};

/// Windows of a causal layer of this order: 256 keys on the last axis, 16 on the others. Short axes
/// first is faster. If an axis were unbounded, a token would cost context^order tuples.
NSIMPLEX_API std::vector<Window> default_windows(int64_t order = 2);

/// The options of a language model: type, name, default, flag of `nsimplex lm train`, meaning, and
/// the values of `sparse` with which the option has an effect (none: all). This is the one list of
/// them in C++. The fields of LanguageModelOptions follow from it, their text in files, the checks
/// of what goes with `sparse`, and the flags of the command. An option of the simplicial layers has
/// the name that it has in SimplicialAttentionOptions. A new option is added at the end. Files of
/// version 0.1 end with `tied`.
#define NSIMPLEX_LANGUAGE_MODEL_OPTIONS(OPTION)                                                    \
  OPTION(int64_t, vocabulary, 256, "", "Number of tokens; 256: bytes")                             \
  OPTION(int64_t, layers, 4, "--layers", "Blocks")                                                 \
  OPTION(int64_t, heads, 4, "--heads", "Query heads")                                              \
  OPTION(int64_t, kv_heads, 0, "--kv-heads",                                                       \
         "Key and value heads, a divisor of --heads; 0: as many")                                  \
  OPTION(int64_t, dim, 128, "--width", "Width")                                                    \
  OPTION(int64_t, context, 64, "--context", "Tokens of a training window")                         \
  OPTION(int64_t, order, 2, "--order", "Key axes N of the simplicial layers")                      \
  OPTION(int64_t, every, 4, "--every", "Every K-th layer is simplicial; 0: none")                  \
  OPTION(std::vector<Window>, window, default_windows(), "--window",                               \
         "Keys that a query sees per axis, for example 16,256", window, window_sinks, window_topk, \
         window_sinks_topk)                                                                        \
  OPTION(Sparsity, sparse, Sparsity::window, "--sparse",                                           \
         "Tuples of the simplicial layers: window, topk or path (of keys that an indexer "         \
         "chooses), linear (separable features of all keys), or parts joined by +: a window of "   \
         "one number, sinks (the first tokens) and topk")                                          \
  OPTION(int64_t, topk, 64, "--topk", "Keys per query that an indexer chooses",                    \
         NSIMPLEX_WITH_INDEXER)                                                                    \
  OPTION(IndexSource, indexer, IndexSource::reuse, "--indexer",                                    \
         "Scores of the indexer: reuse (from the previous layer) or light (from its own "          \
         "projections)",                                                                           \
         NSIMPLEX_WITH_INDEXER)                                                                    \
  OPTION(IndexScores, indexer_scores, IndexScores::softmax, "--indexer-scores",                    \
         "Function of the indexer's scores: relu or softmax", NSIMPLEX_WITH_INDEXER)               \
  OPTION(double, indexer_loss, 0.0, "--indexer-loss",                                              \
         "Weight of the indexer's loss; with 0 the indexer light learns nothing",                  \
         NSIMPLEX_WITH_INDEXER)                                                                    \
  OPTION(HeadNorm, norm, HeadNorm::none, "--norm", "RMS-normalise heads: none, qk or qkv")         \
  OPTION(ScalePreset, scale, ScalePreset::standard, "--scale",                                     \
         "Scale of the logits of the simplicial layers: standard or unit", NSIMPLEX_WITH_SOFTMAX)  \
  OPTION(Activation, mlp, Activation::swiglu, "--mlp", "Activation of the MLP: swiglu or gelu")    \
  OPTION(double, mlp_ratio, 0.0, "", "Hidden width of the MLP / dim; 0: the activation's own")     \
  OPTION(bool, tied, true, "--untied", "Do not share output weights with the embedding")           \
  OPTION(Form, form, Form::product, "--form",                                                      \
         "Scores of the simplicial layers: product or determinant, which needs a width per head "  \
         "that is a multiple of order + 1",                                                        \
         NSIMPLEX_WITH_SOFTMAX)                                                                    \
  OPTION(bool, rotary, false, "--rotary",                                                          \
         "Rotary positions in the simplicial layers, with form determinant")                       \
  OPTION(Normalizer, normalizer, Normalizer::softmax, "--normalizer",                              \
         "Normaliser of the simplicial layers: softmax, softmax_sink (a learned sink per head), "  \
         "sigmoid or relu",                                                                        \
         NSIMPLEX_WITH_SOFTMAX)                                                                    \
  OPTION(bool, augment, false, "--augment",                                                        \
         "Add a key of ones to every axis but the first of the simplicial layers", window)         \
  OPTION(double, dropout, 0.0, "--dropout",                                                        \
         "Share of tuples that the simplicial layers drop in training", window)                    \
  OPTION(std::vector<int64_t>, orders, {}, "--orders",                                             \
         "One order per query head of the simplicial layers, in place of --order: 1,1,2,2")        \
  OPTION(int64_t, sinks, 1, "--sinks", "First tokens of the text that every query sees",           \
         window_sinks, sinks_topk, window_sinks_topk)                                              \
  OPTION(TupleReduce, reduce, TupleReduce::product, "--reduce",                                    \
         "How the simplicial layers combine the values of a tuple: product, sum or mean; with "    \
         "chosen keys also mlp or mlp_symmetric, which are learned",                               \
         NSIMPLEX_WITH_SOFTMAX)                                                                    \
  OPTION(bool, face, false, "--face",                                                              \
         "One softmax per face of the tuples in the simplicial layers", window)                    \
  OPTION(Distinct, distinct, Distinct::none, "--distinct",                                         \
         "Leave out tuples that repeat a position: none, axes or with_query", window)              \
  OPTION(std::optional<double>, softcap, {}, "--softcap",                                          \
         "Cap the logits of the simplicial layers at this number by a tanh", window)               \
  OPTION(bool, unit_layer, false, "--unit-layer",                                                  \
         "Divide the output of the simplicial layers by 2 x order + 1")                            \
  OPTION(int64_t, head_dim, 0, "--head-width", "Width of a head; 0: --width / --heads")            \
  OPTION(bool, bias, false, "--bias", "Biases of the projections of all attention layers")         \
  OPTION(double, rotary_base, 10000.0, "--rotary-base", "Base of all rotary positions")

/// Values of `sparse` that choose keys by an indexer, and those that have a softmax of tuples.
#define NSIMPLEX_WITH_INDEXER topk, path, window_topk, sinks_topk, window_sinks_topk
#define NSIMPLEX_WITH_SOFTMAX window, window_sinks, NSIMPLEX_WITH_INDEXER

#define NSIMPLEX_LANGUAGE_MODEL_FIELD(type, name, initial, ...) type name = initial;

/// Shape of a decoder-only language model: NSIMPLEX_LANGUAGE_MODEL_OPTIONS. Every `every`-th block
/// has simplicial layers; all others have ordinary attention. 4 is the published 3:1 interleave.
/// `heads`, `kv_heads`, `head_dim`, `norm`, `bias` and `rotary_base` hold for all attention layers.
/// Heads of order 1 always rotate, with form determinant beside other orders only if `rotary` is set.
/// An option without effect beside `sparse` keeps its default. A model ignores other values of
/// `window`, `topk`, `indexer..` and `scale`, which commands refuse, and refuses those of the rest.
struct LanguageModelOptions {
  NSIMPLEX_LANGUAGE_MODEL_OPTIONS(NSIMPLEX_LANGUAGE_MODEL_FIELD)

  NSIMPLEX_API bool operator==(const LanguageModelOptions&) const;
};

/// Options as text, for the header of a file or a configuration: every field and every enum value
/// by its name, a window as "left:right,left:right", a list of numbers as "1,1,2", an absent number as
/// nothing.
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
  std::vector<std::shared_ptr<SimplicialAttentionImpl>> choosing_layers() const;

  LanguageModelOptions options_;
  torch::nn::Embedding embedding_{nullptr};
  torch::nn::ModuleList blocks_{nullptr};
  RMSNorm norm_{nullptr};
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(LanguageModel);

}  // namespace nsimplex
