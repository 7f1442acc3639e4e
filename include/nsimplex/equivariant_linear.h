#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/equivariant_classes.h>
#include <nsimplex/graph.h>

#include <optional>
#include <vector>

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

struct EquivariantPlanOptions {
  ClassSet classes = ClassSet::all;
  /// Of undirected lists: whether hyperedges that name a node twice occur.
  bool input_loops = true, output_loops = true;
};

/// Which input tuples meet which output tuples, class by class: made once for two lists of tuples
/// and used by every layer between them, in every step.
struct EquivariantPlan {
  TensorKind input, output;
  ClassSet classes = ClassSet::all;
  int64_t input_rows = 0, output_rows = 0;  ///< m, m'

  /// Classes of the weights and of the bias.
  int64_t class_count = 0, bias_class_count = 0;

  std::vector<at::Tensor> tensors;  ///< as the operators take them, which check the numbers first
  std::vector<int64_t> parts;       ///< sizes and classes of every output pattern, in a row

  EquivariantPlan to(at::Device device) const;
};

/// The plan of layers from features of `input` to features of `output`, two lists over the same
/// nodes. Groups of tuples that agree on some nodes are sorted by radix, look-ups are merges:
/// O(C (m + m')) time and memory for the C look-ups of b(k + l) classes; sequential.
///
/// Errors: c10::ValueError for lists over different nodes, an undirected tuple with a repeated node
/// where loops are said not to occur, orders beyond those of equivariant_classes(), or more than
/// 2^31 look-ups.
NSIMPLEX_API EquivariantPlan equivariant_plan(const TupleBatch& input, const TupleBatch& output,
                                              const EquivariantPlanOptions& options = {});

/// The equivariant linear layer on lists of tuples: that of equivariant_linear() on dense tensors,
/// where only tuples of the input list are summed over and only those of the output list written. A
/// mean divides by how many of the list contribute; none: 0.
///
/// x [m, C] in the order of the input list, floating; weight [classes, C, D]; bias [bias classes,
/// D] or none. The result is [m', D] in the order of the output list. Differentiable any number of
/// times. Sums over a class are differences of sums over groups of tuples, which run in double and
/// are exact to the rounding of x; counts are integers.
///
/// Complexity: O(b(k + l) (m + m') C) for the sums, as one gather and one segment sum, and the
/// product with the weights, by chunks of rows. Memory beside the output is that of the group sums,
/// in double; for the gradient x and weight are kept and sums made again. A gradient of a gradient
/// makes and keeps all sums: [m', classes C] of those classes that apply to a tuple (2 -> 2: 10 of
/// 15). Bits do not depend on the number of threads.
///
/// Errors: c10::ValueError or c10::TypeError that names the argument.
/// Sources: Kim, Oh and Hong, arXiv 2110.14416, equations 1 and 15.
NSIMPLEX_API at::Tensor equivariant_linear_sparse(const at::Tensor& x, const at::Tensor& weight,
                                                  const std::optional<at::Tensor>& bias,
                                                  const EquivariantPlan& plan,
                                                  Pooling pooling = Pooling::mean);

}  // namespace nsimplex
