// Higher-order transformers for graphs, their output head and a node autoencoder.

#include "lab/graphs/encoder_network.h"

#include <ATen/ATen.h>
#include <nsimplex/equivariant_layers.h>
#include <nsimplex/graph.h>

#include <cmath>
#include <string>

#include "support/error.h"

namespace nsimplex::training {

using at::Tensor;

GraphHead::GraphHead(const GraphHeadOptions& options) : options_(options) {
  if (options.normalised) {
    gain_ = register_parameter("gain", at::ones({options.in_channels}));
    shift_ = register_parameter("shift", at::zeros({options.in_channels}));
  }
  int64_t in = options.in_channels;
  for (int64_t layer = 0; layer <= options.layers; ++layer) {
    const int64_t out = layer < options.layers ? options.hidden : options.out_channels;
    linear_.push_back(register_module(std::to_string(layer), torch::nn::Linear(in, out)));
    in = out;
  }
}

Tensor GraphHead::forward(const Tensor& x) {
  Tensor y = options_.normalised ? at::layer_norm(x, {options_.in_channels}, gain_, shift_) : x;
  for (size_t layer = 0; layer < linear_.size(); ++layer) {
    y = linear_[layer]->forward(y);
    if (layer + 1 == linear_.size()) break;
    y = at::dropout(y.relu(), options_.dropout, is_training());
  }
  return y;
}

namespace {

// The place of (i, j) among all pairs of the batch's nodes.
Tensor places(const TupleBatch& pairs, int64_t first, int64_t second) {
  return pairs.tuples.select(1, first) * pairs.nodes() + pairs.tuples.select(1, second);
}

void require_pairs(const TupleBatch& pairs) {
  if (pairs.order() == 2) return;
  throw InputError("[pairs] expected tuples of 2 nodes, got " + std::to_string(pairs.order()));
}

}  // namespace

Tensor transposed_rows(const TupleBatch& pairs) {
  require_pairs(pairs);
  const Tensor own = places(pairs, 0, 1), other = places(pairs, 1, 0);
  const auto [sorted_own, own_order] = own.sort();
  const auto [sorted_other, other_order] = other.sort();
  if (!sorted_own.equal(sorted_other)) {
    throw InputError("[pairs] expected (j, i) beside every (i, j)");
  }
  return at::empty_like(own).index_copy_(0, other_order, own_order);
}

Tensor loop_rows(const TupleBatch& pairs) {
  require_pairs(pairs);
  const Tensor first = pairs.tuples.select(1, 0);
  const Tensor rows = (first == pairs.tuples.select(1, 1)).nonzero().flatten();
  if (rows.size(0) != pairs.nodes()) throw InputError("[pairs] expected the loop of every node");
  return at::empty_like(rows).index_copy_(0, first.index_select(0, rows), rows);
}

namespace {

constexpr double kReconstruction = 0.01;  // weight of the reconstruction loss

Tensor uniform(at::IntArrayRef shape, int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(fan_in, 1)));
  return at::empty(shape).uniform_(-bound, bound);
}

}  // namespace

NodeAutoencoder::NodeAutoencoder(const data::Cooccurrence& x, const NodeAutoencoderOptions& options)
    : options_(options) {
  const Tensor offsets = at::tensor(x.offsets, at::kLong),
               columns = at::tensor(x.columns, at::kLong),
               values = at::tensor(x.values, at::kFloat);
  const int64_t channels = options.channels;
  for (size_t t = 0; t < x.types.size(); ++t) {
    const auto [first, nodes, width] = x.types[t];
    const int64_t begin = x.offsets[first], end = x.offsets[first + nodes];
    Type type;
    type.offsets = offsets.slice(0, first, first + nodes + 1) - begin;
    type.columns = columns.slice(0, begin, end);
    type.values = values.slice(0, begin, end);
    const Tensor counts = type.offsets.diff();
    type.rows = at::arange(nodes, at::kLong).repeat_interleave(counts);
    const auto judged = std::max<int64_t>((counts > 0).sum().item<int64_t>(), 1);
    type.weight_of_entry =
        counts.to(at::kFloat).reciprocal().index_select(0, type.rows) / static_cast<double>(judged);
    const std::string name = std::to_string(t);
    type.weight = register_parameter("weight" + name, uniform({width, channels}, width));
    type.bias = register_parameter("bias" + name, uniform({channels}, width));
    type.shift = register_parameter("shift" + name, uniform({width}, channels));
    type.gain = register_parameter("gain" + name, at::ones({channels}));
    type.offset = register_parameter("offset" + name, at::zeros({channels}));
    types_.push_back(std::move(type));
  }
}

Tensor NodeAutoencoder::encode(const Type& type) {
  const Tensor values = at::dropout(type.values, options_.dropout, is_training());
  const Tensor sums =
      std::get<0>(at::embedding_bag(type.weight, type.columns, type.offsets, false, /*mode=*/0,
                                    false, values, /*include_last_offset=*/true));
  return at::tanh(sums + type.bias);
}

Tensor NodeAutoencoder::error(const Type& type, const Tensor& encoded) const {
  const Tensor guess =
      (encoded.index_select(0, type.rows) * type.weight.index_select(0, type.columns)).sum(1) +
      type.shift.index_select(0, type.columns);
  return ((guess - type.values).square() * type.weight_of_entry).sum();
}

