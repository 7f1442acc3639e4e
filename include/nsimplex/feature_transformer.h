#pragma once

#include <nsimplex/layers.h>
#include <torch/nn/modules/embedding.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nsimplex {

/// How the tokens of a feature transformer attend to one another: softmax over pairs, in linear
/// time with random features of the softmax kernel (Performer), or over tuples of `order` keys by
/// determinants.
enum class FeatureBackbone { softmax, performer, simplicial };

/// What becomes of a measured value.
///
///     bins      a row of a code book; the value is the number of its bin, 0 .. bins
///     linear    x w + b
///     periodic  W [sin 2 pi c x, cos 2 pi c x], c learned  (Gorishniy et al., arXiv 2203.05556)
///     general   what a trained transformer without encodings makes of it, see set_general()
enum class FeatureValues { bins, linear, periodic, general };

/// How a token says which feature it is.
///
///     none        not at all
///     sinusoidal  fixed sines and cosines of the column's number are added
///     learned     a learned vector a column is added
///     additive    a given table [M, D] is added, see set_table()
///     relative    Transformer-XL's four terms, of the difference of column numbers (paper, F.110)
///     rotary      queries and keys turn by a given table of angles, see set_table() (Eq. 24 to 26)
enum class FeatureEncoding { none, sinusoidal, learned, additive, relative, rotary };

/// An observation from its tokens: the mean or maximum of its features, or the extra token.
enum class FeatureAggregate { mean, max, cls };

struct FeatureTransformerOptions {
  int64_t features = 0;  ///< M, columns of the table
  int64_t dim = 64;      ///< D
  int64_t heads = 4;     ///< H; simplicial: D / H a multiple of order + 1
  int64_t layers = 2;
  int64_t hidden = 0;  ///< of the MLPs; 0: 4 D
  FeatureBackbone backbone = FeatureBackbone::softmax;
  int64_t order = 2;  ///< N of simplicial
  FeatureValues values = FeatureValues::bins;
  int64_t bins = 5;  ///< besides bin 0, of values that are zero
  FeatureEncoding encoding = FeatureEncoding::none;
  bool identity = false;       ///< a learned vector a feature is added, whatever the encoding
  bool learned_scale = false;  ///< rotary: angles times a learned number a head, 1 at first
  FeatureAggregate aggregate = FeatureAggregate::cls;
  int64_t outputs = 0;  ///< of predict(): classes or targets; 0: none
};

/// Names of feature_preset().
NSIMPLEX_API const std::vector<std::string>& feature_preset_names();

/// Shapes of the two models that the paper below puts its encodings into; features, encoding and
/// outputs are left to be set.
///
///     paper-scbert  D = 200, performer, 6 layers of 10 heads, 5 bins
///     paper-scgpt   D = 512, softmax, 4 layers of 8 heads, 51 bins
///
/// The paper has D, the backbones and scGPT's layers and heads; scBERT's are those of its published
/// model, whose heads are 64 wide instead of D / H = 20. MLPs are 4 D wide here. InputError for
/// another name.
NSIMPLEX_API FeatureTransformerOptions feature_preset(const std::string& name);

/// Planes that turn in a head of the model: D / 2H, for simplicial floor((N + 1) / 2) in each chunk
/// of N + 1 channels. A table of angles has as many columns, or H times as many.
NSIMPLEX_API int64_t feature_planes(const FeatureTransformerOptions& options);

/// What all attention layers of a feature transformer share: the table of its encoding.
class NSIMPLEX_API FeaturePositionsImpl : public torch::nn::Module {
 public:
  explicit FeaturePositionsImpl(const FeatureTransformerOptions& options);

  /// See FeatureTransformer::set_table().
  void set_table(const at::Tensor& table);
  const at::Tensor& table() const { return table_; }

  /// Radians [1 + M, H or 1, planes], zeros for the extra token; times the learned scale.
  at::Tensor angles() const;

  void reset_parameters();

 private:
  FeatureTransformerOptions options_;
  at::Tensor table_, scale_;
};
TORCH_MODULE(FeaturePositions);

/// Self-attention among the tokens of a FeatureTransformer. Projections are those of
/// SimplicialAttention; relative encodings have the parameters `relative.weight` [D, D],
/// `content_bias` and `position_bias` [H, D / H] besides.
class NSIMPLEX_API FeatureAttentionImpl : public SimplicialAttentionImpl {
 public:
  /// `seed` is that of the random features of a performer.
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
  FeaturePositions positions_;  // the model's own, and registered there
  int64_t seed_;
  torch::nn::Linear relative_{nullptr};
  at::Tensor content_bias_, position_bias_;
};
TORCH_MODULE(FeatureAttention);

/// A transformer over the features of one observation: every column of a table is a token, and
/// which column it is comes in by an encoding that may be learned from causal structure.
///
///     t_0 = <cls>,  t_j = value(x_j) (+ identity_j) (+ encoding_j)        j = 1 .. M
///     hidden = norm(blocks(t))                                            [B, 1 + M, D]
///
/// Blocks are those of TransformerBlock with gelu. Attention is unmasked; softmax and performer use
/// one key axis, simplicial N of them with form determinant, whose logits depend on differences of
/// angles alone, as the dot product's do. performer turns the features of the numerator only, as
/// RoFormer does, so that the denominator stays positive; it takes no relative encoding.
///
/// Parameters, where they exist: `cls` [D], `mask` [D], `mark` [D], `value.*`, `identity.weight`
/// [M, D], `encoding.weight` [M, D] (learned), `positions.scale` [H], `blocks.<i>.*`, of relative
/// encodings also `blocks.<i>.attention.relative.weight` [D, D], `.content_bias`, `.position_bias`
/// [H, D / H], `norm.weight` [D], `reconstruction.*`, `head.*`. Buffer: `positions.table`.
///
/// Cost of a layer over T = 1 + M tokens: T^2 D, performer T D^2 / H, simplicial T^(N+1) D;
/// relative keeps [B, H, T, T].
///
/// Errors: InputError for options, c10::Error for tensors, with one line that names the argument.
///
/// Source: Causality-Induced Positional Encoding for Transformer-Based Representation Learning of
/// Non-Sequential Features (arXiv 2509.16629), sections 3.1, 3.5 and F.2.
class NSIMPLEX_API FeatureTransformerImpl : public torch::nn::Module {
 public:
  explicit FeatureTransformerImpl(const FeatureTransformerOptions& options,
                                  const std::optional<at::Generator>& generator = std::nullopt);

  /// rotary: radians, [M, planes] or [M, H, planes]; additive: [M, D]. Copied in float32 or, of a
  /// model in float64, float64. Until it is called the table holds zeros.
  void set_table(const at::Tensor& table);

  /// Of values general: the trained transformer, whose hidden states of the features are the values
  /// here. It is not trained on and not part of the parameters.
  void set_general(std::shared_ptr<FeatureTransformerImpl> general);

  /// Observations x [B, M], for bins int64 numbers of bins, else floating -> hidden [B, 1 + M, D].
  /// `masked`, bool [B, M]: values that are not shown, a learned vector in their place. `marked`,
  /// bool [B, M]: tokens that another learned vector is added to, values set by an intervention for
  /// example.
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& masked = std::nullopt,
                     const std::optional<at::Tensor>& marked = std::nullopt);

  /// What the values may be: of hidden [B, 1 + M, D] the logits [B, M, 1 + bins], or values [B, M].
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
