#pragma once

#include <nsimplex/causal_options.h>

#include <functional>
#include <vector>

#include "causal/structure/lasso.h"
#include "causal/structure/parent_search.h"

namespace nsimplex::causal {

/// Columns in causal order: nothing causes what stands before it.
using Order = std::vector<int64_t>;

/// Which columns must stand before which in a causal order: required causes before their effects,
/// earlier tiers before later ones.
class Precedence {
 public:
  Precedence(const EdgeConstraints& constraints, int64_t features);

  int64_t features() const { return features_; }
  bool before(int64_t first, int64_t second) const {
    return before_[static_cast<size_t>(first * features_ + second)] != 0;
  }

 private:
  int64_t features_;
  std::vector<char> before_;
};

/// The columns that may come next while an order is built from its front.
class OpenColumns {
 public:
  explicit OpenColumns(const Precedence& precedence);

  /// Neither placed nor behind one that is not placed.
  bool open(int64_t column) const { return waits_for_[static_cast<size_t>(column)] == 0; }
  void place(int64_t column);

 private:
  const Precedence& precedence_;
  std::vector<int64_t> waits_for_;
};

/// The causal order of a linear model whose noises have one variance: the next column is the one
/// whose variance given all placed columns is least. A cause then comes before its effects, whose
/// variance given anything but all their causes is larger than that of the noise.
///
/// The covariance of what is left, given what is placed, is a Schur complement; placing a column
/// takes one more rank off it. Complexity: O(M^3).
///
/// Source: Chen, Drton, Wang, "On causal discovery with an equal-variance assumption", Biometrika
/// 2019, algorithm 1 (top-down).
Order equal_variance_order(const Matrix& covariance, const Precedence& precedence);

/// [M, M] weights of a graph to start from: regressions on the parents that BIC chooses along the
/// equal-variance order. Complexity: O(M^3).
Matrix equal_variance_graph(const Covariance& covariance, const EdgeConstraints& constraints);

/// The part of each column's variance that all others explain: the squared multiple correlation
/// R^2, from the inverse of the covariance (of the correlations, with 1e-6 added to their
/// diagonal).
Vector explained_parts(const Matrix& covariance);

/// Of the graphs that say the same of a covariance as `parents`, one whose edges tend to point from
/// a smaller to a larger R^2. What a cause sends on accumulates along paths, so that effects are
/// explained better; unlike variances, R^2 does not depend on units.
///
/// Edges of colliders, two causes without an edge between them, keep their direction, and so do
/// those that constraints do not let turn. Of the others it is chosen from the effects' end:
/// among the columns that may be last, the one of largest R^2 is, and so on without it. A column
/// may be last if no edge must leave it and each neighbour whose edge is free is also one of all
/// its other neighbours.
///
/// Complexity: O(M^2 d^2) for d neighbours of a column.
///
/// Sources: Dor, Tarsi, "A simple algorithm to construct a consistent extension of a partially
/// oriented graph", 1992; Reisach et al., "A scale-invariant sorting criterion to find a causal
/// order in additive noise models", NeurIPS 2023.
std::vector<ParentSet> equivalent_graph(const Matrix& covariance, const AllowedEdges& edges,
                                        const GaussianCost& cost,
                                        const std::vector<ParentSet>& parents);

/// A causal order with the parents that a search found for each column among those before it.
struct OrderedGraph {
  Order order;
  std::vector<ParentSet> parents;  ///< of each column
  double cost;                     ///< their sum
};

/// Whether one cost is less than another by more than rounding: orders of one equivalence class
/// then have one cost on every machine.
bool is_less(double cost, double other);

/// Complexity: one answer of the search a column.
OrderedGraph graph_of_order(ParentSearch& search, const Order& order);

/// The order of equal noise variances where rows are too few for a variance given all placed
/// columns, as equal_variance_order() takes it: the next column is the one of least variance given
/// the parents that the search finds among the placed ones. `checkpoint` is called between columns.
///
/// Complexity: O(M^2) answers of the search.
Order selected_variance_order(ParentSearch& search, const Precedence& precedence,
                              const std::function<void()>& checkpoint);

/// Moves one column after the other to where the whole order costs least, sweep by sweep, until no
/// move lowers the cost. Columns stay where `precedence` lets them. `checkpoint` is called between
/// the columns.
///
/// Complexity: O(M^2) answers of the search a sweep.
OrderedGraph improve_order(ParentSearch& search, const Precedence& precedence, Order order,
                           const std::function<void()>& checkpoint);

}  // namespace nsimplex::causal
