#pragma once

#include <nsimplex/equivariant_attention.h>
#include <nsimplex/equivariant_layers.h>
#include <torch/nn/modules/normalization.h>

#include <optional>
#include <vector>

/// Layers of higher-order transformers (Kim, Oh and Hong, arXiv 2110.14416), on lists of tuples:
/// sets, graphs and hypergraphs of any order. Dense tensors are complete lists
/// (complete_tuples()). The Python package has the same modules with the same parameter names.
namespace nsimplex {

/// The random directions W [dim, features] of kernel attention: a buffer `directions`, drawn once.
/// A model has one for all its layers of one head dim, and draws it anew before every training
/// step.
class NSIMPLEX_API RandomFeaturesImpl : public torch::nn::Cloneable<RandomFeaturesImpl> {
 public:
  /// features = 0: max(1, floor(dim ln dim)).
  explicit RandomFeaturesImpl(int64_t dim, int64_t features = 0);

  void reset() override;
  void redraw(const std::optional<at::Generator>& generator = std::nullopt);
  const at::Tensor& directions() const { return directions_; }

 private:
  int64_t dim_, features_;
  at::Tensor directions_;
};
TORCH_MODULE(RandomFeatures);

struct EquivariantAttentionOptions {
  TensorKind input, output;  ///< k and l
  int64_t in_channels = 0, out_channels = 0;
  int64_t heads = 1;
  int64_t head_dim = 0;  ///< of queries, keys and values; 0: out_channels / heads
  AttentionForm form = AttentionForm::softmax;
  AttentionClassOptions classes;
  bool normalise = true;
  FeatureMap features = FeatureMap::relu;
};

/// Attn_{k->l} with all its classes: equivariant_attention(), and for those classes that do not sum
/// over the input the light layer, without a bias.
///
/// Parameters: those of EquivariantAttentionWeights as query_weight, query_bias, key_weight,
/// key_bias, value_weight, output_weight, and light.weight. Weights are normal with variance 1 / (3
/// fan_in) at first, biases zero.
///
/// Errors: c10::ValueError for orders or widths that do not fit, or a plan of other kinds.
class NSIMPLEX_API EquivariantAttentionImpl
    : public torch::nn::Cloneable<EquivariantAttentionImpl> {
 public:
  /// `features` of the kernel forms; absent: the layer's own.
  explicit EquivariantAttentionImpl(const EquivariantAttentionOptions& options,
                                    RandomFeatures features = nullptr);

  /// x [m, C] -> [m', D]. `light` is the plan of the light classes between the same lists.
  at::Tensor forward(const at::Tensor& x, const EquivariantAttentionPlan& plan,
                     const EquivariantPlan& light);

  void reset() override;
  void reset_parameters();

  const EquivariantAttentionOptions& options() const { return options_; }

 private:
  EquivariantAttentionOptions options_;
  at::Tensor query_weight_, query_bias_, key_weight_, key_bias_, value_weight_, output_weight_;
  EquivariantLinear light_ = nullptr;
  RandomFeatures features_ = nullptr;
};
TORCH_MODULE(EquivariantAttention);

/// MLP_{l->l}.
enum class MlpForm {
  automatic,    ///< lightweight up to l = 3, pointwise beyond and for loop-free tuples
  lightweight,  ///< two light layers l -> l
  pointwise,    ///< row by row, with weights of its own for every equality pattern of a tuple
};

/// A linear layer on every tuple by itself, with a matrix for every equality pattern of its entries
/// (the classes of 0 -> l): `weight` [patterns, C, D], `bias` [patterns, D].
class NSIMPLEX_API PatternLinearImpl : public torch::nn::Cloneable<PatternLinearImpl> {
 public:
  PatternLinearImpl(const TensorKind& kind, int64_t in_channels, int64_t out_channels);

  /// x [m, C] -> [m, D]; rows: of every pattern, int64, each row once.
  at::Tensor forward(const at::Tensor& x, const std::vector<at::Tensor>& rows);

  void reset() override;
  void reset_parameters();

 private:
  TensorKind kind_;
  int64_t in_channels_, out_channels_;
  at::Tensor weight_, bias_;
};
TORCH_MODULE(PatternLinear);

enum class EncoderForm {
  standard,  ///< Y = Attn(LN(A)), Enc(A) = Y + MLP(LN(Y)), GELU
  paper,     ///< Y = Attn(A), Enc(A) = Y + MLP(Y), ReLU (equations 8 and 9)
};

struct EquivariantEncoderOptions {
  EquivariantAttentionOptions attention;
  int64_t hidden = 0;  ///< of the MLP; 0: out_channels
  MlpForm mlp = MlpForm::automatic;
  double dropout = 0.0;   ///< of what attention gives, and in the MLP after both layers
  bool residual = false;  ///< adds A to Attn(..): of one list, where C = D
  EncoderForm form = EncoderForm::standard;
};

/// What an encoder looks up between two lists of tuples, made once for all layers and steps.
struct EquivariantEncoderPlan {
  EquivariantAttentionPlan attention;
  EquivariantPlan light;                 ///< the light classes k -> l
  std::optional<EquivariantPlan> mlp;    ///< of a lightweight MLP
  std::vector<at::Tensor> pattern_rows;  ///< of a pointwise one: the rows of every pattern of l

  NSIMPLEX_API EquivariantEncoderPlan to(at::Device device) const;
};

/// The plan of encoders with these options: attention's kinds, form and classes, and the MLP's form
/// count.
///
/// Errors: c10::ValueError for lists of other kinds than the options', and those of
/// equivariant_attention_plan() and equivariant_plan().
NSIMPLEX_API EquivariantEncoderPlan equivariant_encoder_plan(
    const TupleBatch& input, const TupleBatch& output, const EquivariantEncoderOptions& options);

/// Enc_{k->l}: attention and an MLP, without an identity around attention, since its light classes
/// carry the input through learned maps.
///
/// Parameters: attention.*, mlp_in.*, mlp_out.* and, in the standard form, norm_attention.*,
/// norm_mlp.*.
class NSIMPLEX_API EquivariantEncoderImpl : public torch::nn::Cloneable<EquivariantEncoderImpl> {
 public:
  explicit EquivariantEncoderImpl(const EquivariantEncoderOptions& options,
                                  RandomFeatures features = nullptr);

  /// x [m, C] -> [m', D].
  at::Tensor forward(const at::Tensor& x, const EquivariantEncoderPlan& plan);

  void reset() override;

  const EquivariantEncoderOptions& options() const { return options_; }

 private:
  at::Tensor mlp(const at::Tensor& y, const EquivariantEncoderPlan& plan);
  at::Tensor dropped(const at::Tensor& x) const;
  bool lightweight() const;

  EquivariantEncoderOptions options_;
  RandomFeatures features_ = nullptr;  // as given
  EquivariantAttention attention_ = nullptr;
  torch::nn::LayerNorm norm_attention_ = nullptr, norm_mlp_ = nullptr;
  EquivariantLinear light_in_ = nullptr, light_out_ = nullptr;
  PatternLinear pattern_in_ = nullptr, pattern_out_ = nullptr;
};
TORCH_MODULE(EquivariantEncoder);

}  // namespace nsimplex
