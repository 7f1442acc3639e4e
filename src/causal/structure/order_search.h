// Declares causal orders, the constraints on them, and their search.

#pragma once

#include <nsimplex/causal_options.h>

#include <functional>
#include <vector>

#include "causal/structure/lasso.h"
#include "causal/structure/parent_search.h"

namespace nsimplex::causal {

/// Columns in causal order: no column causes an earlier one.
using Order = std::vector<int64_t>;

/// Which columns must precede which in a causal order: required causes before their effects, and
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

  /// Whether a column is not placed and does not have to wait for another one.
  bool open(int64_t column) const { return waits_for_[static_cast<size_t>(column)] == 0; }
  void place(int64_t column);

 private:
  const Precedence& precedence_;
  std::vector<int64_t> waits_for_;
};

/// The causal order of a linear model whose noises have one variance. The next column is the one
/// with the smallest variance given all placed columns. A cause then precedes its effects, because
/// the variance of an effect exceeds that of the noise unless all its causes are given.
///
/// Only the variances of the remaining columns are needed, so each placed column adds one row to a
/// Cholesky factor of the covariance. Complexity: O(M^2 r) for the rank r of the covariance, at most
/// min(M, n - 1).
///
/// Source: Chen, Drton, Wang, "On causal discovery with an equal-variance assumption", Biometrika
/// 2019, algorithm 1 (top-down).
Order equal_variance_order(const Matrix& covariance, const Precedence& precedence);

/// The part of each column's variance that all others explain: the squared multiple correlation
/// R^2. It comes from the inverse of the correlations with 1e-6 added to their diagonal.
Vector explained_parts(const Matrix& covariance);

/// Of the graphs that are equivalent to `parents`, one whose edges tend to point from a smaller to a
/// larger R^2 (`explained`, see explained_parts). Effects accumulate along paths, so that later columns are
/// explained better. Unlike variances, R^2 does not depend on units.
///
/// Edges of colliders (two causes without an edge between them) keep their direction. So do edges
/// that the constraints do not allow to turn or whose direction the costs tell. The others get
/// their direction from the end: among the columns that may be last, the one of largest R^2
/// becomes last, and the search continues without it. A column may be last if no edge must leave
/// it, and if each neighbour with a free edge is also a neighbour of all its other neighbours.
///
/// Complexity: O(M^2 d^2) for d neighbours per column.
///
/// Sources: Dor, Tarsi, "A simple algorithm to construct a consistent extension of a partially
/// oriented graph", 1992; Reisach et al., "A scale-invariant sorting criterion to find a causal
/// order in additive noise models", NeurIPS 2023.
std::vector<ParentSet> equivalent_graph(const Vector& explained, const AllowedEdges& edges,
                                        const ParentCosts& costs,
                                        const std::vector<ParentSet>& parents);

/// A causal order with the parents that a search found for each column among its predecessors.
struct OrderedGraph {
  Order order;
  std::vector<ParentSet> parents;  ///< per column
  double cost;                     ///< sum over the columns
};

/// Whether one cost is less than another by more than rounding. Orders of one equivalence class
/// then have equal costs on every machine.
bool is_less(double cost, double other);

/// Complexity: one answer of the search per column.
OrderedGraph graph_of_order(ParentSearch& search, const Order& order);

/// Called between steps of a search, which ends early once the answer is false. Empty: goes on.
using GoOn = std::function<bool()>;

/// Calls the checkpoint of a fit and asks whether it goes on. Keeps a reference to the options.
GoOn going(const CausalFitOptions& options);

/// The order of equal noise variances if there are too few rows for equal_variance_order(), which
/// conditions on all placed columns. The next column is the one with the smallest variance given
/// the parents that the search finds among the placed ones. `go_on` is asked between columns; after
/// an early end the other columns follow in any order that is allowed.
///
/// Complexity: O(M^2), and an answer of the search for each column that looked at the place of the
/// one placed last.
Order selected_variance_order(ParentSearch& search, const Precedence& precedence,
                              const GoOn& go_on);

/// Whether there are fewer than two rows per column. Variances given all placed columns then have
/// few degrees of freedom.
bool few_rows(const Covariance& covariance);

/// The order of equal noise variances: selected_variance_order() with few rows, and otherwise
/// equal_variance_order().
Order shared_variance_order(const Covariance& covariance, ParentSearch& search,
                            const Precedence& precedence, const GoOn& go_on);

/// Weights [M, M] of a graph to start from: regressions on the parents that BIC chooses along
/// shared_variance_order(). Complexity: that of the order.
Matrix shared_variance_graph(const Covariance& covariance, const EdgeConstraints& constraints,
                             const GoOn& go_on);

/// Moves one column after the other to the place where the whole order costs least. It sweeps over
/// the columns until no move lowers the cost. Columns stay within the limits of `precedence`.
/// `go_on` is asked between columns; an early end gives the graph of the order so far.
///
/// Complexity: O(M^2) per sweep, and answers of the search for the columns that look at the place of
/// the one that moves (LookedAt).
OrderedGraph improve_order(ParentSearch& search, const Precedence& precedence, Order order,
                           const GoOn& go_on);

}  // namespace nsimplex::causal
