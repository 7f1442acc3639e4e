// Layers with N-simplicial attention as torch::nn modules.

#pragma once

#include <nsimplex/attention.h>
#include <nsimplex/cache.h>
#include <nsimplex/routing.h>
#include <nsimplex/sparse_attention.h>
#include <nsimplex/version.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// Layers with N-simplicial attention, as `torch::nn` modules. The Python package has the same
/// modules with the same parameter names (nsimplex.nn), so weights can be moved between the two.
///
/// Symbols: B batch, T sequence length, C = dim the model width, N = order, Hq query heads, Hk
/// key/value heads, D head dim. Weights are applied as x W^T. Invalid options throw
/// nsimplex::InputError (a std::runtime_error) that names the option. Tensors of a wrong shape
/// throw c10::Error.
namespace nsimplex {

/// Which projections are RMS-normalised (per head, no gain) before attention. Only `qkv` with
/// ScalePreset::unit carries the sensitivity guarantee of Scale::unit.
enum class HeadNorm { none, qk, qkv };

enum class ScalePreset { standard, unit };

/// Initial values of a layer's weights. Every weight is normal with variance 1 / (3 fan_in), the
/// variance of torch's own Linear (0.021 for a width of 768, GPT-2's 0.02). The projection that
/// writes to the residual stream is multiplied by residual_gain. A model of L blocks passes (2
/// L)^-1/2, so that the sum of its 2 L branches starts with the variance of one.
struct Initialization {
  std::optional<at::Generator> generator;  ///< absent: torch's default generator
  double residual_gain = 1.0;
};

struct SimplicialAttentionOptions {
  int64_t dim = 0;       ///< C, width of the input and of the output
  int64_t heads = 1;     ///< Hq
  int64_t kv_heads = 0;  ///< Hk, a divisor of heads; 0: as many as heads
  int64_t head_dim = 0;  ///< D; 0: dim / heads
  int64_t order = 2;     ///< N, the number of key axes; 1 is ordinary attention

  /// Empty: every axis attends to the input itself. Otherwise N widths, one per context tensor.
  std::vector<int64_t> context_dims;

  HeadNorm norm = HeadNorm::none;
  std::variant<ScalePreset, Scale> scale = ScalePreset::standard;
  std::optional<double> softcap;  ///< as in AttentionOptions
  bool causal = false;
  std::vector<Window> window;  ///< empty: unbounded; one entry: every axis; else N entries
  Form form = Form::product;
  /// Beside chosen keys also TupleReduce::mlp and mlp_symmetric, whose weights the layer owns.
  std::variant<Reduce, TupleReduce> reduce = Reduce::product;

  /// Whether the output is divided by 2N + 1, the number of projections of x. Attention with
  /// ScalePreset::unit has sensitivity 1 to each of q, k and v. If all are projected from one x of
  /// unit RMS by matrices of RMS norm at most 1, these add up to 2N + 1, and to 1 with the factor.
  /// The operator's bounds are in Cesista, "Sensitivity and Sharpness of n-Simplicial Attention".
  bool unit_layer = false;

  /// Rotary position encoding of q and every k (nsimplex/rotary.h). The determinant form uses
  /// chunks of N + 1 channels, and its logits then depend only on relative positions. The product
  /// form uses pairs; it has this invariance for N = 1 only, so N >= 2 is refused unless
  /// allow_non_invariant is set.
  bool rotary = false;
  double rotary_base = 10000.0;
  bool allow_non_invariant = false;

  /// softmax_sink learns one logit per head, `sink`. Beside chosen keys softmax or softmax_sink.
  Normalizer normalizer = Normalizer::softmax;
  bool face = false;             ///< one softmax per face: face_attention()
  std::vector<int64_t> augment;  ///< axes with a row of ones: see attention()
  Distinct distinct = Distinct::none;
  double dropout = 0.0;  ///< share of tuples dropped in training mode
  bool bias = false;     ///< whether the projections have biases; they start at 0

