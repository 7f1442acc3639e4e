#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal_options.h>
#include <nsimplex/version.h>

#include <optional>
#include <string>
#include <vector>

/// Which columns of a table cause which: a directed acyclic graph from observations.
namespace nsimplex {

/// A causal graph of M columns; A_ij belongs to the edge i -> j, in the model x_j = sum_i x_i A_ij
/// + noise. All tensors on the CPU.
struct CausalFit {
  at::Tensor adjacency;  ///< float64 [M, M]: the graph, acyclic; 0 where there is no edge
  at::Tensor weights;    ///< float64 [M, M]: what the estimator gave before threshold and repair
  at::Tensor scores;     ///< float64 [M, M]: how sure each edge is, >= 0; to rank pairs
  at::Tensor removed;    ///< int64 [r, 2]: cause and effect of edges that closed cycles
  std::string model;     ///< what the estimator chose, or its name
  double seconds;        ///< of the fit
};

/// Learns a causal graph from a table [n, M], float64 on the CPU: observations in rows, n >= 2 and
/// M >= 2, finite, no column constant. docs/causal/structure.md says what each estimator assumes.
///
/// Columns are centred and, with `standardise`, divided by their standard deviation; weights refer
/// to columns so scaled. Then edges of |weight| < threshold go, and of every cycle the weakest edge
/// (never a required one). Of equal options every machine gives the same graph, but for rounding.
///
/// Throws c10::ValueError that names the argument, what was expected and what came.
NSIMPLEX_API CausalFit causal_fit(const at::Tensor& table, const CausalFitOptions& options = {});

/// Causal graphs against a known one. Graphs are float64 [M, M] on the CPU, A_ij of i -> j, entries
/// other than 0 being edges; the diagonal does not count. Errors are c10::ValueError and
/// c10::TypeError that name the argument. docs/causal/graphs.md has the definitions.

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

/// A table with the graph that it came from.
struct CausalSimulation {
  at::Tensor table;    ///< float64 [observations, features]
  at::Tensor weights;  ///< float64 [features, features], A_ij of i -> j, a DAG
};

/// Draws a graph, a structural equation model on it, and observations of that:
///
///     x_j = f_j(x_i : i -> j) + e_j
///
/// CausalMechanism says what f_j is and CausalNoise how e_j, of mean 0, is distributed. do(x_j = v)
/// sets x_j to v in every row and leaves all other equations as they are. Two calls that differ in
/// `interventions` alone draw the same model and the same noise, row by row, so that their tables
/// show what the intervention does to each single observation.
///
/// The same on every machine for the same seeds, up to the rounding of exp, log and cos.
/// Complexity: O(n (edges h + M)) with h = 1 for linear, 100 hidden units and 256 features else.
///
/// Throws c10::ValueError that names the option: numbers out of range, a graph with a cycle, an
/// intervention on a column that is not there, or twice on one.
///
/// Source: the protocol of Zheng et al., "DAGs with NO TEARS", NeurIPS 2018, and "Learning sparse
/// nonparametric DAGs", AISTATS 2020.
NSIMPLEX_API CausalSimulation simulate_causal(const CausalSimulationOptions& options);

/// The same on a graph that is given: float64 [M, M], entries other than 0 are edges. Their weights
/// are drawn anew; `options.graph`, `nodes` and `degree` are not used.
NSIMPLEX_API CausalSimulation simulate_causal(const at::Tensor& graph,
                                              const CausalSimulationOptions& options);

}  // namespace nsimplex
