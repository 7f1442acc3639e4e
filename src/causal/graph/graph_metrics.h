// Declares metrics of a causal graph against the true one.

#pragma once

#include <optional>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// Errors of a graph against the true one. Nonzero entries are edges; the diagonal is ignored.
struct EdgeErrors {
  int64_t edges = 0, true_edges = 0;
  int64_t reversed = 0;  ///< edges that exist only in the other direction
  int64_t extra = 0;     ///< edges between nodes that have none in the truth
  int64_t missing = 0;   ///< true edges between nodes that have none in the graph

  /// Structural Hamming distance: pairs of nodes whose edges differ, so a reversed edge counts one.
  int64_t shd = 0;
  double precision = 0, recall = 0, f1 = 0;  ///< of edges with their direction; 0 / 0 is 0
  double false_discovery_rate = 0;           ///< 1 - precision; 0 without edges
};
EdgeErrors edge_errors(const Matrix& graph, const Matrix& truth);

/// How well scores of all ordered pairs of different nodes find the true edges. NaN if none or all
/// are edges (average precision: only if none is).
struct EdgeRanking {
  double auroc = 0, auprc = 0;
};
EdgeRanking edge_ranking(const Matrix& scores, const Matrix& truth);

/// The threshold on |weight| at which the graph of the larger weights is nearest to the truth;
/// among equal distances the largest threshold, infinity for the empty graph. The choice uses the
/// truth, so its distance is a bound for every threshold, before any repair of cycles. O(M^2 log
/// M).
struct BestThreshold {
  double threshold = 0;  ///< edges have at least this |weight|
  int64_t shd = 0;
};
BestThreshold best_threshold(const Matrix& weights, const Matrix& truth);

/// Structural intervention distance: the number of ordered pairs (i, j) for which the graph gives a
/// wrong distribution of x_j under do(x_i) if the truth holds, with adjustment for i's causes in
/// the graph. 0 .. M (M - 1). Absent if one of them has a cycle.
///
/// One search per i over walks of the true graph (Henckel, Wuerthen, Weichwald, "Adjustment
/// identification distance", UAI 2024, section 4): O(M (M + true edges)) in all.
///
/// Source: Peters, Buehlmann, "Structural intervention distance for evaluating causal graphs",
/// Neural Computation 2015, definition 5.
std::optional<int64_t> intervention_distance(const Matrix& graph, const Matrix& truth);

/// The population variance of every column. O(n M).
Vector column_variances(TableView table);

/// R^2 of the regression of every column on all others, 1 - 1 / (v_j (S^-1)_jj) for the covariance
/// S with variances v. If columns explain each other completely, as with fewer observations than
/// columns, it is 1 up to rounding. O(n M^2 + M^3).
Vector column_r2(TableView table);

/// How well numbers of the columns reveal the causal order. Over all pairs (i, j) with a directed
/// path of exactly k edges, separately for each k = 1 .. M - 1, this is the share with a lower
/// number at i; numbers that are equal up to rounding count half. NaN for a graph without edges; 0.5
/// is chance.
///
/// With variances it is varsortability (Reisach, Seiler, Weichwald, "Beware of the simulated DAG",
/// NeurIPS 2021), with R^2 it is R2-sortability (Reisach et al., "A scale-invariant sorting
/// criterion to find a causal order in additive noise models", NeurIPS 2023).
///
/// Complexity: O(M edges L / 64) for paths of at most L edges.
double sortability(const Vector& numbers, const Matrix& graph);

}  // namespace nsimplex::causal