  /// Which tuples are computed (nsimplex/routing.h), without window (Linear takes one), face,
  /// augment, distinct, softcap, dropout and contexts.
  Select select;

  /// Empty, or one order per head instead of `order`; the heads of a key head share one. The heads
  /// of one order are computed together, and the layer adds the outputs of the orders. Rotary
  /// positions apply to the orders that allow them, and augment to the axes that an order has. Of
  /// several windows, one per axis of the highest order, heads of order n have the last n.
  std::vector<int64_t> orders;
};

/// Which tokens a layer may attend to, besides its own causal mask and windows: the options of the
/// same names in AttentionOptions. Axes share a key mask if there is one. Beside chosen keys there
/// is one length per sequence and one key mask, and no mask of tuples or pairs.
struct AttentionMasks {
  std::optional<at::Tensor> key_lengths = std::nullopt;
  std::vector<at::Tensor> key_masks = {};  ///< one or N of bool [B, T_m]
  std::optional<at::Tensor> cu_seqlens = std::nullopt;
  std::optional<at::Tensor> mask = std::nullopt;
  std::vector<at::Tensor> pair_masks = {};

  /// For self-attention among some tokens of a sequence. int64 [B, T], rising: their positions in
  /// it, which rotary, causal mask and windows use.
  std::optional<at::Tensor> positions = std::nullopt;
  /// bool [B, T, T] or [T, T]: what each token may attend to, on every axis; Neighbours takes all
  /// its forms. Without `select`, it and a window with positions are masks of pairs on every axis.
  std::optional<at::Tensor> adjacency = std::nullopt;
};

/// Selected tokens of a sequence that attend only to one another.
struct SelectedTokens {
  /// int64 [B, T], ascending: their positions in the sequence. Rotary, causal mask and windows use
  /// them.
  at::Tensor positions;
  std::optional<at::Tensor> key_lengths;  ///< int64 [B]: how many of them are real
  /// bool [B, T, T]: what each token may attend to, on every axis. With it or a window, memory
  /// grows with the number of tuples.
  std::optional<at::Tensor> adjacency;
};

/// Tensors of a layer's attention call that an indexer reuses (nsimplex/sparse_layers.h).
struct ReusedPairs {
  at::Tensor query;                              ///< [B, Hq, T, D], with positions applied
  at::Tensor key;                                ///< k^(1), [B, Hk, T, D]
  std::optional<at::Tensor> lse = std::nullopt;  ///< [B, Hq, T], for softmax; absent: computed
};

class ExpertChoice;
class ExpertChoiceImpl;
class IndexerImpl;
struct IndexParts;
struct RouterOptions;

/// N-simplicial attention with its projections.
///
///   q = x Wq,  k^(m) = c^(m) Wk^(m),  v^(m) = c^(m) Wv^(m)      (c^(m): x, or the m-th context)
///   y = concat_heads(attention(q, k, v)) Wo                     (see nsimplex/attention.h)
///
/// Parameters: without contexts `qkv.weight` [(Hq + 2 N Hk) D, C], rows q, k1..kN, v1..vN, one head
/// after the other. With contexts `q.weight` [Hq D, C] and `kv.<m>.weight` [2 Hk D,
/// context_dims[m]], rows k, v. Always `output.weight` [C, Hq D]. With bias also the `bias` of each,
/// and with softmax_sink `sink` [Hq], initially 0. A learned reducer has `reducer_w1`,
/// `reducer_b1`, .., shaped as in TupleReduce. TopK and Path have `indexer.*` (nsimplex/
/// sparse_layers.h). With `orders`, `groups.<i>.*` are those of the heads of the i-th smallest
/// order. Cost: the projections and the operator's 4 D flop for every computed tuple and query head.
///
/// The choice of keys passes no gradient: the indexer learns only from auxiliary_loss(), which
/// affects nothing else.
class NSIMPLEX_API SimplicialAttentionImpl : public torch::nn::Module {
 public:
  explicit SimplicialAttentionImpl(const SimplicialAttentionOptions& options);

