#include "training/line_tokens.h"

#include <ATen/ATen.h>
#include <nsimplex/graph_structure.h>

#include "training/graph_head.h"

namespace nsimplex::training {

using at::Tensor;

LineTokens line_tokens(const TupleBatch& pairs, const Tensor& features, int64_t node_channels) {
  const Tensor nodes = features.index_select(0, loop_rows(pairs)).narrow(1, 0, node_channels);
  const Tensor reverse = transposed_rows(pairs);
  const Tensor first = pairs.tuples.select(1, 0), second = pairs.tuples.select(1, 1);
  const Tensor forth = (first < second).nonzero().flatten();  // one row an edge, lower node first
  const Tensor low = first.index_select(0, forth), high = second.index_select(0, forth);

  const Tensor degree = at::bincount(at::cat({low, high}), {}, pairs.nodes());
  const Tensor alone = (degree == 0).nonzero().flatten();
  const Tensor edges = features.narrow(1, node_channels, features.size(1) - node_channels);
  const Tensor nothing = at::zeros({alone.size(0), edges.size(1)}, features.options());
  const auto tokens = [&](const Tensor& from, const Tensor& to, const Tensor& rows) {
    return at::cat(
        {nodes.index_select(0, at::cat({from, alone})), nodes.index_select(0, at::cat({to, alone})),
         at::cat({edges.index_select(0, rows), nothing})},
        1);
  };

  const Tensor graph_of = graphs_of_nodes(pairs);
  const Tensor edge_graphs = graph_of.index_select(0, low);
  const Tensor offsets = at::zeros_like(pairs.tuple_offsets);
  offsets.slice(0, 1).copy_(at::bincount(edge_graphs, {}, pairs.graphs()).cumsum(0));
  const LineGraph line =
      line_graph({at::stack({low, high}, 1), offsets, pairs.node_offsets, Symmetry::undirected});
  GraphMessages messages = graph_messages(line.batch);
  messages.nodes += alone.size(0);
  const Tensor shared = nodes.index_select(0, line.shared.index_select(0, messages.rows));

  return {at::stack({tokens(low, high, forth), tokens(high, low, reverse.index_select(0, forth))}),
          std::move(messages), shared, at::cat({edge_graphs, graph_of.index_select(0, alone)})};
}

}  // namespace nsimplex::training
