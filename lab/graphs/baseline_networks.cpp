// The baseline graph networks: equivariant MLP, message passing and token transformer.

#include "lab/graphs/baseline_networks.h"

#include <ATen/ATen.h>
#include <nsimplex/equivariant_layers.h>
#include <nsimplex/graph.h>
#include <nsimplex/sparse_layers.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "lab/graphs/encoder_network.h"
#include "support/error.h"

namespace nsimplex::training {

using at::Tensor;

LineTokens line_tokens(const TupleBatch& pairs, const Tensor& features, int64_t node_channels) {
  const Tensor nodes = features.index_select(0, loop_rows(pairs)).narrow(1, 0, node_channels);
  const Tensor reverse = transposed_rows(pairs);
  const Tensor first = pairs.tuples.select(1, 0), second = pairs.tuples.select(1, 1);
  const Tensor forth = (first < second).nonzero().flatten();  // one row per edge, lower node first
  const Tensor low = first.index_select(0, forth), high = second.index_select(0, forth);

  const Tensor degree = at::bincount(at::cat({low, high}), {}, pairs.nodes());
  const Tensor alone = (degree == 0).nonzero().flatten();
  const Tensor edges = features.narrow(1, node_channels, features.size(1) - node_channels);
  const Tensor nothing = at::zeros({alone.size(0), edges.size(1)}, features.options());
  const auto tokens = [&](const Tensor& from, const Tensor& to, const Tensor& rows) {
    return at::cat(
        {nodes.index_select(0, at::cat({from, alone})), nodes.index_select(0, at::cat({to, alone})),
         at::cat({edges.index_select(0, rows), nothing})},
        1);
  };

  const Tensor graph_of = graphs_of_nodes(pairs);
  const Tensor edge_graphs = graph_of.index_select(0, low);
  const Tensor offsets = at::zeros_like(pairs.tuple_offsets);
  offsets.slice(0, 1).copy_(at::bincount(edge_graphs, {}, pairs.graphs()).cumsum(0));
  const LineGraph line =
      line_graph({at::stack({low, high}, 1), offsets, pairs.node_offsets, Symmetry::undirected});
  GraphMessages messages = graph_messages(line.batch);
  messages.nodes += alone.size(0);
  const Tensor shared = nodes.index_select(0, line.shared.index_select(0, messages.rows));

  return {at::stack({tokens(low, high, forth), tokens(high, low, reverse.index_select(0, forth))}),
          std::move(messages), shared, at::cat({edge_graphs, graph_of.index_select(0, alone)})};
}

LinearNetwork::LinearNetwork(const LinearNetworkOptions& options) : options_(options) {
  for (int64_t index = 0; index <= options.layers; ++index) {
    const bool last = index == options.layers;
    layers_.push_back(
        register_module("layer" + std::to_string(index),
                        EquivariantLinear(EquivariantLinearOptions{
                            .input = options.input,
                            .output = last ? options.output : options.input,
                            .in_channels = index == 0 ? options.in_channels : options.hidden,
                            .out_channels = options.hidden,
                            .classes = last ? options.last_classes : ClassSet::all,
                            .pooling = options.pooling})));
  }
  if (options.head.out_channels == 0) return;
  options_.head.in_channels = options.hidden;
  head_ = register_module("head", std::make_shared<GraphHead>(options_.head));
}

Tensor LinearNetwork::answer(const Tensor& x) { return head_ ? head_->forward(x) : x; }

GraphModel::Forward LinearNetwork::prepare(const GraphBatch& batch) {
  if (options_.dense) return prepare_dense(batch);
  const EquivariantPlan same = equivariant_plan(batch.input, batch.input);
  const EquivariantPlan change =
      equivariant_plan(batch.input, batch.output, {.classes = options_.last_classes});
  const Tensor transposed = options_.symmetric ? transposed_rows(batch.output) : Tensor();
  return [this, same, change, transposed, features = batch.features] {
    Tensor x = features;
    for (size_t index = 0; index + 1 < layers_.size(); ++index) {
      x = layers_[index]->forward(x, same).relu();
    }
    x = answer(layers_.back()->forward(x, change));
    return options_.symmetric ? (x + x.index_select(0, transposed)) / 2 : x;
  };
}

GraphModel::Forward LinearNetwork::prepare_dense(const GraphBatch& batch) {
  const int64_t nodes = batch.input.nodes();
  std::vector<int64_t> shape(static_cast<size_t>(options_.input.order), nodes);
  shape.insert(shape.begin(), 1);
  shape.push_back(options_.in_channels);
  if (batch.input.graphs() != 1 || batch.features.numel() != c10::multiply_integers(shape)) {
    throw InputError("[dense] expected one graph with all tuples of its nodes");
  }
  return [this, x = batch.features.view(shape)]() {
    Tensor y = x;
    for (size_t index = 0; index + 1 < layers_.size(); ++index) {
      y = layers_[index]->forward(y).relu();
    }
    y = layers_.back()->forward(y);
    return answer(y.reshape({-1, options_.hidden}));
  };
}

namespace {

// The tokens of all graphs, and their places in a padded batch.
struct TokenLayout {
  Tensor graphs;             // int64 [m]: per token
  Tensor counts;             // int64 [B]
  Tensor slots;              // int64 [m]: row of the batch [B T]
  SelectedTokens selection;  // for the attention
};

// Every token attends to itself and to the tokens from which it gets messages.
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

// Features [k, m, C] of the tokens, in k orders, and their layout.
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
    if (o.chosen) blocks_.back()->choose_tokens({.tokens = *o.chosen});
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
