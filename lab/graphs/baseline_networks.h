// Declares the baseline graph networks: equivariant MLP, message passing and token transformer.

#pragma once

#include <nsimplex/equivariant_layers.h>
#include <nsimplex/layers.h>

#include <memory>
#include <optional>
#include <vector>

#include "lab/graphs/encoder_network.h"
#include "lab/graphs/graph_task.h"

namespace nsimplex::training {

/// The edges of graphs as tokens. The tokens are the nodes of the line graphs, which are neighbours
/// if their edges share a node. A node without edges is a separate token, as if it had a loop
/// without features, so every node is represented.
///
/// Source: section F.2 of "How Smoothing is N-simplicial Attention?", whose token is [n1 | n2 |
/// e12]. There the order of the nodes determines which end comes first. Here a token has both
/// orders.
struct LineTokens {
  at::Tensor features;     ///< [2, t, 2 a + b]: [x_i | x_j | e_ij] and [x_j | x_i | e_ji]
  GraphMessages messages;  ///< between the tokens
  at::Tensor shared;       ///< [e, a]: features of the node that the ends of a message share
  at::Tensor graphs;       ///< int64 [t]: the graph of every token
};

/// Makes tokens of ordered pairs that contain both directions of every edge and the loops of all
/// nodes. The features [m, a + b] are those of nodes on loops, and those of edges (from channel a
/// on) elsewhere. Throws InputError for other lists. Complexity: O(m + sum of squared degrees).
LineTokens line_tokens(const TupleBatch& pairs, const at::Tensor& features, int64_t node_channels);

struct LinearNetworkOptions {
  TensorKind input, output;  ///< k and l
  int64_t in_channels = 0;
  int64_t hidden = 0;
  int64_t layers = 1;                     ///< number of L_{k->k} before the last layer, L_{k->l}
  ClassSet last_classes = ClassSet::all;  ///< for l > k, light classes have no sum over the input
  Pooling pooling = Pooling::mean;
  GraphHeadOptions head;   ///< its in_channels are `hidden`
  bool symmetric = false;  ///< for pairs: the output is the mean of (i, j) and (j, i)

  /// Computes with dense tensors. Every batch is one graph with all its tuples (complete_tuples()).
  bool dense = false;
};

/// The invariant MLP and related networks: [L_{k->k} - ReLU] x layers - L_{k->l} - head. For sets
/// and pairs (k = 1, l = 2) it is S2G with light classes in the last layer, and S2G+ with all
/// classes.
///
/// Sources: Maron et al., arXiv 1812.09902; Serviansky et al., arXiv 2002.08772.
class LinearNetwork : public GraphModel {
 public:
  explicit LinearNetwork(const LinearNetworkOptions& options);
  Forward prepare(const GraphBatch& batch) override;

 private:
  Forward prepare_dense(const GraphBatch& batch);
  at::Tensor answer(const at::Tensor& x);

  LinearNetworkOptions options_;
  std::vector<EquivariantLinear> layers_;
  std::shared_ptr<GraphHead> head_;
};

enum class MessageKind { convolution, isomorphism, attention };  // GCN, GIN-0, GAT

/// What exchanges messages: nodes, or the edges of a graph as in line_tokens().
enum class MessageTokens { nodes, edges };

struct MessageNetworkOptions {
  MessageKind kind = MessageKind::convolution;
  MessageTokens tokens = MessageTokens::nodes;
  int64_t node_channels = 0;  ///< features of pairs are [node | edge]
  int64_t edge_channels = 0;  ///< attention between nodes does not read them
  int64_t out_channels = 0;
  int64_t hidden = 0;
  int64_t layers = 2;
  int64_t heads = 8;  ///< of attention
  bool virtual_node = false;
  double dropout = 0.0;
  /// for sets of points: number of nearest points from which a point gets messages
  int64_t neighbours = 0;
};

/// A graph network that passes messages. Its layers have ReLU between them, and the order of the
/// output determines what follows.
///
///     input   pairs with the loop of every node, which has the node's features; or points, each of
///             which gets messages from its nearest neighbours
///     output  order 0: a linear map of the mean over the nodes; order 1: a linear map of each
///             node; order 2: <z_i, z_j> / sqrt(hidden) + b with z a linear map of each node
///
/// The state of a virtual node, if there is one, is added to all nodes before every layer but the
/// first.
///
/// With edges as tokens, the first layer reads the sum over both orders of ReLU(W [x_i | x_j |
/// e_ij] + b). Messages have the features of the node that two edges share, and the order of the
/// output is 0.
class MessageNetwork : public GraphModel {
 public:
  explicit MessageNetwork(const MessageNetworkOptions& options);
  Forward prepare(const GraphBatch& batch) override;

 private:
  struct Graph;  // what the network needs of the tuples of a batch

  void set_nodes(Graph& graph, const GraphBatch& batch) const;
  void set_edges(Graph& graph, const GraphBatch& batch) const;
  at::Tensor layer(size_t index, const at::Tensor& x, const Graph& graph);
  at::Tensor forward(const Graph& graph);
  at::Tensor read_out(const at::Tensor& x, const Graph& graph);

  MessageNetworkOptions options_;
  std::vector<GraphConvolution> convolutions_;
  std::vector<GraphIsomorphism> isomorphisms_;
  std::vector<GraphAttention> attentions_;
  std::vector<VirtualNode> virtual_nodes_;
  torch::nn::Linear tokens_{nullptr}, last_{nullptr};
  at::Tensor pair_bias_;
};

struct TokenNetworkOptions {
  MessageTokens tokens = MessageTokens::nodes;
  int64_t node_channels = 0, edge_channels = 0;
  int64_t hidden = 0;
  int64_t layers = 1;  ///< transformer blocks
  int64_t heads = 1;
  int64_t order = 1;      ///< N of the attention
  GraphHeadOptions head;  ///< its in_channels are `hidden`
  /// Share of a graph's tokens that attend to one another in every block, as a router of the block
  /// chooses them (ExpertChoice); absent: all.
  std::optional<double> chosen = std::nullopt;
};

/// A transformer with the graph as its attention mask: embedding - blocks - mean over a graph's
/// tokens - head, with one row per graph. All N keys of a tuple are neighbours of the query, or the
/// query itself.
///
///     nodes   a node i is a token [x_i | sum_j e_ij over its edges]; neighbours are those of the
///             graph
///     edges   line_tokens(): [x_i | x_j | e_ij], with the mean over both orders; neighbours are
///             those of the line graph
///
/// Input: pairs as in line_tokens(). Memory and time of a block: graphs x (most tokens per
/// graph)^(N + 1).
class TokenNetwork : public GraphModel {
 public:
  explicit TokenNetwork(const TokenNetworkOptions& options);
  Forward prepare(const GraphBatch& batch) override;

 private:
  TokenNetworkOptions options_;
  torch::nn::Linear embedding_{nullptr};
  std::vector<TransformerBlock> blocks_;
  std::shared_ptr<GraphHead> head_;
};

}  // namespace nsimplex::training