  /// x [B, T, C] -> [B, T, C]. contexts: none for self-attention, otherwise one tensor per axis,
  /// [B, T_m, context_dims[m]], of any length. key_lengths, int64 [N, B] or [B], masks the keys at
  /// and beyond a length, on each axis.
  virtual at::Tensor forward(const at::Tensor& x, at::TensorList contexts = {},
                             const std::optional<at::Tensor>& key_lengths = std::nullopt);

  /// Continues from a cache of make_cache(): x [B, t, C] holds the next t tokens of a causal
  /// self-attention, t >= 1. The result equals those rows of forward(whole sequence) to rounding.
  at::Tensor forward(const at::Tensor& x, LayerCache& cache);

  /// forward() with more masks than lengths.
  at::Tensor forward_masked(const at::Tensor& x, const AttentionMasks& masks,
                            at::TensorList contexts = {});

  /// Self-attention among selected tokens, x [B, T, C], of a longer sequence: forward_masked() with
  /// positions, key_lengths and adjacency.
  at::Tensor forward_selected(const at::Tensor& x, const SelectedTokens& tokens);

  /// An empty cache with the layer's windows. An axis without a window holds `unbounded` keys; -1:
  /// all. Linear keeps states of fixed size. The other selections keep all keys, because any token
  /// may become a chosen key, and so do distinct and face. Throws InputError for a layer that is not
  /// causal or has contexts or Neighbours.
  std::shared_ptr<LayerCache> make_cache(int64_t unbounded = -1) const;

  virtual void reset_parameters(const Initialization& init = {});

  /// Sets the layer whose pairs an indexer of source reuse scores; it stores them from now on and
  /// must run before this one in the same pass. Not owned.
  void set_source(const std::shared_ptr<SimplicialAttentionImpl>& source);

  /// Whether an indexer chooses the layer's keys, or one per order.
  bool has_indexer() const;

  /// The loss of TopK or Path times indexer_loss() of the last forward(x), summed over the orders.
  /// Undefined if gradients were not recorded or there is no such loss.
  const at::Tensor& auxiliary_loss() const { return auxiliary_loss_; }

  /// During warm-up a layer with an indexer attends to all admissible tuples, O(T^N) per query, and
  /// the indexer learns over all admissible keys.
  void set_warm_up(bool warms_up);

  /// From now on forward(x) stores retained_mass(), the share of dense attention's weight on the
  /// chosen tuples (nsimplex/routing.h), the mean over all heads. This costs dense attention
  /// besides.
  void measure_retained_mass(bool measures);
  const at::Tensor& retained_mass() const { return retained_mass_; }

  /// From now on every forward() stores its pairs, detached, for an indexer of a later layer. Those
  /// of a lower order come first.
  void keep_pairs();
  const std::optional<ReusedPairs>& pairs() const { return pairs_; }

  /// q, k1..kN, v1..vN of self-attention, [B, heads, T, D] each.
  std::vector<at::Tensor> heads_of(const at::Tensor& x, int64_t first_position = 0,
                                   const std::optional<at::Tensor>& positions = std::nullopt);

  /// The layer's options for attention(), without causal and windows.
  AttentionOptions attention_options() const;

  const SimplicialAttentionOptions& options() const { return options_; }

 protected:
  /// `name` names the layer in errors.
  SimplicialAttentionImpl(const SimplicialAttentionOptions& options, const char* name);

  at::Tensor join_heads(const at::Tensor& out);  ///< [B, Hq, T, D] -> [B, T, C]

 private:
  using Tensors = std::vector<at::Tensor>;

