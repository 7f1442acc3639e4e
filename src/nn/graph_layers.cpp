// Message-passing graph layers: convolution, isomorphism, attention and virtual node.

#include <ATen/ATen.h>
#include <nsimplex/equivariant_layers.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/plain_tensor.h"

namespace nsimplex {

using at::Tensor;

GraphMessages graph_messages(const TupleBatch& graph) {
  TORCH_CHECK_VALUE(graph.order() == 2, "[graph_messages] graph: expected pairs, got tuples of ",
                    graph.order(), " nodes");
  const Tensor first = graph.tuples.select(1, 0), second = graph.tuples.select(1, 1);
  const Tensor rows = (first != second).nonzero().flatten();
  GraphMessages messages{first.index_select(0, rows), second.index_select(0, rows), rows,
                         graph.nodes()};
  if (graph.symmetry == Symmetry::undirected) {
    const Tensor forth = messages.source;
    messages.source = at::cat({forth, messages.target});
    messages.target = at::cat({messages.target, forth});
    messages.rows = at::cat({rows, rows});
  }
  return messages;
}

GraphMessages nearest_neighbours(const TupleBatch& nodes, const Tensor& points, int64_t k) {
  const int64_t count = nodes.nodes();
  TORCH_CHECK_VALUE(points.dim() == 2 && points.size(0) == count && is_floating(points),
                    "[nearest_neighbours] points: expected floating point [", count, ", d], got ",
                    points.sizes());
  TORCH_CHECK_VALUE(k >= 0, "[nearest_neighbours] k: expected at least 0, got ", k);
  const at::NoGradGuard no_grad;
  std::vector<Tensor> source, target;
  const auto options = nodes.node_offsets.options();
  for (int64_t graph = 0; graph < nodes.graphs(); ++graph) {
    const int64_t begin = nodes.node_offsets[graph].item<int64_t>();
    const int64_t size = nodes.node_offsets[graph + 1].item<int64_t>() - begin;
    const int64_t near = std::min(k, size - 1);
    if (near < 1) continue;
    const Tensor own = points.narrow(0, begin, size).to(at::kDouble);
    Tensor distances = (own.unsqueeze(1) - own.unsqueeze(0)).square().sum(-1);
    distances.fill_diagonal_(std::numeric_limits<double>::infinity());
    const Tensor order = distances.argsort(/*stable=*/true, /*dim=*/1, /*descending=*/false);
    source.push_back(order.narrow(1, 0, near).flatten() + begin);
    target.push_back(at::arange(begin, begin + size, options).repeat_interleave(near));
  }
  if (source.empty()) {
    const Tensor none = at::empty({0}, options);
    return {none, none, none, count};
  }
  const Tensor heard = at::cat(source);
  return {heard, at::cat(target), at::arange(heard.size(0), options), count};
}

Tensor graphs_of_nodes(const TupleBatch& batch) {
  const Tensor sizes = batch.node_offsets.diff();
  return at::arange(batch.graphs(), sizes.options()).repeat_interleave(sizes);
}

namespace {

using at::Tensor;

// Sums [rows, ..] into [size, ..] by an int64 index [rows].
Tensor segment_sum(const Tensor& rows, const Tensor& index, int64_t size) {
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = size;
  return at::zeros(shape, rows.options()).index_add(0, index, rows);
}

void check_input(const char* layer, const Tensor& x, const GraphMessages& messages,
                 int64_t channels) {
  TORCH_CHECK_VALUE(x.dim() == 2 && x.size(0) == messages.nodes && x.size(1) == channels, "[",
                    layer, "] x: expected [", messages.nodes, ", ", channels, "], got ", x.sizes());
}

// The messages of nodes: their features x, or ReLU(x + U e) with message features e.
Tensor messages_of(const char* layer, const Tensor& x, const GraphMessages& messages,
                   torch::nn::Linear& projection, const std::optional<Tensor>& edges,
                   int64_t channels) {
  const Tensor said = x.index_select(0, messages.source);
  TORCH_CHECK_VALUE(edges.has_value() == (channels > 0), "[", layer, "] edges: expected ",
                    channels > 0 ? "features of messages" : "none",
                    channels > 0 ? ", got none" : ", got some");
  if (!edges) return said;
  TORCH_CHECK_VALUE(
      edges->dim() == 2 && edges->size(0) == messages.source.size(0) && edges->size(1) == channels,
      "[", layer, "] edges: expected [", messages.source.size(0), ", ", channels, "], got ",
      edges->sizes());
  return (said + projection->forward(*edges)).relu();
}

torch::nn::Linear without_bias(int64_t in, int64_t out) {
  return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(false));
}

}  // namespace

GraphConvolutionImpl::GraphConvolutionImpl(const MessageLayerOptions& options) : options_(options) {
  reset();
}

