// Equivariant layers and graph layers as torch::nn modules.

#pragma once

#include <nsimplex/equivariant_attention.h>
#include <nsimplex/equivariant_linear.h>
#include <nsimplex/graph.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <optional>
#include <vector>

namespace nsimplex {

struct EquivariantLinearOptions {
  TensorKind input, output;
  int64_t in_channels = 0, out_channels = 0;
  ClassSet classes = ClassSet::all;
  Pooling pooling = Pooling::mean;
  bool bias = true;
};

/// L_{k->l}, or with ClassSet::light its lightweight form, as a module. It calls
/// equivariant_linear() and equivariant_linear_sparse(). Parameters: `weight` [classes, C, D],
/// initially normal with variance 1 / (3 classes C), and `bias` [bias classes, D], initially zero.
///
/// Errors: c10::ValueError for orders that do not fit, or a plan of other kinds or classes.
class NSIMPLEX_API EquivariantLinearImpl : public torch::nn::Cloneable<EquivariantLinearImpl> {
 public:
  explicit EquivariantLinearImpl(const EquivariantLinearOptions& options);

  /// Dense: x [B, n, .., n, C] -> [B, n, .., n, D].
  at::Tensor forward(const at::Tensor& x,
                     const std::optional<at::Tensor>& node_counts = std::nullopt,
                     std::optional<int64_t> nodes = std::nullopt);

  /// On lists of tuples: x [m, C] -> [m', D].
  at::Tensor forward(const at::Tensor& x, const EquivariantPlan& plan);

  void reset() override;
  void reset_parameters();

  const EquivariantLinearOptions& options() const { return options_; }

 private:
  std::optional<at::Tensor> bias() const;

