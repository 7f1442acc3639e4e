#pragma once

#include <nsimplex/layers.h>

#include <memory>
#include <vector>

#include "training/graph_head.h"
#include "training/graph_task.h"
#include "training/message_network.h"

namespace nsimplex::training {

struct TokenNetworkOptions {
  MessageTokens tokens = MessageTokens::nodes;
  int64_t node_channels = 0, edge_channels = 0;
  int64_t hidden = 0;
  int64_t layers = 1;  ///< transformer blocks
  int64_t heads = 1;
  int64_t order = 1;      ///< N of the attention
  GraphHeadOptions head;  ///< its in_channels are `hidden`
};

/// A transformer with the graph as its attention mask: embedding - blocks - mean over a graph's
/// tokens - head, one row a graph. All N keys of a tuple are neighbours of the query, or the query
/// itself.
///
///     nodes   a node i is a token [x_i | sum_j e_ij over its edges]; neighbours are those of the
///             graph
///     edges   line_tokens(): [x_i | x_j | e_ij], the mean of what is made of both orders;
///             neighbours are those of the line graph
///
/// Input: pairs as of line_tokens(). Memory and time of a block: graphs x (most tokens of one)^(N +
/// 1).
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
