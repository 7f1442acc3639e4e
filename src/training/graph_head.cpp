#include "training/graph_head.h"

#include <ATen/ATen.h>

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

// Where (i, j) stands among all pairs of the batch's nodes.
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

}  // namespace nsimplex::training
