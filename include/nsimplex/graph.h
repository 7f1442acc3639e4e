// Sets, graphs and hypergraphs as lists of tuples of nodes.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/symmetry.h>
#include <nsimplex/version.h>

#include <optional>
#include <vector>

/// Sets, graphs and hypergraphs as lists of tuples of nodes, with many in one batch without
/// padding.
///
/// All functions here prepare data. They are plain functions on the CPU, use int64 and have no
/// gradients. Errors are c10::ValueError or c10::TypeError. Their message is one line that names
/// the argument, the expectation and the value.
namespace nsimplex {

/// B hypergraphs, each a list of k-tuples of its nodes, stored one after the other.
///
/// Nodes are numbered through the whole batch. Graph g has the nodes node_offsets[g] ..
/// node_offsets[g + 1] - 1, and its tuples are the rows tuple_offsets[g] .. tuple_offsets[g + 1] -
/// 1. Features are separate tensors, [m, d], in the order of these rows. Data of a node belongs to
/// the diagonal: for k = 2 to the loop (i, i). k = 1 is a set of points. For k = 0 every graph has
/// at most one row, the empty tuple.
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

/// Makes a checked, contiguous batch. It refuses other dtypes, shapes or devices, offsets that do
/// not rise from 0 to the end, a node outside its graph, and repeated tuples. For loop_free it
/// refuses equal entries, for undirected descending entries.
///
/// Complexity: O(m k), or O(m k log(nodes)) for sorting if the rows do not ascend.
NSIMPLEX_API TupleBatch tuple_batch(const at::Tensor& tuples, const at::Tensor& tuple_offsets,
                                    const at::Tensor& node_offsets,
                                    Symmetry symmetry = Symmetry::ordered);

/// One graph on nodes 0 .. nodes - 1.
NSIMPLEX_API TupleBatch tuple_batch(const at::Tensor& tuples, int64_t nodes,
                                    Symmetry symmetry = Symmetry::ordered);

/// Checks a batch that was put together by hand, like tuple_batch(). `name` appears in the message,
/// as in "[name] tuples: expected ..".
NSIMPLEX_API void check_tuples(const TupleBatch& batch, const char* name = "tuple_batch");

/// Refuses features of these tuples that are not floating point [m, d] or contain a NaN or
/// infinity.
NSIMPLEX_API void check_features(const TupleBatch& batch, const at::Tensor& features,
                                 const char* name = "features");

/// Functions that make batches of tuples from edges, nodes or other batches. All return rows in
/// lexicographic order without repetitions. They take the time of sorting the result.

/// A batch whose rows were made from rows of another tensor.
struct DerivedTuples {
  TupleBatch batch;
  at::Tensor origin;  ///< int64 [m]: the source row of each row, -1 for a new row
};

struct EdgeOptions {
  Symmetry symmetry = Symmetry::ordered;
  bool both_directions = true;  ///< when ordered: an edge (i, j) gives (i, j) and (j, i)
  bool loops = false;  ///< adds (i, i) to every node that has none, including isolated ones
};

/// The graph of edges int64 [E, 2] between the nodes 0 .. nodes - 1. It refuses repeated edges;
/// without directions, (j, i) repeats (i, j). `origin` refers to edges.
NSIMPLEX_API DerivedTuples edge_tuples(const at::Tensor& edges, int64_t nodes,
                                       const EdgeOptions& options = {});

/// All k-tuples of the nodes of every graph: a set of points, [n]^k, for models that also see
/// non-edges. An ordered batch has n^k of them and a loop_free one those with distinct entries. An
/// undirected batch has one tuple per multiset, or per set with loops = false. nodes: int64 [B],
/// the number of nodes of each graph.
NSIMPLEX_API TupleBatch complete_tuples(const at::Tensor& nodes, int64_t order,
                                        Symmetry symmetry = Symmetry::ordered, bool loops = true);

/// Adds the tuple (i, .., i) to every node that lacks it. Not for loop-free batches.
NSIMPLEX_API DerivedTuples with_loops(const TupleBatch& batch);

/// The ordered batch of an undirected one: every permutation of every tuple.
NSIMPLEX_API DerivedTuples all_orders(const TupleBatch& batch);

/// E -> E', the tuples on which a layer from order k to order l <= k is computed. For l = k it is
/// the batch itself. Otherwise it has all l-tuples over the entries of each tuple, including loops,
/// without duplicates. They have distinct entries when loop_free and ascend when undirected. For
/// l = 0 it is the empty tuple of every graph. The symmetry is the batch's unless another is given
/// (for l < k).
///
/// all_nodes, for 1 <= l < k: whether nodes without a tuple also get (i, .., i). With true and
/// l = 1, row i belongs to node i. Absent: for l = 1 such nodes are an error, since the later rows
/// would silently move up; for l > 1 they are left out.
NSIMPLEX_API TupleBatch project_tuples(const TupleBatch& batch, int64_t order,
                                       std::optional<Symmetry> symmetry = std::nullopt,
                                       std::optional<bool> all_nodes = std::nullopt);

/// Joins the graphs of all batches into one. They must have the same order and symmetry, and there
/// must be at least one batch.
NSIMPLEX_API TupleBatch concatenate_graphs(const std::vector<TupleBatch>& batches);

/// The single graphs of a batch, each with its nodes counted from 0.
NSIMPLEX_API std::vector<TupleBatch> split_graphs(const TupleBatch& batch);

/// Features of derived tuples: row r is features[origin[r]], or zero for a new row. Differentiable.
NSIMPLEX_API at::Tensor derived_features(const at::Tensor& features, const at::Tensor& origin);

/// Features [m, dv + de] of a graph or hypergraph in which every node has its loop (i, .., i). Node
/// features [n, dv] are on the loops, then edge features [E, de] on the rows that come from an
/// edge. All other entries are zero, so that a projection can tell them apart. Differentiable. A
/// node without a loop is an error unless dv = 0.
NSIMPLEX_API at::Tensor node_and_edge_features(const DerivedTuples& graph,
                                               const at::Tensor& node_features,
                                               const at::Tensor& edge_features);

/// Generated graphs and sets of at most 2^29 numbers. Graphs are undirected, without loops.

/// Chains 0 - 1 - .. - (n - 1), one per number in `nodes`, int64 [B].
NSIMPLEX_API TupleBatch chain_graphs(const at::Tensor& nodes);

/// A graph that grows by preferential attachment. Node `links` is joined to all nodes before it.
/// Every later node is joined to `links` different nodes, each drawn with a probability in
/// proportion to its current degree. The graph has links (nodes - links) edges: a few hubs, and
/// most nodes near degree `links`. The same seed gives the same graph on every machine. O(edges
/// log(edges)) expected.
///
/// Source: Barabasi and Albert, "Emergence of scaling in random networks", Science 286 (1999).
NSIMPLEX_API TupleBatch barabasi_albert_graph(int64_t nodes, int64_t links, int64_t seed);

/// The points of many sets, one set after the other, from which graphs are made.
struct PointSets {
  at::Tensor points;        ///< fp32 [n, 2], in the unit square
  at::Tensor node_offsets;  ///< int64 [sets + 1], from 0 to n: the points of each set
};

/// Sets of uniform points in the unit square. Each has least .. most points, all numbers equally
/// likely. Coordinates are multiples of 2^-22 below 1, and the points of a set differ. The same
/// seed gives the same sets on every machine. A set does not depend on the number of sets.
NSIMPLEX_API PointSets random_point_sets(int64_t sets, int64_t least, int64_t most, int64_t seed);

/// The edges of the Delaunay triangulation of each set of points: the circumcircle of a triangle
/// has no point inside. points: floating point [n, 2]. node_offsets: int64 [B + 1]; one set if
/// absent.
///
/// The result is exact for points on a grid, to which every set is moved first. The grid has 2^22
/// steps in the smallest power of two that is not below the set's extent in x or y. Points of
/// random_point_sets() are already on it. Others move by at most half a step, 2^-23 of a unit
/// square. Points on one line are joined to their neighbours on it, and two points to each other.
/// If more than three points lie on an empty circle, the polygon is cut into triangles from its
/// lowest number on.
///
/// Errors: c10::ValueError for a NaN or infinity, other shapes, and two points of a set that are
/// equal on the grid. Complexity: O(n log n), sets in parallel.
NSIMPLEX_API TupleBatch delaunay_graph(
    const at::Tensor& points, const std::optional<at::Tensor>& node_offsets = std::nullopt);

/// Properties of nodes that follow from the tuples of a batch. Neighbours are nodes that share a
/// tuple, in any places. Loops make no neighbours. For k = 2 this is the graph without directions.

/// The neighbours of every node of a batch, as compressed sparse rows.
struct Adjacency {
  at::Tensor offsets;     ///< int64 [n + 1]
  at::Tensor neighbours;  ///< int64, ascending for each node, without repetitions
};

NSIMPLEX_API Adjacency adjacency(const TupleBatch& batch);

/// The number of neighbours of every node: int64 [n].
NSIMPLEX_API at::Tensor node_degrees(const TupleBatch& batch);

/// A label per connected component: int64 [n], from 0 in the order of the lowest node of each
/// component, through the whole batch.
NSIMPLEX_API at::Tensor connected_components(const TupleBatch& batch);

/// The pairs of nodes of a graph that have the same label, undirected and without loops: a
/// partition of its nodes as a graph. labels: int64 [n], any numbers; node_offsets: int64 [B + 1].
///
/// Complexity: O(n log n) plus the size of the result.
NSIMPLEX_API TupleBatch label_cliques(const at::Tensor& labels, const at::Tensor& node_offsets);

/// Completes every connected component to a clique: the label_cliques() of connected_components().
/// The result is a partition of the nodes, whatever edges were predicted.
NSIMPLEX_API TupleBatch component_cliques(const TupleBatch& batch);

/// The simplices of the clique complex of a graph (order 2). Element s - 1 holds the cliques of s
/// nodes, s = 1 .. largest, as undirected batches.
///
/// Complexity: O(m) for edges, O(m^1.5) for triangles, and at most that times (2m)^((s - 3) / 2)
/// beyond.
NSIMPLEX_API std::vector<TupleBatch> simplices(const TupleBatch& batch, int64_t largest);

/// The line graph of an undirected graph without loops. Its nodes are the rows of the batch, and
/// its undirected edges are the pairs of rows that share a node. Complexity: O(sum of squared
/// degrees).
struct LineGraph {
  TupleBatch batch;
  at::Tensor shared;  ///< int64 [m]: the node that the two edges share
};

NSIMPLEX_API LineGraph line_graph(const TupleBatch& batch);

struct LaplacianEigenvectors {
  at::Tensor values;   ///< float64 [B, count], ascending
  at::Tensor vectors;  ///< float64 [n, count], of length 1 on each graph
};

/// The `count` lowest eigenvectors of each graph's normalised Laplacian, as encodings of its nodes:
///
///     L = I - D^-1/2 A D^-1/2 = U^T diag(values) U
///
/// A is from adjacency(), and nodes without neighbours have a row of zeros. The first vector of a
/// connected graph, with value 0, is D^1/2 1 up to scale. Signs: the entry of largest magnitude is
/// positive; among those within 1e-6 of it, the first one counts. If an eigenvalue is repeated, the
/// vectors are one of many orthonormal bases, and a model should not depend on the choice. Graphs
/// with fewer nodes than `count` have zeros in the missing columns. Bits do not depend on the
/// number of threads.
///
/// Complexity: O(n^3) up to 256 nodes. Larger graphs are factorised sparsely while the factor stays
/// thin (chains, trees, planar meshes: about O(n log n)), and otherwise iterated on, O(m) per step.
///
/// Source: Kim et al., "Transformers Generalize DeepSets and Can be Extended to Graphs and
/// Hypergraphs", equation 31.
NSIMPLEX_API LaplacianEigenvectors laplacian_eigenvectors(const TupleBatch& batch, int64_t count);

}  // namespace nsimplex
