#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/export.h>

#include <optional>
#include <string>
#include <vector>

/// Causal graphs against a known one. Graphs are float64 [M, M] on the CPU, A_ij of i -> j, entries
/// other than 0 being edges; the diagonal does not count. Errors are c10::ValueError and
/// c10::TypeError that name the argument. docs/causal/graphs.md has the definitions.
namespace nsimplex {

struct CausalMetrics {
  int64_t edges = 0, true_edges = 0;
  int64_t reversed = 0, extra = 0, missing = 0;
  int64_t shd = 0;             ///< structural Hamming distance; a reversed edge counts one
  std::optional<int64_t> sid;  ///< structural intervention distance; none where a graph has a cycle
  double precision = 0, recall = 0, f1 = 0, fdr = 0;  ///< of directed edges; recall is TPR
};

/// Complexity: O(M (M + edges)).
/// Source: Peters, Buehlmann, "Structural intervention distance for evaluating causal graphs",
/// 2015.
NSIMPLEX_API CausalMetrics causal_metrics(const at::Tensor& graph, const at::Tensor& truth);

/// Of scores of all ordered pairs of different columns; NaN where the truth has no edges or all.
struct EdgeCurves {
  double auroc = 0, auprc = 0;
};
NSIMPLEX_API EdgeCurves edge_curves(const at::Tensor& scores, const at::Tensor& truth);

/// How well scales tell the causal order of a table [n, M]: 0.5 is chance, NaN of a graph without
/// edges. Complexity: O(n M^2 + M^3).
struct Sortability {
  double variance = 0;  ///< varsortability
  double r2 = 0;        ///< R2-sortability, which no change of units changes
};
NSIMPLEX_API Sortability causal_sortability(const at::Tensor& table, const at::Tensor& graph);

/// Answers that know nothing of causes: `empty`, `variance_sort`, `r2_sort`, each with coefficients
/// and scores, float64 [M, M]. No column of the table [n, M] may be constant.
struct CausalBaseline {
  std::string name;
  at::Tensor adjacency, scores;
};
NSIMPLEX_API std::vector<CausalBaseline> causal_baselines(const at::Tensor& table);

}  // namespace nsimplex
