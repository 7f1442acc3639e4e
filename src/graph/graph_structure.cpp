// Properties of nodes that follow from tuples: tensors around the Torch-free code of this folder.

#include <ATen/ATen.h>
#include <nsimplex/graph.h>

#include <algorithm>

#include "graph/adjacency.h"
#include "graph/graph_view.h"
#include "graph/laplacian.h"
#include "graph/tuple_lists.h"
#include "support/as_function.h"
#include "support/parallel.h"
#include "support/size_limits.h"

namespace nsimplex {

using at::Tensor;
using graph::CheckedBatch;

namespace {

void check_graph(const TupleBatch& batch, const char* name) {
  TORCH_CHECK_VALUE(batch.order() == 2, "[", name,
                    "] batch: expected a graph (order 2), got order ", batch.order());
}

}  // namespace

Adjacency adjacency(const TupleBatch& batch) {
  graph::Adjacency rows = graph::adjacency_of(CheckedBatch(batch, "adjacency").view());
  return {graph::to_tensor(std::move(rows.offsets)), graph::to_tensor(std::move(rows.neighbours))};
}

Tensor node_degrees(const TupleBatch& batch) {
  const CheckedBatch checked(batch, "node_degrees");
  return graph::to_tensor(graph::adjacency_of(checked.view()).offsets).diff();
}

Tensor connected_components(const TupleBatch& batch) {
  return graph::to_tensor(graph::components_of(CheckedBatch(batch, "connected_components").view()));
}

TupleBatch label_cliques(const Tensor& labels, const Tensor& node_offsets) {
  constexpr const char* kName = "label_cliques";
  graph::check_numbers(kName, "labels", labels, 1, "[n]");
  const Tensor nodes = graph::checked_offsets(kName, node_offsets, labels.size(0));
  const Tensor numbers = labels.contiguous();
  return graph::to_batch(
             graph::label_cliques(graph::view_numbers(numbers), graph::view_numbers(nodes)), nodes,
             Symmetry::undirected)
      .batch;
}

TupleBatch component_cliques(const TupleBatch& batch) {
  const CheckedBatch checked(batch, "component_cliques");
  return label_cliques(graph::to_tensor(graph::components_of(checked.view())),
                       checked.batch().node_offsets);
}

std::vector<TupleBatch> simplices(const TupleBatch& batch, int64_t largest) {
  const CheckedBatch checked(batch, "simplices");
  check_graph(batch, "simplices");
  TORCH_CHECK_VALUE(largest >= 1 && largest <= graph::kMostOrder,
                    "[simplices] largest: expected 1 to ", graph::kMostOrder, ", got ", largest);
  std::vector<TupleBatch> result;
  for (graph::TupleList& list : graph::cliques_of(graph::adjacency_of(checked.view()), largest)) {
    result.push_back(
        graph::to_batch(std::move(list), checked.batch().node_offsets, Symmetry::undirected).batch);
  }
  return result;
}

LineGraph line_graph(const TupleBatch& batch) {
  const CheckedBatch checked(batch, "line_graph");
  check_graph(batch, "line_graph");
  TORCH_CHECK_VALUE(batch.symmetry == Symmetry::undirected,
                    "[line_graph] batch: expected an undirected graph");
  const Tensor loops = batch.tuples.select(1, 0) == batch.tuples.select(1, 1);
  TORCH_CHECK_VALUE(!loops.any().item<bool>(),
                    "[line_graph] batch: expected no loops, got one in row ",
                    loops.to(at::kByte).argmax().item<int64_t>());
  auto [edges, shared] = graph::to_batch(graph::line_graph_of(checked.view().tuples, batch.nodes()),
                                         checked.batch().tuple_offsets, Symmetry::undirected);
  return {std::move(edges), std::move(shared)};
}

LaplacianEigenvectors laplacian_eigenvectors(const TupleBatch& batch, int64_t count) {
  const CheckedBatch checked(batch, "laplacian_eigenvectors");
  TORCH_CHECK_VALUE(count >= 0, "[laplacian_eigenvectors] count: expected at least 0, got ", count);
  as_function("laplacian_eigenvectors",
              [&] { require_room("count", {std::max(batch.nodes(), batch.graphs()), count}); });
  const graph::Adjacency neighbours = graph::adjacency_of(checked.view());
  const auto nodes = checked.view().node_offsets;
  LaplacianEigenvectors result{at::zeros({batch.graphs(), count}, at::kDouble),
                               at::zeros({batch.nodes(), count}, at::kDouble)};
  double* values = result.values.mutable_data_ptr<double>();
  double* vectors = result.vectors.mutable_data_ptr<double>();
  parallel_tasks(batch.graphs(), [&](int64_t graph, int) {
    const int64_t own = std::min(count, nodes[graph + 1] - nodes[graph]);
    const graph::Spectrum spectrum =
        graph::laplacian_spectrum(neighbours, nodes[graph], nodes[graph + 1], own);
    std::ranges::copy(spectrum.values, values + graph * count);
    for (int64_t node = nodes[graph]; node < nodes[graph + 1] && own > 0; ++node) {
      std::copy_n(spectrum.vectors.data() + (node - nodes[graph]) * own, own,
                  vectors + node * count);
    }
  });
  return result;
}

}  // namespace nsimplex
