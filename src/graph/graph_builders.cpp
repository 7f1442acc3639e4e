// Makes batches of tuples from edges, nodes or other batches: tensors around tuple_lists. It also
// has the tensors around the generators of graphs, and their operators.

#include <ATen/ATen.h>
#include <nsimplex/graph.h>
#include <torch/library.h>

#include "graph/graph_view.h"
#include "graph/random_graphs.h"
#include "graph/tuple_lists.h"
#include "support/as_function.h"
#include "support/size_limits.h"
#include "support/transforms.h"

namespace nsimplex {

using at::Tensor;
using graph::CheckedBatch;

namespace {

// Edges as rows for the check: ascending pairs if directions do not count.
Tensor comparable_edges(const Tensor& edges, bool directed) {
  if (directed) return edges.contiguous();
  return at::stack({edges.amin(1), edges.amax(1)}, 1);
}

void check_order(const char* function, int64_t order) {
  TORCH_CHECK_VALUE(order >= 0 && order <= graph::kMostOrder, "[", function,
                    "] order: expected 0 to ", graph::kMostOrder, ", got ", order);
}

Tensor offsets_of_counts(const Tensor& counts) {
  return at::constant_pad_nd(counts.cumsum(0), {1, 0});
}

}  // namespace

DerivedTuples edge_tuples(const Tensor& edges, int64_t nodes, const EdgeOptions& options) {
  graph::check_numbers("edge_tuples", "edges", edges, 2, "[E, 2]");
  TORCH_CHECK_VALUE(edges.size(1) == 2, "[edge_tuples] edges: expected shape [E, 2], got ",
                    edges.sizes(),
                    edges.size(0) == 2 ? ": [2, E] is transposed, pass edges.t()" : "");
  TORCH_CHECK_VALUE(nodes >= 0, "[edge_tuples] nodes: expected at least 0, got ", nodes);
  const Symmetry symmetry = options.symmetry;
  TORCH_CHECK_VALUE(!options.loops || symmetry != Symmetry::loop_free,
                    "[edge_tuples] loops: a loop-free graph has none");
  if (options.loops) as_function("edge_tuples", [&] { require_room("nodes", {nodes, 2}); });
  const bool undirected = symmetry == Symmetry::undirected;
  const bool both = options.both_directions && !undirected;
  const Tensor unique = comparable_edges(edges, !both && !undirected);
  const Tensor node_offsets = at::tensor({int64_t{0}, nodes});
  const Tensor row_offsets = at::tensor({int64_t{0}, edges.size(0)});
  const auto fault_of = [&](const Tensor& rows, Symmetry as) {
    return graph::find_tuple_fault({graph::view_rows(rows), graph::view_numbers(row_offsets),
                                    graph::view_numbers(node_offsets), as},
                                   "edges");
  };
  const auto fault = fault_of(unique, symmetry);
  // If they are valid as arcs and there is no loop, some edge occurs in both directions.
  const bool looped = symmetry == Symmetry::loop_free &&
                      edges.select(1, 0).eq(edges.select(1, 1)).any().item<bool>();
  const bool twice = fault && !looped && !fault_of(edges.contiguous(), Symmetry::ordered);
  TORCH_CHECK_VALUE(!fault, "[edge_tuples] ", *fault,
                    !twice ? ""
                    : both ? "; edges that come in both directions want both_directions=False"
                           : "; an undirected graph wants each edge in one direction");

  graph::TupleList list{2, {}, {}};
  const graph::Rows rows = graph::view_rows(unique);
  list.reserve(rows.count * (both ? 2 : 1) + (options.loops ? nodes : 0));
  for (int64_t row = 0; row < rows.count; ++row) {
    const int64_t i = rows[row][0], j = rows[row][1];
    list.add(std::array{i, j}, row);
    if (both && i != j) list.add(std::array{j, i}, row);
  }
  for (int64_t node = 0; options.loops && node < nodes; ++node) {
    list.add(std::array{node, node}, -1);
  }
  return graph::to_batch(graph::sorted_unique(list, nodes), node_offsets, symmetry);
}

TupleBatch complete_tuples(const Tensor& nodes, int64_t order, Symmetry symmetry, bool loops) {
  graph::check_numbers("complete_tuples", "nodes", nodes, 1, "[B]");
  check_order("complete_tuples", order);
  const Tensor counts = nodes.contiguous();
  loops = loops && symmetry != Symmetry::loop_free;
  TORCH_CHECK_VALUE(loops || symmetry != Symmetry::ordered,
                    "[complete_tuples] loops: ordered tuples without them are loop_free");
  int64_t total = 0;
  for (const int64_t count : graph::view_numbers(counts)) {
    TORCH_CHECK_VALUE(count >= 0 && count <= graph::kMostEntries - total,
                      "[complete_tuples] nodes: expected at least 0 and at most ",
                      graph::kMostEntries, " in all, got ", count);
    total += count;
  }
  const Tensor node_offsets = offsets_of_counts(counts);
  return as_function("complete_tuples", [&] {
    return graph::to_batch(
               graph::complete_tuples(graph::view_numbers(node_offsets), order, symmetry, loops),
               node_offsets, symmetry)
        .batch;
  });
}

DerivedTuples with_loops(const TupleBatch& batch) {
  const CheckedBatch checked(batch, "with_loops");
  TORCH_CHECK_VALUE(batch.symmetry != Symmetry::loop_free,
                    "[with_loops] batch: a loop-free batch has no loops");
  TORCH_CHECK_VALUE(batch.order() >= 1, "[with_loops] batch: expected order 1 or more, got 0");
  return graph::to_batch(graph::with_loops(checked.view()), checked.batch().node_offsets,
                         batch.symmetry);
}

DerivedTuples all_orders(const TupleBatch& batch) {
  const CheckedBatch checked(batch, "all_orders");
  TORCH_CHECK_VALUE(batch.symmetry == Symmetry::undirected,
                    "[all_orders] batch: expected an undirected batch");
  TORCH_CHECK_VALUE(batch.order() >= 1, "[all_orders] batch: expected order 1 or more, got 0");
  return as_function("all_orders", [&] {
    return graph::to_batch(graph::all_orders(checked.view()), checked.batch().node_offsets,
                           Symmetry::ordered);
  });
}

TupleBatch project_tuples(const TupleBatch& batch, int64_t order, std::optional<Symmetry> symmetry,
                          std::optional<bool> all_nodes) {
  const CheckedBatch checked(batch, "project_tuples");
  TORCH_CHECK_VALUE(order >= 0 && order <= batch.order(), "[project_tuples] order: expected 0 to ",
                    batch.order(), ", the order of the batch, got ", order);
  const Symmetry wanted = symmetry.value_or(batch.symmetry);
  if (order == batch.order()) {
    TORCH_CHECK_VALUE(wanted == batch.symmetry,
                      "[project_tuples] symmetry: expected the batch's own for its own order");
    return checked.batch();
  }
  check_order("project_tuples", order);
  const TupleBatch projected = as_function("project_tuples", [&] {
    return graph::to_batch(graph::project(checked.view(), order, wanted),
                           checked.batch().node_offsets, wanted)
        .batch;
  });
  if (order == 0) return projected;
  if (all_nodes.value_or(false)) {
    TORCH_CHECK_VALUE(order == 1 || wanted != Symmetry::loop_free,
                      "[project_tuples] all_nodes: loop-free tuples of order ", order,
                      " hold no node alone, expected order 1");
    // A single entry is always distinct, so order 1 has a row for every node in any symmetry.
    return graph::to_batch(graph::with_loops(graph::ContiguousBatch(projected).view()),
                           projected.node_offsets, wanted)
        .batch;
  }
  const int64_t lack = order == 1 && !all_nodes ? batch.nodes() - projected.size() : 0;
  TORCH_CHECK_VALUE(lack == 0, "[project_tuples] batch: ", lack, " of ", batch.nodes(),
                    " nodes are in no tuple and would get no row; expected all_nodes=True, which "
                    "gives them one, or all_nodes=False, which leaves them out");
  return projected;
}

TupleBatch concatenate_graphs(const std::vector<TupleBatch>& batches) {
  TORCH_CHECK_VALUE(!batches.empty(), "[concatenate_graphs] batches: expected at least one");
  std::vector<Tensor> tuples, tuple_counts, node_counts;
  int64_t nodes = 0;
  for (const TupleBatch& batch : batches) {
    const CheckedBatch checked(batch, "concatenate_graphs");
    TORCH_CHECK_VALUE(batch.order() == batches[0].order() && batch.symmetry == batches[0].symmetry,
                      "[concatenate_graphs] batches: expected one order and symmetry, got orders ",
                      batches[0].order(), " and ", batch.order());
    tuples.push_back(batch.tuples + nodes);
    tuple_counts.push_back(batch.tuple_offsets.diff());
    node_counts.push_back(batch.node_offsets.diff());
    nodes += batch.nodes();
  }
  return {at::cat(tuples), offsets_of_counts(at::cat(tuple_counts)),
          offsets_of_counts(at::cat(node_counts)), batches[0].symmetry};
}

std::vector<TupleBatch> split_graphs(const TupleBatch& batch) {
  const CheckedBatch checked(batch, "split_graphs");
  const auto rows = checked.view().tuple_offsets, nodes = checked.view().node_offsets;
  std::vector<TupleBatch> graphs;
  for (int64_t graph = 0; graph < batch.graphs(); ++graph) {
    const Tensor own = batch.tuples.slice(0, rows[graph], rows[graph + 1]);
    graphs.push_back({own - nodes[graph], at::tensor({int64_t{0}, own.size(0)}),
                      at::tensor({int64_t{0}, nodes[graph + 1] - nodes[graph]}), batch.symmetry});
  }
  return graphs;
}

namespace graph {
namespace {

// Whether every origin is a row of features or -1. While a graph is traced, nobody can know.
void check_origins(const Tensor& origin, const c10::SymInt& rows) {
  if (!has_numbers(origin) || origin.numel() == 0) return;
  const BelowTransforms below;
  const Tensor numbers = below_transforms(origin);
  const int64_t high = numbers.max().item<int64_t>(), low = numbers.min().item<int64_t>();
  TORCH_CHECK_VALUE(low >= -1 && high < rows, "[derived_features] origin: expected rows -1 to ",
                    rows - 1, ", got ", low, " to ", high);
}

// Whether every node has one row of features and one loop that carries them.
void check_loops(const TupleBatch& batch, const Tensor& loop, const Tensor& features) {
  if (!has_numbers(batch.node_offsets) || !has_numbers(loop) || is_mapped(loop)) return;
  const BelowTransforms below;
  const int64_t nodes = below_transforms(batch.node_offsets)[-1].item<int64_t>();
  TORCH_CHECK_VALUE(features.sym_size(0) == nodes,
                    "[node_and_edge_features] node_features: expected shape [", nodes, ", d], got ",
                    features.sym_sizes());
  // A batch has no repeated tuples, so the number of loops is the number of nodes that have one.
  const int64_t lack = nodes - below_transforms(loop).sum().item<int64_t>();
  TORCH_CHECK_VALUE(lack == 0 || features.sym_size(1) == 0,
                    "[node_and_edge_features] graph: ", lack, " of ", nodes,
                    " nodes have no loop to carry their features; expected one of every node, as "
                    "edge_tuples(.., loops=True) and with_loops() add");
}

}  // namespace
}  // namespace graph

Tensor derived_features(const Tensor& features, const Tensor& origin) {
  graph::check_numbers("derived_features", "origin", origin, 1, "[m]", /*read=*/false);
  TORCH_CHECK_VALUE(features.dim() == 2, "[derived_features] features: expected shape [m, d], got ",
                    features.sym_sizes());
  graph::check_origins(origin, features.sym_size(0));
  // The row of zeros in front represents -1.
  const Tensor padded = at::constant_pad_nd(features, {0, 0, 1, 0});
  return padded.index_select(0, (origin + 1).to(features.device()));
}

Tensor node_and_edge_features(const DerivedTuples& graph, const Tensor& node_features,
                              const Tensor& edge_features) {
  const Tensor& tuples = graph.batch.tuples;
  TORCH_CHECK_VALUE(
      tuples.dim() == 2 && tuples.sym_size(1) >= 1,
      "[node_and_edge_features] graph: expected tuples of order 1 or more, got shape ",
      tuples.sym_sizes());
  TORCH_CHECK_VALUE(node_features.dim() == 2,
                    "[node_and_edge_features] node_features: expected shape [nodes, d], got ",
                    node_features.sym_sizes());
  TORCH_CHECK_VALUE(edge_features.dim() == 2,
                    "[node_and_edge_features] edge_features: expected shape [E, d], got ",
                    edge_features.sym_sizes());
  const Tensor first = tuples.select(1, 0), loop = (tuples == first.unsqueeze(1)).all(1);
  graph::check_loops(graph.batch, loop, node_features);
  const Tensor node = at::where(loop, first, -1);
  return at::cat(
      {derived_features(node_features, node), derived_features(edge_features, graph.origin)}, 1);
}

using at::Tensor;

TupleBatch chain_graphs(const Tensor& nodes) {
  graph::check_numbers("chain_graphs", "nodes", nodes, 1, "[B]");
  const Tensor counts = nodes.contiguous();
  std::vector<int64_t> tuples, tuple_offsets = {0}, node_offsets = {0};
  for (const int64_t count : graph::view_numbers(counts)) {
    TORCH_CHECK_VALUE(count >= 0, "[chain_graphs] nodes: expected at least 0, got ", count);
    as_function("chain_graphs",
                [&] { require_room("nodes", {saturating_sum(node_offsets.back(), count), 2}); });
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
  as_function("barabasi_albert_graph", [&] { require_room("nodes", {nodes - links, links, 2}); });
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
