// A transformer over the features of a table.

#pragma once

#include <nsimplex/layers.h>
#include <torch/nn/modules/embedding.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nsimplex {

/// How the tokens of a feature transformer attend to one another: softmax over pairs; performer in
/// linear time, with random features of the softmax kernel; or simplicial over tuples of `order`
/// keys, with determinants.
enum class FeatureBackbone { softmax, performer, simplicial };

/// How a measured value becomes a vector.
///
///     bins      a row of a code book; the value is the number of its bin, 0 .. bins
///     linear    x w + b
///     periodic  W [sin 2 pi c x, cos 2 pi c x], c learned  (Gorishniy et al., arXiv 2203.05556)
///     general   the output of a trained transformer without encodings, see set_general()
enum class FeatureValues { bins, linear, periodic, general };

/// How a token is told which feature it is.
///
///     none        not at all
///     sinusoidal  adds fixed sines and cosines of the column's number
///     learned     adds a learned vector per column
///     additive    adds a given table [M, D], see set_table()
///     relative    Transformer-XL's four terms, of the difference of column numbers (paper, F.110)
///     rotary      rotates queries and keys by given angles, see set_table() (Eq. 24 to 26)
enum class FeatureEncoding { none, sinusoidal, learned, additive, relative, rotary };

/// How tokens are combined into an observation: mean or maximum of its features, or the extra
/// token.
enum class FeatureAggregate { mean, max, cls };

struct FeatureTransformerOptions {
  int64_t features = 0;  ///< M, columns of the table
  int64_t dim = 64;      ///< D
  int64_t heads = 4;     ///< H; simplicial: D / H a multiple of order + 1
  int64_t layers = 2;
  int64_t hidden = 0;  ///< width of the MLPs; 0: 4 D
  FeatureBackbone backbone = FeatureBackbone::softmax;
  int64_t order = 2;  ///< N of simplicial
  FeatureValues values = FeatureValues::bins;
  int64_t bins = 5;  ///< besides bin 0, of values that are zero
  FeatureEncoding encoding = FeatureEncoding::none;
  bool identity = false;       ///< adds a learned vector per feature, with any encoding
  bool learned_scale = false;  ///< rotary: angles times a learned number per head, initially 1
  FeatureAggregate aggregate = FeatureAggregate::cls;
  int64_t outputs = 0;  ///< of predict(): number of classes or targets; 0: none
};

/// Names of feature_preset().
NSIMPLEX_API const std::vector<std::string>& feature_preset_names();

/// Shapes of the two models to which the paper below adds its encodings. Set features, encoding and
/// outputs yourself.
///
///     paper-scbert  D = 200, performer, 6 layers of 10 heads, 5 bins
///     paper-scgpt   D = 512, softmax, 4 layers of 8 heads, 51 bins
///
/// D, the backbones and scGPT's layers and heads are from the paper. scBERT's layers and heads are
/// those of its published model, whose heads are 64 wide instead of D / H = 20. MLPs are 4 D wide
/// here. InputError for an unknown name.
NSIMPLEX_API FeatureTransformerOptions feature_preset(const std::string& name);

/// The number of planes that rotate in a head of the model: D / 2H, or for simplicial
/// floor((N + 1) / 2) in each chunk of N + 1 channels. A table of angles has this number of
/// columns, or H times as many.
NSIMPLEX_API int64_t feature_planes(const FeatureTransformerOptions& options);

/// The table of the encoding, shared by all attention layers of a feature transformer.
class NSIMPLEX_API FeaturePositionsImpl : public torch::nn::Module {
 public:
  explicit FeaturePositionsImpl(const FeatureTransformerOptions& options);

  /// See FeatureTransformer::set_table().
  void set_table(const at::Tensor& table);
  const at::Tensor& table() const { return table_; }

  /// Radians [1 + M, H or 1, planes], times the learned scale; zeros for the extra token.
  at::Tensor angles() const;

  void reset_parameters();

 private:
  FeatureTransformerOptions options_;
  at::Tensor table_, scale_;
};
TORCH_MODULE(FeaturePositions);

/// Self-attention among the tokens of a FeatureTransformer. Projections are those of
/// SimplicialAttention. Relative encodings also have the parameters `relative.weight` [D, D],
/// `content_bias` and `position_bias` [H, D / H].
class NSIMPLEX_API FeatureAttentionImpl : public SimplicialAttentionImpl {
 public:
  /// `seed` is for the random features of a performer.
  FeatureAttentionImpl(const FeatureTransformerOptions& options, FeaturePositions positions,
                       int64_t seed);

  at::Tensor forward(const at::Tensor& x, at::TensorList contexts = {},
                     const std::optional<at::Tensor>& key_lengths = std::nullopt) override;

