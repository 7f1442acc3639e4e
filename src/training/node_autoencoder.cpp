#include "training/node_autoencoder.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>

namespace nsimplex::training {

using at::Tensor;

namespace {

constexpr double kReconstruction = 0.01;  // weight of the reconstruction beside the task's loss

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
  // The network is prepared anew each time, since its features are made here.
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

}  // namespace nsimplex::training
