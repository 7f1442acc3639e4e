#include "training/token_network.h"

#include <ATen/ATen.h>
#include <nsimplex/graph_layers.h>

#include <string>

#include "training/line_tokens.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

// The tokens of all graphs, and where they lie in a padded batch.
struct TokenLayout {
  Tensor graphs;             // int64 [m]: of each token
  Tensor counts;             // int64 [B]
  Tensor slots;              // int64 [m]: row of the batch [B T]
  SelectedTokens selection;  // which the attention goes by
};

// Every token attends to itself and to the tokens whose messages it hears.
TokenLayout lay_out(const Tensor& graphs, int64_t batch, const GraphMessages& messages) {
  TokenLayout layout{.graphs = graphs, .counts = at::bincount(graphs, {}, batch)};
  const int64_t longest = layout.counts.max().item<int64_t>(), tokens = graphs.size(0);
  const Tensor starts = layout.counts.cumsum(0) - layout.counts;
  const Tensor order = at::argsort(graphs, /*stable=*/true, /*dim=*/0, /*descending=*/false);
  const Tensor ranks = at::empty_like(order).index_copy(0, order, at::arange(tokens));
  const Tensor places = ranks - starts.index_select(0, graphs);
  layout.slots = graphs * longest + places;
  Tensor adjacency = at::zeros({batch, longest, longest}, at::kBool);
  const auto join = [&](const Tensor& from, const Tensor& to) {
    adjacency.index_put_(
        {graphs.index_select(0, to), places.index_select(0, to), places.index_select(0, from)},
        at::ones({}, at::kBool));
  };
  join(messages.source, messages.target);
  join(at::arange(tokens), at::arange(tokens));
  layout.selection = {at::arange(longest).expand({batch, longest}), layout.counts, adjacency};
  return layout;
}

// Features [k, m, C] of the tokens, each as read in k ways, and their layout.
struct Tokens {
  Tensor features;
  TokenLayout layout;
};

Tokens node_tokens(const GraphBatch& batch, const TokenNetworkOptions& o) {
  const GraphMessages messages = graph_messages(batch.input);
  const Tensor nodes =
      batch.features.index_select(0, loop_rows(batch.input)).narrow(1, 0, o.node_channels);
  const Tensor edges =
      batch.features.index_select(0, messages.rows).narrow(1, o.node_channels, o.edge_channels);
  const Tensor sums = at::zeros({nodes.size(0), o.edge_channels}, edges.options())
                          .index_add(0, messages.target, edges);
  return {at::cat({nodes, sums}, 1).unsqueeze(0),
          lay_out(graphs_of_nodes(batch.input), batch.input.graphs(), messages)};
}

Tokens edge_tokens(const GraphBatch& batch, const TokenNetworkOptions& o) {
  const LineTokens line = line_tokens(batch.input, batch.features, o.node_channels);
  return {line.features, lay_out(line.graphs, batch.input.graphs(), line.messages)};
}

}  // namespace

TokenNetwork::TokenNetwork(const TokenNetworkOptions& o) : options_(o) {
  const int64_t nodes = o.tokens == MessageTokens::nodes ? 1 : 2;
  embedding_ = register_module(
      "embedding", torch::nn::Linear(nodes * o.node_channels + o.edge_channels, o.hidden));
  for (int64_t index = 0; index < o.layers; ++index) {
    TransformerBlockOptions block;
    block.attention.dim = o.hidden;
    block.attention.heads = o.heads;
    block.attention.order = o.order;
    blocks_.push_back(register_module("block" + std::to_string(index), TransformerBlock(block)));
  }
  options_.head.in_channels = o.hidden;
  head_ = register_module("head", std::make_shared<GraphHead>(options_.head));
}

GraphModel::Forward TokenNetwork::prepare(const GraphBatch& batch) {
  Tokens tokens = options_.tokens == MessageTokens::nodes ? node_tokens(batch, options_)
                                                          : edge_tokens(batch, options_);
  const int64_t graphs = batch.input.graphs();
  return [this, graphs, tokens = std::move(tokens)] {
    const TokenLayout& layout = tokens.layout;
    const Tensor embedded = embedding_->forward(tokens.features).mean(0);
    const int64_t longest = layout.selection.positions.size(1), width = embedded.size(1);
    Tensor x = at::zeros({graphs * longest, width}, embedded.options())
                   .index_copy(0, layout.slots, embedded)
                   .view({graphs, longest, width});
    for (TransformerBlock& block : blocks_) x = block->forward_selected(x, layout.selection);
    const Tensor rows = x.flatten(0, 1).index_select(0, layout.slots);
    const Tensor sums = at::zeros({graphs, width}, x.options()).index_add(0, layout.graphs, rows);
    return head_->forward(sums / layout.counts.unsqueeze(1));
  };
}

}  // namespace nsimplex::training