  void reset_parameters(const Initialization& init = {}) override;

 private:
  at::Tensor turned(const at::Tensor& heads) const;
  at::Tensor perform(const std::vector<at::Tensor>& parts) const;
  at::Tensor attend_relatively(const std::vector<at::Tensor>& parts);

  FeatureTransformerOptions model_;
  FeaturePositions positions_;  // owned by the model and registered there
  int64_t seed_;
  torch::nn::Linear relative_{nullptr};
  at::Tensor content_bias_, position_bias_;
};
TORCH_MODULE(FeatureAttention);

/// A transformer over the features of one observation. Every column of a table is a token. An
/// encoding, which may be learned from causal structure, identifies the column.
///
///     t_0 = <cls>,  t_j = value(x_j) (+ identity_j) (+ encoding_j)        j = 1 .. M
///     hidden = norm(blocks(t))                                            [B, 1 + M, D]
///
/// Blocks are those of TransformerBlock with gelu. Attention is unmasked. softmax and performer use
/// one key axis, simplicial uses N with the determinant form. Its logits depend only on differences
/// of angles, like those of the dot product. performer rotates the features of the numerator only,
/// like RoFormer, so that the denominator stays positive; it does not support relative encodings.
///
/// Parameters, if they exist: `cls` [D], `mask` [D], `mark` [D], `value.*`, `identity.weight` [M,
/// D], `encoding.weight` [M, D] (learned), `positions.scale` [H], `blocks.<i>.*`, `norm.weight`
/// [D], `reconstruction.*`, `head.*`. Relative encodings also have
/// `blocks.<i>.attention.relative.weight` [D, D], `.content_bias` and `.position_bias` [H, D / H].
/// Buffer: `positions.table`.
///
/// Cost of a layer over T = 1 + M tokens: T^2 D for softmax, T D^2 / H for performer, T^(N+1) D for
/// simplicial. Relative encodings keep [B, H, T, T].
///
/// Errors: InputError for options, c10::Error for tensors, each with one line that names the
/// argument.
///
/// Source: Causality-Induced Positional Encoding for Transformer-Based Representation Learning of
/// Non-Sequential Features (arXiv 2509.16629), sections 3.1, 3.5 and F.2.
class NSIMPLEX_API FeatureTransformerImpl : public torch::nn::Module {
 public:
  explicit FeatureTransformerImpl(const FeatureTransformerOptions& options,
                                  const std::optional<at::Generator>& generator = std::nullopt);

  /// rotary: radians, [M, planes] or [M, H, planes]. additive: [M, D]. The table is copied in
  /// float32, or in float64 if the model is. Until this is called the table holds zeros.
  void set_table(const at::Tensor& table);

  /// For FeatureValues::general: the trained transformer whose hidden states of the features are
  /// used as values here. It is not trained further and is not part of the parameters.
  void set_general(std::shared_ptr<FeatureTransformerImpl> general);

  /// Observations x [B, M] (int64 bin numbers for bins, otherwise floating) -> hidden [B, 1 + M,
  /// D]. `masked`, bool [B, M]: hidden values; a learned vector replaces them. `marked`, bool [B,
  /// M]: tokens to which another learned vector is added, for example for values set by an
  /// intervention.
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& masked = std::nullopt,
                     const std::optional<at::Tensor>& marked = std::nullopt);

  /// Predicts the values: hidden [B, 1 + M, D] -> logits [B, M, 1 + bins], or values [B, M].
  at::Tensor reconstruct(const at::Tensor& hidden);

  /// Mean over the masked values of the cross entropy of their bins, or of their squared errors.
  at::Tensor reconstruction_loss(const at::Tensor& x, const at::Tensor& masked);

  /// Embeddings of the observations, hidden -> [B, D].
  at::Tensor aggregate(const at::Tensor& hidden) const;

  /// hidden -> [B, outputs], linear in aggregate().
  at::Tensor predict(const at::Tensor& hidden);

  void reset_parameters(const std::optional<at::Generator>& generator = std::nullopt);

  const FeatureTransformerOptions& options() const { return options_; }

 private:
  at::Tensor embed(const at::Tensor& x);

  FeatureTransformerOptions options_;
  at::Tensor cls_, mask_, mark_, frequencies_;
  torch::nn::Embedding codes_{nullptr}, identity_{nullptr}, encoding_{nullptr};
  torch::nn::Linear value_{nullptr}, reconstruction_{nullptr}, head_{nullptr};
  std::shared_ptr<FeatureTransformerImpl> general_;
  FeaturePositions positions_{nullptr};
  torch::nn::ModuleList blocks_{nullptr};
  RMSNorm norm_{nullptr};
};
TORCH_MODULE(FeatureTransformer);

}  // namespace nsimplex
