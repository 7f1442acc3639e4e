// Who hears whom: messages of pairs and of nearest neighbours.

#include <ATen/ATen.h>
#include <nsimplex/graph_layers.h>

#include <algorithm>
#include <limits>

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
  TORCH_CHECK_VALUE(points.dim() == 2 && points.size(0) == count && points.is_floating_point(),
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

}  // namespace nsimplex
