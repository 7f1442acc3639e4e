#pragma once

#include <optional>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// A graph against the true one: entries other than 0 are edges, the diagonal does not count.
struct EdgeErrors {
  int64_t edges = 0, true_edges = 0;
  int64_t reversed = 0;  ///< edges that are true the other way round only
  int64_t extra = 0;     ///< edges between nodes that have none
  int64_t missing = 0;   ///< true edges between nodes that got none

  /// Structural Hamming distance: pairs of nodes whose edges differ, so that a reversed edge
  /// counts one.
  int64_t shd = 0;
  double precision = 0, recall = 0, f1 = 0;  ///< of edges with their direction; 0 / 0 is 0
  double false_discovery_rate = 0;           ///< 1 - precision; 0 where there are no edges
};
EdgeErrors edge_errors(const Matrix& graph, const Matrix& truth);

/// How well scores of all ordered pairs of different nodes find the true edges. NaN where none or
/// all are edges (NaN of average precision: where none is).
struct EdgeRanking {
  double auroc = 0, auprc = 0;
};
EdgeRanking edge_ranking(const Matrix& scores, const Matrix& truth);

/// The threshold on |weight| at which the graph of the weights above it is nearest to the truth: of
/// equal distances the largest threshold, infinity for the empty graph. It takes the truth to
/// choose it, so its distance is a bound for every threshold, before any repair of cycles. O(M^2
/// log M).
struct BestThreshold {
  double threshold = 0;  ///< edges have at least this |weight|
  int64_t shd = 0;
};
BestThreshold best_threshold(const Matrix& weights, const Matrix& truth);

/// Structural intervention distance: how many ordered pairs (i, j) have a distribution of x_j under
/// do(x_i) that the graph gets wrong where the truth holds, adjusting for the causes that it has
/// for i. 0 .. M (M - 1). Nothing where one of them has a cycle.
///
/// For each i one search over walks of the true graph (Henckel, Wuerthen, Weichwald, "Adjustment
/// identification distance", UAI 2024, section 4), so that all takes O(M (M + true edges)).
///
/// Source: Peters, Buehlmann, "Structural intervention distance for evaluating causal graphs",
/// Neural Computation 2015, definition 5.
std::optional<int64_t> intervention_distance(const Matrix& graph, const Matrix& truth);

}  // namespace nsimplex::causal
