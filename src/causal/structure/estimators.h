// Declares the estimators of a causal graph by continuous optimisation, and their answer.

#pragma once

#include <nsimplex/causal_options.h>

#include <string>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// The answer of an estimator. A_ij belongs to i -> j. There is no threshold and no repair.
struct Structure {
  Matrix weights;     ///< [M, M] coefficients of x_j on x_i, 0 where there is no edge
  Matrix scores;      ///< [M, M] how certain the edge is, >= 0, comparable within one answer
  std::string model;  ///< the model that an estimator chose, or its own name
};

// Estimators of a weighted graph from a table by continuous optimisation. The objective is a loss
// of the weights A, an l1 norm, and a smooth function that is 0 only for acyclic graphs.
// docs/causal/structure.md has the formulas. Each estimator takes the table as it is (the caller
// divides by standard deviations) and ignores the means of columns. It considers only edges that
// options.constraints allow. Required edges have no l1 norm, and edges that would close a cycle
// with them are excluded. It calls options.checkpoint between steps. Scores are |A_ij|, without
// threshold or repair.

/// Minimises tr((I - A)^T S (I - A)) / 2 + sparsity |A|_1 along the central path of the log-det
/// function. Each of four stages minimises mu (loss + l1) + h_s(A) from the answer of the last one.
/// The method runs from the empty graph and from the DAG of the order of equal variances (parents by
/// BIC). It keeps the answer with the lower final objective and names it in `model`. sparsity:
/// 0.03. Complexity: O(n M^2) once, O(M^3) per iteration.
///
/// Source: Bello, Aragam, Ravikumar, "DAGMA", NeurIPS 2022, algorithm 1.
Structure fit_logdet(TableView table, const CausalFitOptions& options);

/// logdet with one network of ten sigmoid units per column (ColumnNetworks). The loss is M/2 log of
/// the mean squared error, and the objective mu (loss + sparsity |T|_1 + 0.005 |parameters|^2 / 2)
/// + h_1(A) with mu = 0.1, 0.01, 0.001, 0.0001. It starts from the empty graph. Weights are A_ij >=
/// 0, the norm of the weights from i into network j. sparsity: 0.02. Complexity: O(n M^2 + M^3) per
/// iteration.
///
/// Source: as for fit_logdet, section 5.
Structure fit_logdet_networks(TableView table, const CausalFitOptions& options);

/// The same loss and l1 norm with the constraint tr exp(A o A) = M, by the augmented Lagrangian
/// method. sparsity: 0.1. Complexity: O(n M^2) once, O(M^3) per iteration.
///
/// Source: Zheng, Aragam, Ravikumar, Xing, "DAGs with NO TEARS", NeurIPS 2018, algorithm 1.
Structure fit_notears(TableView table, const CausalFitOptions& options);

/// An estimator for thousands of columns. First, neighbourhoods() of all columns and
/// shared_variance_graph() reduce the candidate edges. Then it minimises the same loss and l1 norm
/// with rho(A o A), whose spectral radius comes from power iteration. The penalties rise tenfold
/// from 0.01 to 1000. It runs twice, from the same starts as logdet. sparsity: 0.03. Complexity:
/// O(n M^2 + M^3) once; per iteration O(edges) and the pairs of candidate causes. Once options.stop
/// is true, it ends with the better of the two answers so far, which may have cycles.
///
/// Source: Nazaret, Hong, Azizi, Blei, "Stable differentiable causal discovery", ICML 2024.
Structure fit_spectral(TableView table, const CausalFitOptions& options);

/// A = U V^T without its diagonal, with min(options.rank, M) columns each. It uses the likelihood
/// of noises of one variance, which also applies to graphs with cycles,
///
///     M/2 log tr((I - A)^T S (I - A)) / 2 - log det(I - A) + sparsity |A|_1 + penalty rho(A o A)
///
/// The penalties rise tenfold from 1 to 1000. The minimiser is L-BFGS from small random U and V of
/// options.seed. Inverse, determinant and spectral radius use thin matrices (low_rank.h), O(M r^2).
/// Products with S cost O(M^2 r). So does the l1 norm, which is smoothed at zero, together with the
/// penalty of forbidden edges; sparsity 0 skips it. sparsity: 0.02. Forbidden edges are penalised
/// during the fit and removed from the answer.
///
/// Sources: Dong, Sebag, "From graphs to DAGs: a low-complexity model and a scalable algorithm",
/// ECML PKDD 2022; Ng, Ghassami, Zhang, "On the role of sparsity and DAG constraints for learning
/// linear DAGs" (GOLEM-EV), NeurIPS 2020.
Structure fit_lowrank(TableView table, const CausalFitOptions& options);

}  // namespace nsimplex::causal