void GraphConvolutionImpl::reset() {
  const auto [in, out, edge_channels] = options_;
  linear_ = register_module("linear", without_bias(in, out));
  if (edge_channels > 0) edges_ = register_module("edges", without_bias(edge_channels, out));
  bias_ = register_parameter("bias", at::zeros({out}));
}

Tensor GraphConvolutionImpl::forward(const Tensor& x, const GraphMessages& messages,
                                     const std::optional<Tensor>& edges) {
  check_input("GraphConvolution", x, messages, options_.in_channels);
  const Tensor h = linear_->forward(x);
  const Tensor ones = at::ones({messages.target.size(0)}, h.options().requires_grad(false));
  const Tensor degrees = segment_sum(ones, messages.target, messages.nodes) + 1;
  const Tensor scale = degrees.rsqrt();
  const Tensor weights =
      scale.index_select(0, messages.source) * scale.index_select(0, messages.target);
  const Tensor said =
      messages_of("GraphConvolution", h, messages, edges_, edges, options_.edge_channels);
  return h / degrees.unsqueeze(1) +
         segment_sum(said * weights.unsqueeze(1), messages.target, messages.nodes) + bias_;
}

GraphIsomorphismImpl::GraphIsomorphismImpl(const MessageLayerOptions& options) : options_(options) {
  reset();
}

void GraphIsomorphismImpl::reset() {
  const auto [in, out, edge_channels] = options_;
  first_ = register_module("first", torch::nn::Linear(in, out));
  second_ = register_module("second", torch::nn::Linear(out, out));
  if (edge_channels > 0) edges_ = register_module("edges", without_bias(edge_channels, in));
  norm_ = register_module("norm", torch::nn::BatchNorm1d(out));
}

Tensor GraphIsomorphismImpl::forward(const Tensor& x, const GraphMessages& messages,
                                     const std::optional<Tensor>& edges) {
  check_input("GraphIsomorphism", x, messages, options_.in_channels);
  const Tensor said =
      messages_of("GraphIsomorphism", x, messages, edges_, edges, options_.edge_channels);
  const Tensor heard = x + segment_sum(said, messages.target, messages.nodes);
  return norm_->forward(second_->forward(first_->forward(heard).relu()).relu());
}

GraphAttentionImpl::GraphAttentionImpl(const MessageLayerOptions& options, int64_t heads)
    : options_(options), heads_(heads) {
  TORCH_CHECK_VALUE(heads >= 1, "[GraphAttention] heads: expected at least 1, got ", heads);
  TORCH_CHECK_VALUE(options.edge_channels == 0, "[GraphAttention] edge_channels: expected 0, got ",
                    options.edge_channels);
  reset();
}

void GraphAttentionImpl::reset() {
  const int64_t out = options_.out_channels;
  linear_ = register_module("linear", without_bias(options_.in_channels, heads_ * out));
  const double deviation = 1 / std::sqrt(3.0 * static_cast<double>(out));
  source_ = register_parameter("source", at::randn({heads_, out}) * deviation);
  target_ = register_parameter("target", at::randn({heads_, out}) * deviation);
  bias_ = register_parameter("bias", at::zeros({out}));
}

Tensor GraphAttentionImpl::forward(const Tensor& x, const GraphMessages& messages) {
  constexpr double kSlope = 0.2;
  check_input("GraphAttention", x, messages, options_.in_channels);
  const int64_t n = messages.nodes;
  const Tensor h = linear_->forward(x).view({n, heads_, options_.out_channels});
  // A node also receives from itself.
  const Tensor self = at::arange(n, messages.source.options());
  const Tensor source = at::cat({messages.source, self}), target = at::cat({messages.target, self});
  const Tensor logits = at::leaky_relu(
      (h * source_).sum(-1).index_select(0, source) + (h * target_).sum(-1).index_select(0, target),
      kSlope);  // [e + n, heads]
  const Tensor largest =
      at::full({n, heads_}, -std::numeric_limits<double>::infinity(), logits.options())
          .scatter_reduce(0, target.unsqueeze(1).expand_as(logits), logits.detach(), "amax");
  const Tensor terms = (logits - largest.index_select(0, target)).exp();
  const Tensor weights = terms / segment_sum(terms, target, n).index_select(0, target);
  const Tensor said = (h.index_select(0, source) * weights.unsqueeze(-1)).sum(1);
  return segment_sum(said, target, n) + bias_;
}

VirtualNodeImpl::VirtualNodeImpl(int64_t channels) : channels_(channels) { reset(); }

void VirtualNodeImpl::reset() {
  first_ = register_module("first", torch::nn::Linear(channels_, channels_));
  second_ = register_module("second", torch::nn::Linear(channels_, channels_));
}

Tensor VirtualNodeImpl::forward(const Tensor& state, const Tensor& x, const Tensor& graphs) {
  const Tensor heard = state + segment_sum(x, graphs, state.size(0));
  return state + second_->forward(first_->forward(heard).relu()).relu();
}

}  // namespace nsimplex
