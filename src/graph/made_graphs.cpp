// Graphs that are made rather than read: tensors around the generators, and their operators.

#include <ATen/ATen.h>
#include <nsimplex/graph_builders.h>
#include <nsimplex/graph_generators.h>
#include <torch/library.h>

#include "graph/generators.h"
#include "graph/view.h"

namespace nsimplex {

using at::Tensor;

TupleBatch chain_graphs(const Tensor& nodes) {
  graph::check_numbers("chain_graphs", "nodes", nodes, 1, "[B]");
  const Tensor counts = nodes.contiguous();
  std::vector<int64_t> tuples, tuple_offsets = {0}, node_offsets = {0};
  for (const int64_t count : graph::view_numbers(counts)) {
    TORCH_CHECK_VALUE(count >= 0, "[chain_graphs] nodes: expected at least 0, got ", count);
    const int64_t first = node_offsets.back();
    for (int64_t node = first; node + 1 < first + count; ++node) {
      tuples.insert(tuples.end(), {node, node + 1});
    }
    tuple_offsets.push_back(static_cast<int64_t>(tuples.size()) / 2);
    node_offsets.push_back(first + count);
  }
  return {graph::to_tensor(std::move(tuples)).view({-1, 2}),
          graph::to_tensor(std::move(tuple_offsets)), graph::to_tensor(std::move(node_offsets)),
          Symmetry::undirected};
}

TupleBatch barabasi_albert_graph(int64_t nodes, int64_t links, int64_t seed) {
  TORCH_CHECK_VALUE(links >= 1, "[barabasi_albert_graph] links: expected at least 1, got ", links);
  TORCH_CHECK_VALUE(nodes > links, "[barabasi_albert_graph] nodes: expected more than links, ",
                    links, ", got ", nodes);
  const Tensor edges =
      graph::to_tensor(graph::preferential_attachment(nodes, links, static_cast<uint64_t>(seed)))
          .view({-1, 2});
  return edge_tuples(edges, nodes, {.symmetry = Symmetry::undirected}).batch;
}

namespace {

using Batch = std::tuple<Tensor, Tensor, Tensor>;

Batch chains(const Tensor& nodes) {
  TupleBatch batch = chain_graphs(nodes);
  return {batch.tuples, batch.tuple_offsets, batch.node_offsets};
}

Batch barabasi_albert(int64_t nodes, int64_t links, int64_t seed) {
  TupleBatch batch = barabasi_albert_graph(nodes, links, seed);
  return {batch.tuples, batch.tuple_offsets, batch.node_offsets};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("graph_chains(Tensor nodes) -> (Tensor, Tensor, Tensor)", TORCH_FN(chains));
  m.def("graph_barabasi_albert(int nodes, int links, int seed) -> (Tensor, Tensor, Tensor)",
        TORCH_FN(barabasi_albert));
}

}  // namespace
}  // namespace nsimplex
