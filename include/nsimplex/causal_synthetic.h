#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal_synthetic_options.h>
#include <nsimplex/export.h>

namespace nsimplex {

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
