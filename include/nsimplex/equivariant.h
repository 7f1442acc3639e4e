#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/equivariant_classes.h>

#include <optional>

namespace nsimplex {

/// What a class makes of the input tuples that it sums over.
enum class Pooling {
  sum,
  mean,  ///< divides by how many contribute to that output; none: 0
};

struct EquivariantOptions {
  TensorKind input, output;  ///< k and l
  ClassSet classes = ClassSet::all;
  Pooling pooling = Pooling::mean;

  /// Of a padded batch: nodes of each graph, int64 [B]; entries with a larger index are not read
  /// and come out as 0.
  std::optional<at::Tensor> node_counts;

  std::optional<int64_t> nodes;  ///< n; needed where k = 0, since x does not tell
};

/// The equivariant linear layer L_{k->l} on dense tensors, and with ClassSet::light its lightweight
/// form: for i in [n]^k, j in [n]^l and the classes mu of equivariant_classes(),
///
///     y_j = sum_mu w_mu^T sum_{i: (i, j) in mu} x_i  +  b_lambda(j),
///
/// with a mean over the i of a class in place of the sum where pooling says so. An order that is
/// loop_free neither reads nor writes entries with equal indices. An undirected input is expected
/// to be symmetric, and each of its tuples counts in all its orders: an undirected layer is the
/// ordered one with its weights tied (and, for the mean, one mean over all members of a class).
///
/// x [B, n, .., n, C] with k axes of nodes, floating; weight [classes, C, D]; bias [bias classes,
/// D] or none, its classes those of 0 -> l. The result is [B, n, .., n, D] with l axes.
///
/// Computed in the diagram basis, of which the classes are a Moebius transform that is applied to
/// the weights: diagonals, sums over axes, a product with the weights, then broadcasting.
/// Complexity: O(b(k + l) n^max(k, l)) times C, D, or C D where a matrix product runs, and nothing
/// larger than x and y times b(k + l) D / n^s where s indices are shared; never n^(k + l).
/// Composed of ATen calls, which are the algorithm; derivatives of any order are theirs.
///
/// Errors: c10::ValueError that names the argument.
/// Sources: Kim, Oh and Hong, arXiv 2110.14416, equations 1 and 14; Godfrey et al., arXiv
/// 2303.06208, for the diagram basis.
NSIMPLEX_API at::Tensor equivariant_linear(const at::Tensor& x, const at::Tensor& weight,
                                           const std::optional<at::Tensor>& bias,
                                           const EquivariantOptions& options);

}  // namespace nsimplex