  void make_groups();
  std::vector<std::shared_ptr<SimplicialAttentionImpl>> groups() const;
  void gather_groups();  ///< what their last forward() stored becomes this layer's
  void make_projections();
  void make_indexer();
  void make_reducer();
  void check_input(const at::Tensor& x) const;
  Tensors project_self(const at::Tensor& x, int64_t first_position = 0,
                       const std::optional<at::Tensor>& positions = std::nullopt);
  Tensors project_contexts(const at::Tensor& x, at::TensorList contexts);
  /// Stores q and k^(1) of heads_of(), and lse if it is over the pairs themselves.
  void leave_pairs(const Tensors& heads, const std::optional<at::Tensor>& lse = std::nullopt);
  Scale scale() const;  ///< the factors that the options imply
  AttentionOutput attend_to_window(const Tensors& heads, const AttentionMasks& masks,
                                   bool with_sink = true) const;

  // A separable kernel.
  Tensors features_of(Tensors heads) const;
  at::Tensor attend_linearly(const at::Tensor& x, const AttentionMasks& masks);

  // Chosen keys. Tables are int64 [1 or B, Tq, k], -1 after the last key.
  std::optional<IndexParts> index_of(const at::Tensor& x, int64_t first_position,
                                     const std::optional<at::Tensor>& positions) const;
  at::Tensor choose(const IndexParts& index, const AttentionMasks& masks) const;
  at::Tensor graph_table(const Neighbours& part, const AttentionMasks& masks, int64_t length) const;
  at::Tensor fixed_table(const std::variant<Window, Sinks, Neighbours, TopK>& part,
                         const at::Tensor& queries, int64_t length,
                         const AttentionMasks& masks) const;
  Tensors tables_of(const std::optional<IndexParts>& index, const at::Tensor& queries,
                    int64_t length, const AttentionMasks& masks) const;
  at::Tensor alignment_loss(const std::optional<IndexParts>& index, const Tensors& heads,
                            const std::optional<at::Tensor>& chosen, bool path,
                            const AttentionMasks& masks) const;
  AttentionOutput attend_to_tables(const Tensors& heads, const Tensors& tables) const;
  at::Tensor attend_to_chosen(const at::Tensor& x, const AttentionMasks& masks);
  at::Tensor warm_up(const IndexParts& index, const Tensors& heads, const at::Tensor& queries,
                     AttentionMasks masks);
  at::Tensor continue_chosen(const at::Tensor& x, LayerCache& cache);

  void require_cacheable() const;
  /// How many keys a cache holds per axis: the window, or `unbounded` if there is none.
  std::vector<int64_t> cache_window(int64_t unbounded) const;

  std::string at_;  ///< "[NAME] ", before messages
  SimplicialAttentionOptions options_;
  bool keeps_pairs_ = false, warms_up_ = false, measures_mass_ = false;
  std::optional<ReusedPairs> pairs_;
  at::Tensor auxiliary_loss_, retained_mass_;
  torch::nn::Linear qkv_{nullptr}, q_{nullptr}, output_{nullptr};
  torch::nn::ModuleList kv_{nullptr}, groups_{nullptr};
  at::Tensor sink_;   ///< [Hq], or undefined
  Tensors reducer_;   ///< weights of a learned reducer
  at::Tensor graph_;  ///< table of Neighbours::adjacency, or undefined
  std::shared_ptr<IndexerImpl> indexer_;
  IndexScores index_scores_ = IndexScores::relu;
  double loss_weight_ = 0.0;
  std::weak_ptr<SimplicialAttentionImpl> source_;
};
TORCH_MODULE(SimplicialAttention);

/// y = x / sqrt(mean(x^2) + eps) * weight over the last axis. Parameter: `weight` [dim], initially
/// ones.
class NSIMPLEX_API RMSNormImpl : public torch::nn::Module {
 public:
  explicit RMSNormImpl(int64_t dim, double eps = 1e-6);
  at::Tensor forward(const at::Tensor& x);
  void reset_parameters();

