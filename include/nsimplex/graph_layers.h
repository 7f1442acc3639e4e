#pragma once

#include <nsimplex/graph.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <optional>

/// Message passing between the nodes of graphs: what equivariant layers are compared with.
///
/// All layers take nodes x [n, C] and messages, and give [n, D] in time and memory O(e (C + D)) for
/// e messages, without padding. Bits do not depend on the number of threads.
namespace nsimplex {

/// Who hears whom: node target[m] hears node source[m]. Rows of a list of pairs become messages:
/// (i, j) lets j hear i; undirected ones go both ways; loops are none.
struct GraphMessages {
  at::Tensor source, target;  ///< int64 [e]
  at::Tensor rows;            ///< int64 [e]: the row of the list that a message comes from
  int64_t nodes = 0;          ///< n
};

/// Errors: c10::ValueError for a batch of another order than 2.
NSIMPLEX_API GraphMessages graph_messages(const TupleBatch& graph);

/// Every node hears its k nearest nodes of the same graph, of equal distances the one with the
/// lower number first, all others where a graph has fewer; Euclidean, points [n, d]. `nodes`: a
/// batch of any order. O(sum over graphs of n_g^2 d).
NSIMPLEX_API GraphMessages nearest_neighbours(const TupleBatch& nodes, const at::Tensor& points,
                                              int64_t k);

struct MessageLayerOptions {
  int64_t in_channels = 0, out_channels = 0;
  int64_t edge_channels = 0;  ///< of features [e, edge_channels] that come with messages; 0: none
};

/// Graph convolution (GCN). With d_i one more than the messages that i hears and h = x W,
///
///     y_i = h_i / d_i + sum_{j -> i} m_ji / sqrt(d_i d_j) + b
///
/// where m_ji = h_j, or with features of messages ReLU(h_j + U e_ji).
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
/// where m_ji = x_j, or with features of messages ReLU(x_j + U e_ji).
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

/// Graph attention (GAT), heads summed: with h = x W of a head,
///
///     y_i = sum_heads sum_{j in N(i) + i} alpha_ij h_j + b,
///     alpha_i = softmax over j of LeakyReLU(a . h_j + c . h_i),  slope 0.2
///
/// Every head has D channels. Features of messages are not used: edge_channels must be 0.
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

/// A node that hears all of its graph and that all of it hear: with v [B, C] its state,
///
///     v' = v + ReLU(W2 ReLU(W1 (v + sum_{i in graph} x_i) + b1) + b2)
///
/// A model adds v to every node before its next layer. v is zero at first.
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
