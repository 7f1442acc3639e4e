// A small graph as a batch, for tests of networks on graphs.
#pragma once

#include <nsimplex/graph.h>

#include <vector>

#include "lab/graphs/graph_task.h"

namespace nsimplex::test {

/// One graph: nodes 0 .. n - 1 with features [n, C] and undirected edges with features [e, D]. `ends` lists the two ends
/// of each edge; every node also gets a loop.
inline training::GraphBatch graph_of(const std::vector<int64_t>& ends, const at::Tensor& nodes,
                                     const at::Tensor& edges) {
  const at::Tensor tuples = at::tensor(ends, at::kLong).view({-1, 2});
  const DerivedTuples graph = edge_tuples(tuples, nodes.size(0), {.loops = true});
  return {
      graph.batch, node_and_edge_features(graph, nodes, edges), project_tuples(graph.batch, 0), {}};
}

}  // namespace nsimplex::test
