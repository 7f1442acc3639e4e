#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/symmetry.h>
#include <nsimplex/version.h>

#include <optional>
#include <vector>

/// Sets, graphs and hypergraphs as lists of tuples of nodes, many in one batch without padding.
///
/// Everything here prepares data: plain functions on the CPU, int64 throughout, without gradients.
/// Errors are c10::ValueError or c10::TypeError with one line that names the argument, what was
/// expected and what came.
namespace nsimplex {

/// B hypergraphs, each a list of k-tuples of its nodes, one after the other.
///
/// Nodes are numbered through the whole batch: graph g owns node_offsets[g] ..
/// node_offsets[g + 1] - 1, and its tuples are the rows tuple_offsets[g] .. tuple_offsets[g + 1] -
/// 1. Features are tensors of their own, [m, d], in the order of these rows. What belongs to a node
/// lives on the diagonal: for k = 2 on the loop (i, i). k = 1 is a set of points; for k = 0 every
/// graph has at most one row, the empty tuple.
struct TupleBatch {
  at::Tensor tuples;         ///< int64 [m, k]
  at::Tensor tuple_offsets;  ///< int64 [B + 1], from 0 to m
  at::Tensor node_offsets;   ///< int64 [B + 1], from 0 to the number of nodes
  Symmetry symmetry = Symmetry::ordered;