Tensor NodeAutoencoder::forward() {
  std::vector<Tensor> features;
  loss_ = at::zeros({});
  for (const Type& type : types_) {
    const Tensor encoded = encode(type);
    if (is_training()) loss_ = loss_ + error(type, encoded);
    features.push_back(at::layer_norm(encoded, {options_.channels}, type.gain, type.offset));
  }
  return at::cat(features);
}

AutoencodedNetwork::AutoencodedNetwork(const data::Cooccurrence& x,
                                       const NodeAutoencoderOptions& options,
                                       std::shared_ptr<GraphModel> network)
    : nodes_(register_module("nodes", std::make_shared<NodeAutoencoder>(x, options))),
      network_(register_module("network", std::move(network))) {}

GraphModel::Forward AutoencodedNetwork::prepare(const GraphBatch& batch) {
  // The network is prepared every time, because its features are computed here.
  return [this, batch] {
    GraphBatch encoded = batch;
    encoded.features = nodes_->forward();
    return network_->prepare(encoded)();
  };
}

Tensor AutoencodedNetwork::auxiliary_loss() const {
  const Tensor own = kReconstruction * nodes_->reconstruction_loss(),
               other = network_->auxiliary_loss();
  return other.defined() ? own + other : own;
}

EncoderNetwork::EncoderNetwork(const EncoderNetworkOptions& o) : options_(o) {
  const int64_t head_dim = o.head_dim > 0 ? o.head_dim : o.hidden / o.heads;
  const AttentionForm last_form = o.readout.form.value_or(o.form);
  const int64_t last_dim = o.readout.head_dim > 0 ? o.readout.head_dim : head_dim;
  const auto directions = [&](const char* name, int64_t channels) {
    return register_module(name, RandomFeatures(channels, o.features.count));
  };
  if (o.form != AttentionForm::softmax) features_ = directions("features", head_dim);
  if (last_form != AttentionForm::softmax) {
    const bool shared = features_ && last_dim == head_dim;
    readout_features_ = shared ? features_ : directions("readout_features", last_dim);
  }
  embedding_ = register_module("embedding", torch::nn::Linear(o.in_channels, o.hidden));
  for (int64_t index = 0; index <= o.layers; ++index) {
    const bool last = index == o.layers;
    EquivariantEncoderOptions layer;
    layer.attention.input = o.input;
    layer.attention.output = last ? o.output : o.input;
    layer.attention.in_channels = layer.attention.out_channels = o.hidden;
    layer.attention.heads = last && o.readout.heads > 0 ? o.readout.heads : o.heads;
    layer.attention.head_dim = last ? last_dim : head_dim;
    layer.attention.form = last ? last_form : o.form;
    layer.attention.features = o.features.map;
    layer.attention.classes = o.classes;
    layer.dropout = o.dropout;
    layers_.push_back(
        register_module("layer" + std::to_string(index),
                        EquivariantEncoder(layer, last ? readout_features_ : features_)));
  }
  if (o.head.out_channels == 0) return;
  options_.head.in_channels = o.hidden;
  head_ = register_module("head", std::make_shared<GraphHead>(options_.head));
}

GraphModel::Forward EncoderNetwork::prepare(const GraphBatch& batch) {
  const auto plan = [&](const TupleBatch& output, const EquivariantEncoder& layer) {
    return equivariant_encoder_plan(batch.input, output, layer->options());
  };
  std::optional<EquivariantEncoderPlan> same;
  if (layers_.size() > 1) same = plan(batch.input, layers_.front());
  const EquivariantEncoderPlan change = plan(batch.output, layers_.back());
  const Tensor transposed = options_.symmetric ? transposed_rows(batch.output) : Tensor();
  return [this, same, change, transposed, features = batch.features] {
    Tensor x = embedding_->forward(features);
    for (size_t index = 0; index < layers_.size(); ++index) {
      x = layers_[index]->forward(x, index + 1 < layers_.size() ? *same : change);
    }
    if (head_) x = head_->forward(x);
    return options_.symmetric ? (x + x.index_select(0, transposed)) / 2 : x;
  };
}

void EncoderNetwork::redraw_features() {
  if (features_) features_->redraw();
  if (!readout_features_) return;
  if (!features_ || readout_features_.ptr() != features_.ptr()) readout_features_->redraw();
}

LaplacianTransformer::LaplacianTransformer(int64_t node_channels, int64_t encodings,
                                           const EncoderNetworkOptions& network)
    : node_channels_(node_channels), encodings_(encodings) {
  if (network.input.order != 1 || network.in_channels != node_channels + encodings) {
    throw InputError("[LaplacianTransformer] network: expected nodes with " +
                     std::to_string(node_channels + encodings) + " channels");
  }
  network_ = register_module("network", std::make_shared<EncoderNetwork>(network));
}

GraphModel::Forward LaplacianTransformer::prepare(const GraphBatch& batch) {
  const Tensor nodes =
      batch.features.index_select(0, loop_rows(batch.input)).narrow(1, 0, node_channels_);
  Tensor vectors = laplacian_eigenvectors(batch.input, encodings_).vectors.to(nodes.dtype());
  if (is_training()) {
    const Tensor signs =
        at::randint(0, 2, {batch.input.graphs(), encodings_}, nodes.options()) * 2 - 1;
    vectors = vectors * signs.index_select(0, graphs_of_nodes(batch.input));
  }
  GraphBatch set = batch;
  set.input = complete_tuples(batch.input.node_offsets.diff(), 1);
  set.features = at::cat({nodes, vectors}, 1);
  return network_->prepare(set);
}

}  // namespace nsimplex::training
