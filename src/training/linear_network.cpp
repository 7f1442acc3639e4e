#include "training/linear_network.h"

#include <ATen/ATen.h>

#include <string>

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
  options_.head.in_channels = options.hidden;
  head_ = register_module("head", std::make_shared<GraphHead>(options_.head));
}

GraphModel::Forward LinearNetwork::prepare(const GraphBatch& batch) {
  const EquivariantPlan same = equivariant_plan(batch.input, batch.input);
  const EquivariantPlan change =
      equivariant_plan(batch.input, batch.output, {.classes = options_.last_classes});
  const Tensor transposed = options_.symmetric ? transposed_rows(batch.output) : Tensor();
  return [this, same, change, transposed, features = batch.features] {
    Tensor x = features;
    for (size_t index = 0; index + 1 < layers_.size(); ++index) {
      x = layers_[index]->forward(x, same).relu();
    }
    x = head_->forward(layers_.back()->forward(x, change));
    return options_.symmetric ? (x + x.index_select(0, transposed)) / 2 : x;
  };
}

}  // namespace nsimplex::training