  int64_t size() const { return tuples.size(0); }               ///< m
  int64_t order() const { return tuples.size(1); }              ///< k
  int64_t graphs() const { return tuple_offsets.size(0) - 1; }  ///< B
  NSIMPLEX_API int64_t nodes() const;                           ///< of the whole batch
};

/// A batch whose parts have been checked, contiguous. Refused are: other dtypes, shapes or devices;
/// offsets that do not rise from 0 to the end; a node outside its graph; a tuple that comes twice;
/// equal entries when loop_free; falling entries when undirected.
///
/// Complexity: O(m k), and where the rows do not ascend, O(m k log(nodes)) for sorting them.
NSIMPLEX_API TupleBatch tuple_batch(const at::Tensor& tuples, const at::Tensor& tuple_offsets,
                                    const at::Tensor& node_offsets,
                                    Symmetry symmetry = Symmetry::ordered);

/// One graph on nodes 0 .. nodes - 1.
NSIMPLEX_API TupleBatch tuple_batch(const at::Tensor& tuples, int64_t nodes,
                                    Symmetry symmetry = Symmetry::ordered);

/// Refuses what tuple_batch() refuses, of a batch put together by hand. `name` stands in the
/// message, as in "[name] tuples: expected ..".
NSIMPLEX_API void check_tuples(const TupleBatch& batch, const char* name = "tuple_batch");

/// Refuses features of these tuples that are not floating point [m, d], or hold a NaN or infinity.
NSIMPLEX_API void check_features(const TupleBatch& batch, const at::Tensor& features,
                                 const char* name = "features");

/// Batches of tuples made from edges, nodes or other batches. All of these give rows in
/// lexicographic order, each once. Time is that of sorting what is returned.

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

/// Graphs and sets that are made rather than read. Graphs are undirected, without loops.

/// Chains 0 - 1 - .. - (n - 1), one for each number in `nodes`, int64 [B].
NSIMPLEX_API TupleBatch chain_graphs(const at::Tensor& nodes);

/// A graph that grows by preferential attachment: node `links` is joined to all before it, every
/// later one to `links` different nodes, each drawn with a probability in proportion to its links
/// so far. links (nodes - links) edges; a few hubs, most nodes near `links`. The same on every
/// machine for the same seed. O(edges log(edges)) expected.
///
/// Source: Barabasi and Albert, "Emergence of scaling in random networks", Science 286 (1999).
NSIMPLEX_API TupleBatch barabasi_albert_graph(int64_t nodes, int64_t links, int64_t seed);

/// Points of many sets, one set after the other: what graphs are made of.
struct PointSets {
  at::Tensor points;        ///< fp32 [n, 2], in the unit square
  at::Tensor node_offsets;  ///< int64 [sets + 1], from 0 to n: the points of each set
};

/// Sets of uniform points in the unit square, each of least .. most points, every number as likely.
/// Coordinates are multiples of 2^-22 below 1, and the points of a set differ. The same on every
/// machine for the same seed; a set does not depend on how many there are.
NSIMPLEX_API PointSets random_point_sets(int64_t sets, int64_t least, int64_t most, int64_t seed);

/// The edges of the Delaunay triangulation of each set of points: no circle through the corners of
/// a triangle has a point inside. points: floating point [n, 2]; node_offsets: int64 [B + 1], one
/// set without it.
///
/// Exact for points on a grid, to which every set is moved first: 2^22 steps in the smallest power
/// of two that is not below its extent in x or y. Points of random_point_sets() are on it already;
/// others move by half a step at most, 2^-23 of a unit square. Points on one line are joined to
/// their neighbours on it, two points to each other; where more than three lie on an empty circle,
/// the polygon is cut into triangles from its lowest number on.
///
/// Errors: c10::ValueError for a NaN or infinity, other shapes, and two points of a set that are
/// equal on the grid. Complexity: O(n log n), sets in parallel.
NSIMPLEX_API TupleBatch delaunay_graph(
    const at::Tensor& points, const std::optional<at::Tensor>& node_offsets = std::nullopt);

/// What the tuples of a batch say about its nodes. Neighbours are nodes that share a tuple,
/// whatever their places in it; loops make none. For k = 2 this is the graph without directions.

/// Neighbours of every node of a batch, as compressed sparse rows.
struct Adjacency {
  at::Tensor offsets;     ///< int64 [n + 1]
  at::Tensor neighbours;  ///< int64, ascending for each node, each once
};

NSIMPLEX_API Adjacency adjacency(const TupleBatch& batch);

/// Neighbours of every node: int64 [n].
NSIMPLEX_API at::Tensor node_degrees(const TupleBatch& batch);

/// One number for all nodes that tuples connect: int64 [n], from 0 in the order of the lowest node
/// of each component, through the whole batch.
NSIMPLEX_API at::Tensor connected_components(const TupleBatch& batch);

/// The pairs of nodes of a graph that have one label, undirected and without loops: a partition of
/// its nodes as a graph. labels: int64 [n], any numbers; node_offsets: int64 [B + 1].
///
/// Complexity: O(n log n) and what it returns.
NSIMPLEX_API TupleBatch label_cliques(const at::Tensor& labels, const at::Tensor& node_offsets);

/// Every connected component completed to a clique: the label_cliques() of connected_components(),
/// a partition of the nodes whatever edges were predicted.
NSIMPLEX_API TupleBatch component_cliques(const TupleBatch& batch);

/// The simplices of the clique complex of a graph (order 2): element s - 1 holds the cliques of s
/// nodes, s = 1 .. largest, as undirected batches.
///
/// Complexity: O(m) for edges, O(m^1.5) for triangles, at most that times (2m)^((s - 3) / 2)
/// beyond.
NSIMPLEX_API std::vector<TupleBatch> simplices(const TupleBatch& batch, int64_t largest);

/// The line graph of an undirected graph without loops: its nodes are the rows of the batch, its
/// edges (undirected) the pairs of rows that share a node. Complexity: O(sum of squared degrees).
struct LineGraph {
  TupleBatch batch;
  at::Tensor shared;  ///< int64 [m]: the node that the two edges share
};

NSIMPLEX_API LineGraph line_graph(const TupleBatch& batch);

struct LaplacianEigenvectors {
  at::Tensor values;   ///< float64 [B, count], ascending
  at::Tensor vectors;  ///< float64 [n, count], of length 1 on each graph
};

/// The `count` lowest eigenvectors of each graph's normalised Laplacian, encodings of its nodes:
///
///     L = I - D^-1/2 A D^-1/2 = U^T diag(values) U
///
/// with A from adjacency() and a row of zeros for a node without neighbours. The first vector of a
/// connected graph, of value 0, is D^1/2 1 up to scale. Signs: the entry of largest magnitude is
/// positive, the first of those within 1e-6 of it. Where an eigenvalue is repeated the vectors are
/// one orthonormal basis of many; a model should not depend on which. Graphs with fewer nodes than
/// `count` have zeros in the columns they lack. Bits do not depend on the number of threads.
///
/// Complexity: up to 256 nodes O(n^3). Larger graphs are factorised sparsely while the factor stays
/// thin (chains, trees, planar meshes: about O(n log n)), else iterated on, O(m) a step.
///
/// Source: Kim et al., "Transformers Generalize DeepSets and Can be Extended to Graphs and
/// Hypergraphs", equation 31.
NSIMPLEX_API LaplacianEigenvectors laplacian_eigenvectors(const TupleBatch& batch, int64_t count);

}  // namespace nsimplex