 private:
  double eps_;
  at::Tensor weight_;
};
TORCH_MODULE(RMSNorm);

enum class Activation { swiglu, gelu };

struct FeedForwardOptions {
  int64_t dim = 0;
  int64_t hidden = 0;  ///< 0: 8/3 dim (swiglu) or 4 dim (gelu), rounded up to a multiple of 8
  Activation activation = Activation::swiglu;
};

/// The block's MLP: swiglu y = (silu(x Wg) * (x Wu)) Wd, or gelu y = gelu(x Wu) Wd (exact gelu).
/// Parameters: `up.weight` [2 hidden, dim] with rows Wg, Wu (gelu: [hidden, dim]), `down.weight`
/// [dim, hidden]. No biases.
class NSIMPLEX_API FeedForwardImpl : public torch::nn::Module {
 public:
  explicit FeedForwardImpl(const FeedForwardOptions& options);
  at::Tensor forward(const at::Tensor& x);
  void reset_parameters(const Initialization& init = {});

  const FeedForwardOptions& options() const { return options_; }

 private:
  FeedForwardOptions options_;
  torch::nn::Linear up_{nullptr}, down_{nullptr};
};
TORCH_MODULE(FeedForward);

struct TransformerBlockOptions {
  SimplicialAttentionOptions attention;
  FeedForwardOptions mlp;  ///< dim 0: that of the attention
};

/// Pre-norm block: h = x + attention(norm(x)), y = h + mlp(norm(h)). Children: `attention_norm`,
/// `attention`, `mlp_norm`, `mlp`. The attention may be an ExpertChoice (nsimplex/sparse_layers.h),
/// which adds its change to x.
class NSIMPLEX_API TransformerBlockImpl : public torch::nn::Module {
 public:
  explicit TransformerBlockImpl(const TransformerBlockOptions& options);

  /// A block around any attention layer for self-attention.
  TransformerBlockImpl(SimplicialAttention attention, FeedForwardOptions mlp);

  /// A block whose attention works among the tokens that a router chooses.
  TransformerBlockImpl(const ExpertChoice& attention, FeedForwardOptions mlp);

  at::Tensor forward(const at::Tensor& x, at::TensorList contexts = {},
                     const std::optional<at::Tensor>& key_lengths = std::nullopt);

  at::Tensor forward_masked(const at::Tensor& x, const AttentionMasks& masks,
                            at::TensorList contexts = {});

  /// With the attention's cache: see SimplicialAttention.
  at::Tensor forward(const at::Tensor& x, LayerCache& cache);
  std::shared_ptr<LayerCache> make_cache(int64_t unbounded = -1) const;

  /// Among selected tokens, with the attention's forward_selected().
  at::Tensor forward_selected(const at::Tensor& x, const SelectedTokens& tokens);

  /// forward_selected(x) - x, computed without x in the sums.
  at::Tensor change_selected(const at::Tensor& x, const SelectedTokens& tokens);

  /// Puts an ExpertChoice around the block's attention. Its router starts with new weights from
  /// `generator`, on the device and in the dtype of the block.
  void choose_tokens(const RouterOptions& router,
                     const std::optional<at::Generator>& generator = std::nullopt);

  void reset_parameters(const Initialization& init = {});

  int64_t dim() const { return mlp_->options().dim; }

  /// The attention layer, which an ExpertChoice may wrap. Empty if that wraps another module.
  const SimplicialAttention& attention() const { return attention_; }

  /// The input that forward(x) passes to the attention: x, normalised.
  at::Tensor attention_input(const at::Tensor& x) { return attention_norm_->forward(x); }

 private:
  void add_parts(int64_t dim, FeedForwardOptions mlp);
  at::Tensor attend(const at::Tensor& x, const AttentionMasks& masks, at::TensorList contexts);
  at::Tensor add_branches(const at::Tensor& x, const at::Tensor& attended);

  RMSNorm attention_norm_{nullptr}, mlp_norm_{nullptr};
  SimplicialAttention attention_{nullptr};
  std::shared_ptr<ExpertChoiceImpl> choice_;  ///< around attention_, or null
  FeedForward mlp_{nullptr};
};
TORCH_MODULE(TransformerBlock);

}  // namespace nsimplex
