#pragma once

#include <nsimplex/causal_options.h>

#include <string>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// What an estimator answers; A_ij belongs to i -> j. Nothing of it is thresholded or repaired.
struct Structure {
  Matrix weights;     ///< [M, M] coefficients of x_j on x_i, 0 where there is no edge
  Matrix scores;      ///< [M, M] how sure the edge is, >= 0, comparable within one answer
  std::string model;  ///< which of its models an estimator chose, or its own name
};

// Estimators of a weighted graph from a table by continuous optimisation: a loss of the weights A,
// an l1 norm, and a smooth function that is 0 on acyclic graphs alone. docs/causal/estimators.md
// has the formulas. Each takes the table as it is (the caller divides by standard deviations),
// ignores the means of columns, looks only for edges that options.constraints allow, takes no l1 of
// required ones and forbids what would close a cycle with them; calls options.checkpoint between
// steps. Scores are |A_ij|; no threshold, no repair.

/// min tr((I - A)^T S (I - A)) / 2 + sparsity |A|_1 along the central path of the log-det function:
/// four stages, each minimising mu (loss + l1) + h_s(A) from the last one's answer. Twice, from the
/// empty graph and from the DAG of the equal-variance order (parents by BIC); the lower final
/// objective is kept and named in `model`. sparsity: 0.03. Complexity: O(n M^2) once, O(M^3) an
/// iteration.
///
/// Source: Bello, Aragam, Ravikumar, "DAGMA", NeurIPS 2022, algorithm 1.
Structure fit_logdet(TableView table, const CausalFitOptions& options);

/// logdet with a network of ten sigmoid units for each column (ColumnNetworks), whose loss is M/2
/// log of the mean squared error: mu (loss + sparsity |T|_1 + 0.005 |parameters|^2 / 2) + h_1(A),
/// mu = 0.1, 0.01, 0.001, 0.0001, from the empty graph. Weights are A_ij >= 0, the norm of what
/// leads from i into j. sparsity: 0.02. Complexity: O(n M^2 + M^3) an iteration.
///
/// Source: as fit_logdet, section 5.
Structure fit_logdet_networks(TableView table, const CausalFitOptions& options);

/// The same loss and l1 under tr exp(A o A) = M, by the augmented Lagrangian method. sparsity: 0.1.
/// Complexity: O(n M^2) once, O(M^3) an iteration.
///
/// Source: Zheng, Aragam, Ravikumar, Xing, "DAGs with NO TEARS", NeurIPS 2018, algorithm 1.
Structure fit_notears(TableView table, const CausalFitOptions& options);

/// For thousands of columns. First neighbourhoods() of all columns and the DAG of the
/// equal-variance order leave few candidate edges; then the same loss and l1 with rho(A o A), the
/// spectral radius by power iteration, at penalties that rise tenfold from 0.01 to 1000. Twice,
/// from the same starts as logdet. sparsity: 0.03. Complexity: O(n M^2 + M^3) once, O(edges) and
/// the candidates' pairs of causes an iteration.
///
/// Source: Nazaret, Hong, Azizi, Blei, "Stable differentiable causal discovery", ICML 2024.
Structure fit_spectral(TableView table, const CausalFitOptions& options);

/// A = U V^T without its diagonal, min(options.rank, M) columns each. The likelihood of noises of
/// one variance, also of graphs with cycles,
///
///     M/2 log tr((I - A)^T S (I - A)) / 2 - log det(I - A) + sparsity |A|_1 + penalty rho(A o A)
///
/// with penalties that rise tenfold from 1 to 1000, by L-BFGS from small random U and V of
/// options.seed. Inverse, determinant and spectral radius are thin (low_rank.h), O(M r^2); products
/// with S cost O(M^2 r), and so does the l1 norm (and what forbids edges), whose corner is rounded;
/// none with sparsity 0. sparsity: 0.02. Forbidden edges are penalised while it runs and left out
/// of the answer.
///
/// Sources: Dong, Sebag, "From graphs to DAGs: a low-complexity model and a scalable algorithm",
/// ECML PKDD 2022; Ng, Ghassami, Zhang, "On the role of sparsity and DAG constraints for learning
/// linear DAGs" (GOLEM-EV), NeurIPS 2020.
Structure fit_lowrank(TableView table, const CausalFitOptions& options);

}  // namespace nsimplex::causal
