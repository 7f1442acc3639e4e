// Declares the colour refinement that matches N-simplicial attention.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "io/graph_formats.h"
#include "support/names.h"

namespace nsimplex::equivariant {

/// The tuples (j_1, .., j_N) of nodes to which a node i attends.
enum class SimplicialMask : uint8_t {
  cliques,     ///< i, j_1, .., j_N are all neighbours of each other
  neighbours,  ///< every j is a neighbour of i
  patterns  ///< the same, with a head for every pattern of equal nodes and neighbours among the j,
            ///< whose mask is this pattern
};

/// What attention does with the tuples of a node.
enum class SimplicialReduce : uint8_t {
  softmax,  ///< a weighted mean per head, which sees the share of each kind of tuple in its mask
  sum       ///< a weighted sum, which sees their number
};

struct SimplicialRefinement {
  int64_t order = 2;  ///< N, 1 to 3
  SimplicialMask mask = SimplicialMask::cliques;
  SimplicialReduce reduce = SimplicialReduce::softmax;
};

/// The number of tuples of neighbours that a round visits in a graph: the sum of degree^N.
double tuples_of_neighbours(const io::SimpleGraph& graph, int64_t order);

/// Classifies graphs by the colour refinement that has the update of N-simplicial attention under a
/// mask of the graph. Entry g of the result is the number of the kind of graph g; kinds are counted
/// in the order of their first graph.
///
/// Nodes start with their degrees. The new colour of i is its old one and the multiset over the
/// tuples of its mask of (colour of j_1, .., colour of j_N), with the pattern among the j under
/// SimplicialMask::patterns. Under SimplicialReduce::softmax the multiset of each head is known up to
/// a common factor of its numbers: a head divides by its own weights, so the shares between heads
/// are not known. Rounds continue until no graph gets more colours. Then the multisets of colours
/// are compared.
///
/// Graphs of one kind cannot be told apart by any network of layers
///
///     x_i <- f(x_i, sum_j w(x_i, x_j1, .., x_jN) v_1(x_j1) * .. * v_N(x_jN) / normaliser)
///
/// whose weights w and values v are functions of the states of the nodes, of any depth, width and
/// number of heads, with a sum over the nodes at the end: by induction, nodes of one colour have
/// one state. Others are told apart by some such network. If the states are unit vectors of the
/// colours, w = 1 and v_m(x) picks one entry per channel, then a channel for every (c_1, .., c_N) is
/// the number of its tuples, or its share; f then makes unit vectors of the new colours.
///
/// Under SimplicialMask::neighbours the tuples of colours are products of the multiset of single
/// neighbours. That mask is therefore as strong as 1-WL for every N.
///
/// A round takes O(d^N log d) per node of degree d. `between_nodes`, if given, is called before
/// every node and may throw to stop.
///
/// Sources: Dussolle and Liò, "How Smoothing is N-simplicial Attention?", section 2 (masks of
/// simplices); Xu et al., arXiv 1810.00826 (sums and means of neighbours as refinements).
std::vector<int64_t> refine_simplicial_colours(std::span<const io::SimpleGraph> graphs,
                                               const SimplicialRefinement& options,
                                               const std::function<void()>& between_nodes = {});

}  // namespace nsimplex::equivariant

namespace nsimplex {

template <>
inline constexpr Names<equivariant::SimplicialMask, 3> kNames<equivariant::SimplicialMask>{
    {{"cliques", equivariant::SimplicialMask::cliques},
     {"neighbours", equivariant::SimplicialMask::neighbours},
     {"patterns", equivariant::SimplicialMask::patterns}}};

template <>
inline constexpr Names<equivariant::SimplicialReduce, 2> kNames<equivariant::SimplicialReduce>{
    {{"softmax", equivariant::SimplicialReduce::softmax},
     {"sum", equivariant::SimplicialReduce::sum}}};

}  // namespace nsimplex
