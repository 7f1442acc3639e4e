#include "training/encoder_network.h"

#include <ATen/ATen.h>
#include <nsimplex/graph_builders.h>
#include <nsimplex/graph_layers.h>
#include <nsimplex/graph_structure.h>

#include <string>

#include "support/error.h"

namespace nsimplex::training {

using at::Tensor;

EncoderNetwork::EncoderNetwork(const EncoderNetworkOptions& o) : options_(o) {
  const int64_t head_dim = o.head_dim > 0 ? o.head_dim : o.hidden / o.heads;
  if (o.form != AttentionForm::softmax) {
    features_ = register_module("features", RandomFeatures(head_dim, o.features.count));
  }
  embedding_ = register_module("embedding", torch::nn::Linear(o.in_channels, o.hidden));
  for (int64_t index = 0; index <= o.layers; ++index) {
    EquivariantEncoderOptions layer;
    layer.attention.input = o.input;
    layer.attention.output = index == o.layers ? o.output : o.input;
    layer.attention.in_channels = layer.attention.out_channels = o.hidden;
    layer.attention.heads = o.heads;
    layer.attention.head_dim = head_dim;
    layer.attention.form = o.form;
    layer.attention.features = o.features.map;
    layer.attention.classes = o.classes;
    layer.dropout = o.dropout;
    layers_.push_back(
        register_module("layer" + std::to_string(index), EquivariantEncoder(layer, features_)));
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
