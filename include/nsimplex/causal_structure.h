#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal_options.h>
#include <nsimplex/export.h>

#include <string>

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

}  // namespace nsimplex
