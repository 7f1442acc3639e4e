// Declares the embedding of a graph, the balancing of its weights, and checks of the points.

#pragma once

#include <string>

#include "causal/embedding/neighbours.h"
#include "causal/matrix.h"
#include "causal/task_loop.h"

namespace nsimplex::causal {

/// The magnitudes of a graph, in a form that does not depend on the units of its nodes or their
/// common size:
///
///     b_ij = |A_ij| e^(x_j - x_i - mu),   x and mu the least squares of log b_ij over all edges.
///
/// Columns in other units turn A into D^-1 A D, and a common factor gives c A. b is the same for
/// all of these, up to the rounding of log b to 2^-20, which removes their rounding errors. All
/// edges of a forest get 1, since units could have given them any weights. If nodes are joined in
/// several ways, the weaker way stays the weaker one. Factors beyond 1000 and below 1/1000 are
/// clipped. Conjugate gradients, O(edges) per step, at most a few hundred steps in most graphs.
SparseGraph balanced(const SparseGraph& graph);

/// Nodes closer than this to the origin or to each other have angles too small to matter.
inline constexpr double kBlankRadius = 0.05;

/// Says in one line why points, given by rows of tangents, are uninformative; empty if they are
/// informative. Either the graph has no edges, or most of its nodes with edges lie at the origin or
/// all in one point.
std::string why_blank(const Matrix& tangents, const SparseGraph& graph);

/// The same for points without their graph.
std::string why_blank(const Matrix& tangents);

struct Embedding {
  Matrix tangents;            ///< [M, d]
  Eigen::ArrayXd generality;  ///< [M], pi
  double loss = 0;            ///< Eq. 15
  AttractionOptions attraction;
  int64_t without_negatives = 0;
};

/// The graph with the weights that count: balanced() or as given.
SparseGraph weights_of(const SparseGraph& graph, const CausalEmbeddingOptions& options);

/// The strength with which each node is drawn to the origin, for pairs with the attractions W_m:
/// lambda_g sqrt(W_m W) M pi_m, where W is the mean of the nonzero W_m, or lambda_g pi_m as
/// printed.
Eigen::ArrayXd pulls(const Eigen::ArrayXd& attractions, const Eigen::ArrayXd& generality,
                     const CausalEmbeddingOptions& options);

/// Implements nsimplex::causal_embed() for a graph that has been checked. Throws InputError for
/// invalid options.
Embedding embed(const SparseGraph& graph, const CausalEmbeddingOptions& options,
                const TaskLoop& loop);

}  // namespace nsimplex::causal