  EquivariantLinearOptions options_;
  at::Tensor weight_, bias_;
};
TORCH_MODULE(EquivariantLinear);

/// Layers of higher-order transformers (Kim, Oh and Hong, arXiv 2110.14416), on lists of tuples:
/// sets, graphs and hypergraphs of any order. Dense tensors are complete lists
/// (complete_tuples()). The Python package has the same modules with the same parameter names.

/// The random directions W [dim, features] of kernel attention, a buffer `directions`. A model
/// shares one of these among all layers with the same head dim, and redraws it before every
/// training step.
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

/// Attn_{k->l} with all its classes: equivariant_attention(), and the light layer without a bias
/// for the classes that do not sum over the input.
///
/// Parameters: those of EquivariantAttentionWeights as query_weight, query_bias, key_weight,
/// key_bias, value_weight, output_weight, and light.weight. Weights are initially normal with
/// variance 1 / (3 fan_in), biases zero.
///
/// Errors: c10::ValueError for orders or widths that do not fit, or a plan of other kinds.
class NSIMPLEX_API EquivariantAttentionImpl
    : public torch::nn::Cloneable<EquivariantAttentionImpl> {
 public:
  /// `features` are for the kernel forms; absent: the layer makes its own.
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

/// Form of MLP_{l->l}.
enum class MlpForm {
  automatic,    ///< lightweight up to l = 3, pointwise beyond and for loop-free tuples
  lightweight,  ///< two light layers l -> l
  pointwise,    ///< row by row, with separate weights for every equality pattern of a tuple
};

/// A linear layer on every tuple separately, with one matrix for every equality pattern of its
/// entries (the classes of 0 -> l): `weight` [patterns, C, D], `bias` [patterns, D].
class NSIMPLEX_API PatternLinearImpl : public torch::nn::Cloneable<PatternLinearImpl> {
 public:
  PatternLinearImpl(const TensorKind& kind, int64_t in_channels, int64_t out_channels);

  /// x [m, C] -> [m, D]. rows: int64 per pattern, with each row exactly once.
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
  int64_t hidden = 0;  ///< width of the MLP; 0: out_channels
  MlpForm mlp = MlpForm::automatic;
  double dropout = 0.0;   ///< of the attention's output, and of both layers of the MLP
  bool residual = false;  ///< adds A to Attn(..); requires one list and C = D
  EncoderForm form = EncoderForm::standard;
};

/// The look-ups of an encoder between two lists of tuples, made once for all layers and steps.
struct EquivariantEncoderPlan {
  EquivariantAttentionPlan attention;
  EquivariantPlan light;                 ///< the light classes k -> l
  std::optional<EquivariantPlan> mlp;    ///< of a lightweight MLP
  std::vector<at::Tensor> pattern_rows;  ///< of a pointwise MLP: the rows of every pattern of l

  NSIMPLEX_API EquivariantEncoderPlan to(at::Device device) const;
};

/// Makes the plan of encoders with these options. Only the kinds, form and classes of the attention
/// and the form of the MLP matter.
///
/// Errors: c10::ValueError for lists of other kinds than the options', and those of
/// equivariant_attention_plan() and equivariant_plan().
NSIMPLEX_API EquivariantEncoderPlan equivariant_encoder_plan(
    const TupleBatch& input, const TupleBatch& output, const EquivariantEncoderOptions& options);

/// Enc_{k->l}: attention and an MLP. There is no skip connection around attention by default, since
/// its light classes carry the input through learned maps.
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

/// Message passing between the nodes of graphs, as baselines for equivariant layers.
///
/// All layers take nodes x [n, C] and messages and return [n, D]. They take O(e (C + D)) time and
/// memory for e messages, without padding. Bits do not depend on the number of threads.

/// Messages: node target[m] receives from node source[m]. The rows of a list of pairs become
/// messages: (i, j) is a message from i to j. Undirected rows go both ways. Loops are skipped.
struct GraphMessages {
  at::Tensor source, target;  ///< int64 [e]
  at::Tensor rows;            ///< int64 [e]: the row of the list that each message comes from
  int64_t nodes = 0;          ///< n
};

/// Errors: c10::ValueError for a batch of another order than 2.
NSIMPLEX_API GraphMessages graph_messages(const TupleBatch& graph);

/// Every node receives from its k nearest nodes of the same graph (Euclidean distances of points
/// [n, d]). Ties go to the lower number. A graph with fewer nodes uses all others. `nodes` is a
/// batch of any order. O(sum over graphs of n_g^2 d).
NSIMPLEX_API GraphMessages nearest_neighbours(const TupleBatch& nodes, const at::Tensor& points,
                                              int64_t k);

struct MessageLayerOptions {
  int64_t in_channels = 0, out_channels = 0;
  int64_t edge_channels = 0;  ///< width of message features [e, edge_channels]; 0: none
};

/// Graph convolution (GCN). With d_i = 1 + the number of messages to i, and h = x W,
///
///     y_i = h_i / d_i + sum_{j -> i} m_ji / sqrt(d_i d_j) + b
///
/// where m_ji = h_j, or ReLU(h_j + U e_ji) with message features.
///
/// Source: Kipf and Welling, ICLR 2017; features as Hu et al., arXiv 2005.00687.
class NSIMPLEX_API GraphConvolutionImpl : public torch::nn::Cloneable<GraphConvolutionImpl> {
 public:
  explicit GraphConvolutionImpl(const MessageLayerOptions& options);
  at::Tensor forward(const at::Tensor& x, const GraphMessages& messages,
                     const std::optional<at::Tensor>& edges = std::nullopt);
  void reset() override;

 private:
  MessageLayerOptions options_;
  torch::nn::Linear linear_{nullptr}, edges_{nullptr};
  at::Tensor bias_;
};
TORCH_MODULE(GraphConvolution);

/// Graph isomorphism layer with eps = 0 (GIN-0):
///
///     y_i = BatchNorm(ReLU(W2 ReLU(W1 (x_i + sum_{j -> i} m_ji) + b1) + b2))
///
/// where m_ji = x_j, or ReLU(x_j + U e_ji) with message features.
///
/// Source: Xu et al., ICLR 2019; features as Hu et al., arXiv 1905.12265.
class NSIMPLEX_API GraphIsomorphismImpl : public torch::nn::Cloneable<GraphIsomorphismImpl> {
 public:
  explicit GraphIsomorphismImpl(const MessageLayerOptions& options);
  at::Tensor forward(const at::Tensor& x, const GraphMessages& messages,
                     const std::optional<at::Tensor>& edges = std::nullopt);
  void reset() override;

 private:
  MessageLayerOptions options_;
  torch::nn::Linear first_{nullptr}, second_{nullptr}, edges_{nullptr};
  torch::nn::BatchNorm1d norm_{nullptr};
};
TORCH_MODULE(GraphIsomorphism);

/// Graph attention (GAT) with summed heads. For each head, with h = x W,
///
///     y_i = sum_heads sum_{j in N(i) + i} alpha_ij h_j + b,
///     alpha_i = softmax over j of LeakyReLU(a . h_j + c . h_i),  slope 0.2
///
/// Every head has D channels. Message features are not supported: edge_channels must be 0.
///
/// Source: Velickovic et al., ICLR 2018.
class NSIMPLEX_API GraphAttentionImpl : public torch::nn::Cloneable<GraphAttentionImpl> {
 public:
  GraphAttentionImpl(const MessageLayerOptions& options, int64_t heads);
  at::Tensor forward(const at::Tensor& x, const GraphMessages& messages);
  void reset() override;

 private:
  MessageLayerOptions options_;
  int64_t heads_;
  torch::nn::Linear linear_{nullptr};
  at::Tensor source_, target_, bias_;
};
TORCH_MODULE(GraphAttention);

/// A virtual node that exchanges messages with all nodes of its graph. With its state v [B, C],
///
///     v' = v + ReLU(W2 ReLU(W1 (v + sum_{i in graph} x_i) + b1) + b2)
///
/// A model adds v to every node before its next layer. v is initially zero.
///
/// Source: Gilmer et al., ICML 2017; Hu et al., arXiv 2005.00687.
class NSIMPLEX_API VirtualNodeImpl : public torch::nn::Cloneable<VirtualNodeImpl> {
 public:
  explicit VirtualNodeImpl(int64_t channels);

  /// state [B, C], x [n, C], graphs int64 [n]: the graph of every node.
  at::Tensor forward(const at::Tensor& state, const at::Tensor& x, const at::Tensor& graphs);
  void reset() override;

 private:
  int64_t channels_;
  torch::nn::Linear first_{nullptr}, second_{nullptr};
};
TORCH_MODULE(VirtualNode);

/// The graph of every node of a batch: int64 [n].
NSIMPLEX_API at::Tensor graphs_of_nodes(const TupleBatch& batch);

}  // namespace nsimplex
