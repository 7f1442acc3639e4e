#include "training/message_network.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "support/error.h"
#include "training/line_tokens.h"

namespace nsimplex::training {

using at::Tensor;

struct MessageNetwork::Graph {
  GraphMessages messages;
  Tensor tokens;                // features: of nodes [n, a], or of edges in both orders
  std::optional<Tensor> edges;  // of messages
  Tensor graphs;                // of tokens
  TupleBatch output;
};

MessageNetwork::MessageNetwork(const MessageNetworkOptions& options) : options_(options) {
  const bool of_edges = options.tokens == MessageTokens::edges;
  if (of_edges) {
    const int64_t channels = 2 * options.node_channels + options.edge_channels;
    tokens_ = register_module("tokens", torch::nn::Linear(channels, options.hidden));
  }
  const bool featured = options.kind != MessageKind::attention;
  const int64_t shared = of_edges ? options.node_channels : options.edge_channels;
  for (int64_t index = 0; index < options.layers; ++index) {
    const bool raw = index == 0 && !of_edges;
    const MessageLayerOptions layer{raw ? options.node_channels : options.hidden, options.hidden,
                                    featured ? shared : 0};
    const std::string name = "layer" + std::to_string(index);
    if (options.kind == MessageKind::convolution) {
      convolutions_.push_back(register_module(name, GraphConvolution(layer)));
    } else if (options.kind == MessageKind::isomorphism) {
      isomorphisms_.push_back(register_module(name, GraphIsomorphism(layer)));
    } else {
      attentions_.push_back(register_module(name, GraphAttention(layer, options.heads)));
    }
    if (options.virtual_node && index > 0) {
      virtual_nodes_.push_back(
          register_module("virtual" + std::to_string(index), VirtualNode(options.hidden)));
    }
  }
  const bool pairs = options.out_channels == 0;
  last_ = register_module(
      "last", torch::nn::Linear(options.hidden, pairs ? options.hidden : options.out_channels));
  if (pairs) pair_bias_ = register_parameter("pair_bias", at::zeros({1}));
}

void MessageNetwork::set_nodes(Graph& graph, const GraphBatch& batch) const {
  graph.graphs = graphs_of_nodes(batch.input);
  if (batch.input.order() == 1) {
    graph.tokens = batch.features;
    graph.messages = nearest_neighbours(batch.input, batch.features, options_.neighbours);
    return;
  }
  graph.messages = graph_messages(batch.input);
  const Tensor loops = batch.features.index_select(0, loop_rows(batch.input));
  graph.tokens = loops.narrow(1, 0, options_.node_channels);
  if (options_.edge_channels > 0) {
    graph.edges = batch.features.index_select(0, graph.messages.rows)
                      .narrow(1, options_.node_channels, options_.edge_channels);
  }
}

void MessageNetwork::set_edges(Graph& graph, const GraphBatch& batch) const {
  if (batch.output.order() != 0) {
    throw InputError("[message network] tokens: edges answer for whole graphs alone");
  }
  LineTokens line = line_tokens(batch.input, batch.features, options_.node_channels);
  graph.graphs = std::move(line.graphs);
  graph.tokens = std::move(line.features);
  graph.messages = std::move(line.messages);
  graph.edges = std::move(line.shared);
}

GraphModel::Forward MessageNetwork::prepare(const GraphBatch& batch) {
  const auto graph = std::make_shared<Graph>();
  graph->output = batch.output;
  options_.tokens == MessageTokens::edges ? set_edges(*graph, batch) : set_nodes(*graph, batch);
  return [this, graph] { return forward(*graph); };
}

Tensor MessageNetwork::layer(size_t index, const Tensor& x, const Graph& graph) {
  switch (options_.kind) {
    case MessageKind::convolution:
      return convolutions_[index]->forward(x, graph.messages, graph.edges);
    case MessageKind::isomorphism:
      return isomorphisms_[index]->forward(x, graph.messages, graph.edges);
    case MessageKind::attention:
      return attentions_[index]->forward(x, graph.messages);
  }
  return x;
}

Tensor MessageNetwork::forward(const Graph& graph) {
  Tensor x = graph.tokens, state;
  if (options_.tokens == MessageTokens::edges) x = tokens_->forward(x).relu().sum(0);
  for (int64_t index = 0; index < options_.layers; ++index) {
    if (index > 0) {
      x = at::dropout(x.relu(), options_.dropout, is_training());
      if (options_.virtual_node) {
        if (!state.defined())
          state = at::zeros({graph.output.graphs(), options_.hidden}, x.options());
        state = virtual_nodes_[static_cast<size_t>(index) - 1]->forward(state, x, graph.graphs);
        x = x + state.index_select(0, graph.graphs);
      }
    }
    x = layer(static_cast<size_t>(index), x, graph);
  }
  return read_out(x, graph);
}

Tensor MessageNetwork::read_out(const Tensor& x, const Graph& graph) {
  if (graph.output.order() == 1) return last_->forward(x);
  if (graph.output.order() == 0) {
    const int64_t count = graph.output.graphs();
    const Tensor sizes = at::bincount(graph.graphs, {}, count).clamp_min(1).unsqueeze(1);
    const Tensor sums = at::zeros({count, x.size(1)}, x.options()).index_add(0, graph.graphs, x);
    return last_->forward(sums / sizes);
  }
  const Tensor z = last_->forward(x);
  const Tensor first = z.index_select(0, graph.output.tuples.select(1, 0));
  const Tensor second = z.index_select(0, graph.output.tuples.select(1, 1));
  const double scale = 1 / std::sqrt(static_cast<double>(options_.hidden));
  return (first * second).sum(1, /*keepdim=*/true) * scale + pair_bias_;
}

}  // namespace nsimplex::training
