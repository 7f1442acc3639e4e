#pragma once

#include <nsimplex/causal_options.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "causal/graph/edge_constraints.h"
#include "causal/matrix.h"

namespace nsimplex::causal {

/// Nodes by their lists of neighbours.
using Neighbours = std::vector<std::vector<int64_t>>;

/// Where the edges of a matrix lead: i -> j where A_ij is not 0. Rising numbers.
Neighbours effects_of(const Matrix& graph);

/// Where they come from.
Neighbours causes_of(const Matrix& graph);

/// The nodes with every cause before its effects, of several such orders the one with the least
/// numbers first; nothing where there is a cycle. O(M^2).
std::optional<std::vector<int64_t>> causal_order(const Matrix& graph);

/// Which columns paths lead to from each column, itself included, while edges are added: rows of
/// bits. Complexity: O(M^2 / 64) for an edge that makes a column reachable, else O(1).
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

/// Makes a graph a directed acyclic one and returns the edges this took away, the strongest first.
///
/// Edges are taken in, required ones first and then by falling |weight| (of equal ones the first in
/// row-major order), unless they close a cycle with those already in: what goes is the weakest edge
/// of every cycle. A graph without cycles stays as it is.
///
/// Complexity: O(M^2 log M) for the order and O(M^2 / 64) for every edge that makes a column
/// reachable from another.
std::vector<CausalEdge> repair_cycles(Matrix& weights, const AllowedEdges& edges);

}  // namespace nsimplex::causal
