#pragma once

#include <nsimplex/graph_layers.h>

#include <vector>

#include "training/graph_head.h"
#include "training/graph_task.h"

namespace nsimplex::training {

enum class MessageKind { convolution, isomorphism, attention };  // GCN, GIN-0, GAT

/// What passes messages: nodes, or the edges of a graph as line_tokens() has them.
enum class MessageTokens { nodes, edges };

struct MessageNetworkOptions {
  MessageKind kind = MessageKind::convolution;
  MessageTokens tokens = MessageTokens::nodes;
  int64_t node_channels = 0;  ///< features of pairs are [node | edge]
  int64_t edge_channels = 0;  ///< between nodes attention does not read them
  int64_t out_channels = 0;
  int64_t hidden = 0;
  int64_t layers = 2;
  int64_t heads = 8;  ///< of attention
  bool virtual_node = false;
  double dropout = 0.0;
  int64_t neighbours = 0;  ///< of sets of points: how many nearest ones a point hears
};

/// A graph network that passes messages: layers with ReLU between them, then what the output's
/// order asks for.
///
///     input   pairs with the loop of every node, which has the node's features; or points, each of
///             which hears its nearest neighbours
///     output  order 0: a linear map of the mean over the nodes; order 1: a linear map of each
///             node; order 2: <z_i, z_j> / sqrt(hidden) + b, z a linear map of each node
///
/// With a virtual node, its state is added to all nodes before every layer but the first.
///
/// With edges as tokens the first layer reads sum over both orders of ReLU(W [x_i | x_j | e_ij] +
/// b), features of messages are those of the node that two edges share, and the output's order is
/// 0.
class MessageNetwork : public GraphModel {
 public:
  explicit MessageNetwork(const MessageNetworkOptions& options);
  Forward prepare(const GraphBatch& batch) override;

 private:
  struct Graph;  // what a batch's tuples come to

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

}  // namespace nsimplex::training
