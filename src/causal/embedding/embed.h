#pragma once

#include <string>

#include "causal/embedding/neighbours.h"
#include "causal/matrix.h"
#include "causal/task_loop.h"

namespace nsimplex::causal {

/// The magnitudes of a graph in a form that knows neither units of its nodes nor their common size:
///
///     b_ij = |A_ij| e^(x_j - x_i - mu),   x and mu the least squares of log b_ij over all edges.
///
/// Columns in other units turn A into D^-1 A D, and a factor into c A: b is the same for all of
/// these, up to the rounding of log b to 2^-20, which takes rounding errors away from it. The edges
/// of a forest all get 1, since units could have made any weights of them; where nodes are joined
/// in several ways, the weaker way stays the weaker one. Factors beyond 1000 and below 1/1000 count
/// as these. Conjugate gradients, O(edges) a step, at most some hundreds of steps in most graphs.
SparseGraph balanced(const SparseGraph& graph);

/// Nodes nearer to the origin, or to each other, than this turn by angles that nothing sees.
inline constexpr double kBlankRadius = 0.05;

/// Why points, rows of tangents, carry nothing, in one line: the graph has no edges, or most of its
/// nodes that have some lie at the origin, or all in one point. Empty where they do carry something.
std::string why_blank(const Matrix& tangents, const SparseGraph& graph);

/// The same of points without their graph.
std::string why_blank(const Matrix& tangents);

struct Embedding {
  Matrix tangents;            ///< [M, d]
  Eigen::ArrayXd generality;  ///< [M], pi
  double loss = 0;            ///< Eq. 15
  AttractionOptions attraction;
  int64_t without_negatives = 0;
};

/// The graph whose weights count: balanced() or as given.
SparseGraph weights_of(const SparseGraph& graph, const CausalEmbeddingOptions& options);

/// How strongly each node is drawn to the origin, beside the pairs of these attractions W_m:
/// lambda_g sqrt(W_m W) M pi_m, W the mean of those that are not 0; or lambda_g pi_m as printed.
Eigen::ArrayXd pulls(const Eigen::ArrayXd& attractions, const Eigen::ArrayXd& generality,
                     const CausalEmbeddingOptions& options);

/// What nsimplex::causal_embed() computes, of a graph that has been checked. Throws InputError for
/// options that cannot be.
Embedding embed(const SparseGraph& graph, const CausalEmbeddingOptions& options,
                const TaskLoop& loop);

}  // namespace nsimplex::causal
