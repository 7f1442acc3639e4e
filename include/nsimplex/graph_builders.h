#pragma once

#include <nsimplex/graph.h>

#include <optional>
#include <vector>

/// Batches of tuples made from edges, nodes or other batches. All of these give rows in
/// lexicographic order, each once. Time is that of sorting what is returned.
namespace nsimplex {

/// A batch whose rows were made from the rows of something else.
struct DerivedTuples {
  TupleBatch batch;
  at::Tensor origin;  ///< int64 [m]: the row that each row comes from, -1 for a row that is new
};

struct EdgeOptions {
  Symmetry symmetry = Symmetry::ordered;
  bool both_directions = true;  ///< when ordered: an edge (i, j) gives (i, j) and (j, i)
  bool loops = false;           ///< add (i, i) for every node that has none, isolated ones included
};

/// The graph of edges int64 [E, 2] between the nodes 0 .. nodes - 1. Refused are edges that come
/// twice, where directions do not count also as (i, j) and (j, i). `origin` counts edges.
NSIMPLEX_API DerivedTuples edge_tuples(const at::Tensor& edges, int64_t nodes,
                                       const EdgeOptions& options = {});

/// All k-tuples of the nodes of every graph (a set of points, [n]^k, for models that see non-edges
/// too): n^k of them when ordered, those with distinct entries when loop_free; when undirected one
/// of every multiset, or with loops = false of every set. nodes: int64 [B], how many each graph
/// has.
NSIMPLEX_API TupleBatch complete_tuples(const at::Tensor& nodes, int64_t order,
                                        Symmetry symmetry = Symmetry::ordered, bool loops = true);

/// The batch and the tuple (i, .., i) of every node that lacks it. Not for loop-free batches.
NSIMPLEX_API DerivedTuples with_loops(const TupleBatch& batch);

/// The ordered batch of an undirected one: every order of the entries of every tuple.
NSIMPLEX_API DerivedTuples all_orders(const TupleBatch& batch);

/// E -> E', what a layer from order k to order l <= k is computed on. For l = k the batch itself;
/// else all l-tuples over the entries of each tuple, loops included, duplicates merged; with
/// distinct entries when loop_free and ascending when undirected; for l = 0 the empty tuple of
/// every graph. The symmetry is the batch's unless another is given (for l < k).
///
/// all_nodes, for 1 <= l < k: whether nodes without a tuple get (i, .., i) too; true for l = 1
/// makes row i that of node i. Absent: for l = 1 such nodes are an error, since the rows behind
/// them would move up in silence; for l > 1 they are left out.
NSIMPLEX_API TupleBatch project_tuples(const TupleBatch& batch, int64_t order,
                                       std::optional<Symmetry> symmetry = std::nullopt,
                                       std::optional<bool> all_nodes = std::nullopt);

/// One batch of the graphs of all: of one order and symmetry, at least one batch.
NSIMPLEX_API TupleBatch concatenate_graphs(const std::vector<TupleBatch>& batches);

/// The graphs of a batch, each with its nodes counted from 0.
NSIMPLEX_API std::vector<TupleBatch> split_graphs(const TupleBatch& batch);

/// Features of derived tuples: row r is features[origin[r]], or zero for a new row. Differentiable.
NSIMPLEX_API at::Tensor derived_features(const at::Tensor& features, const at::Tensor& origin);

/// Features [m, dv + de] of a graph or hypergraph in which every node has its loop (i, .., i): node
/// features [n, dv] on the loops, then edge features [E, de] on the rows that come from an edge,
/// zero elsewhere, so that a projection sees which is which. Differentiable. A node without a loop
/// is an error unless dv = 0.
NSIMPLEX_API at::Tensor node_and_edge_features(const DerivedTuples& graph,
                                               const at::Tensor& node_features,
                                               const at::Tensor& edge_features);

}  // namespace nsimplex
