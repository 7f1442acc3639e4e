// Declares causal orders, paths and the repair of cycles.

#pragma once

#include <nsimplex/causal_options.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "causal/graph/edge_constraints.h"
#include "causal/matrix.h"

namespace nsimplex::causal {

/// The neighbours of every node, as lists.
using AdjacencyLists = std::vector<std::vector<int64_t>>;

/// The effects of every node: i -> j if A_ij is not 0. Ascending numbers.
AdjacencyLists effects_of(const Matrix& graph);

/// The causes of every node.
AdjacencyLists causes_of(const Matrix& graph);

/// The nodes with every cause before its effects; of several such orders, the one with the least
/// numbers first. Nothing if there is a cycle. O(M^2).
std::optional<std::vector<int64_t>> causal_order(const Matrix& graph);

/// The edges of a shortest directed path; none without one. O(M^2).
std::vector<CausalEdge> path_between(const Matrix& graph, int64_t cause, int64_t effect);

/// The columns that each column has paths to, itself included, while edges are added: rows of bits.
/// Complexity: O(M^2 / 64) for an edge that makes a column reachable, else O(1).
class Paths {
 public:
  explicit Paths(int64_t features);

  void add(const CausalEdge& edge);
  bool leads(int64_t from, int64_t to) const { return (bits_[word(from, to)] & bit(to)) != 0; }

 private:
  size_t word(int64_t from, int64_t to) const {
    return static_cast<size_t>(from * words_ + to / 64);
  }
  static uint64_t bit(int64_t to) { return uint64_t{1} << (to % 64); }

  int64_t features_, words_;
  std::vector<uint64_t> bits_;
};

/// Makes a graph acyclic and returns the removed edges, the strongest first.
///
/// Edges are added one by one, required ones first and then by descending |weight| (ties: the first
/// in row-major order), unless they close a cycle with those already added. So the weakest edge of
/// every cycle is removed. A graph without cycles stays unchanged.
///
/// Complexity: O(M^2 log M) for the order and O(M^2 / 64) for every edge that makes a column
/// reachable from another.
std::vector<CausalEdge> repair_cycles(Matrix& weights, const AllowedEdges& edges);

}  // namespace nsimplex::causal
