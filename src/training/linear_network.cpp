#include "training/linear_network.h"

#include <ATen/ATen.h>

#include <string>

#include "support/error.h"

namespace nsimplex::training {

using at::Tensor;

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

}  // namespace nsimplex::training
