// Equivariant linear layers on dense tensors and on lists of tuples.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/equivariant_classes.h>
#include <nsimplex/graph.h>

#include <optional>
#include <vector>

namespace nsimplex {

/// How a class combines the input tuples that it sums over.
enum class Pooling {
  sum,
  mean,  ///< divides by the number of tuples that contribute to the output; none: 0
};

struct EquivariantOptions {
  TensorKind input, output;  ///< k and l
  ClassSet classes = ClassSet::all;
  Pooling pooling = Pooling::mean;

  /// For a padded batch: the number of nodes of each graph, int64 [B]. Entries with a larger index
  /// are not read, and the output is 0 there.
  std::optional<at::Tensor> node_counts;

  std::optional<int64_t> nodes;  ///< n; needed if k = 0, since x does not determine it
};

/// The equivariant linear layer L_{k->l} on dense tensors, and with ClassSet::light its lightweight
/// form. For i in [n]^k, j in [n]^l and the classes mu of equivariant_classes(),
///
///     y_j = sum_mu w_mu^T sum_{i: (i, j) in mu} x_i  +  b_lambda(j),
///
/// With Pooling::mean, the sum over the i of a class is a mean. An order that is loop_free neither
/// reads nor writes entries with equal indices. An undirected input must be symmetric, and each of
/// its tuples counts once per permutation. So an undirected layer is the ordered one with tied
/// weights (and, for the mean, one mean over all members of a class).
///
/// x [B, n, .., n, C] with k axes of nodes, floating; weight [classes, C, D]; bias [bias classes,
/// D] or none, with the classes of 0 -> l. The result is [B, n, .., n, D] with l axes.
///
/// The layer is computed in the diagram basis. A Moebius transform of the weights leads from the
/// classes to this basis. The steps are: diagonals, sums over axes, a product with the weights,
/// broadcasting. Complexity: O(b(k + l) n^max(k, l)) times C, D, or C D for the matrix product.
/// With s shared indices, temporaries are at most x and y times b(k + l) D / n^s, and never n^(k +
/// l). The layer consists of ATen calls, so all derivatives come from them.
///
/// Errors: c10::ValueError that names the argument.
///
/// Sources: Kim, Oh and Hong, arXiv 2110.14416, equations 1 and 14; Godfrey et al., arXiv
/// 2303.06208, for the diagram basis.
NSIMPLEX_API at::Tensor equivariant_linear(const at::Tensor& x, const at::Tensor& weight,
                                           const std::optional<at::Tensor>& bias,
                                           const EquivariantOptions& options);

struct EquivariantPlanOptions {
  ClassSet classes = ClassSet::all;
  /// For undirected lists: whether hyperedges may contain a node twice.
  bool input_loops = true, output_loops = true;
};

/// Which input tuples contribute to which output tuples, per class. A plan is made once for two
/// lists of tuples, and every layer between them uses it in every step.
struct EquivariantPlan {
  TensorKind input, output;
  ClassSet classes = ClassSet::all;
  int64_t input_rows = 0, output_rows = 0;  ///< m, m'

  /// The number of classes of the weights and of the bias.
  int64_t class_count = 0, bias_class_count = 0;

  std::vector<at::Tensor> tensors;  ///< as the operators take them; these check all numbers first
  std::vector<int64_t> parts;  ///< sizes and classes of every output pattern, one after the other

  EquivariantPlan to(at::Device device) const;
};

/// Makes the plan of layers from features of `input` to features of `output`, two lists over the
/// same nodes. Groups of tuples that share some nodes are radix sorted, and look-ups are merges.
/// This takes O(C (m + m')) time and memory for the C look-ups of b(k + l) classes, sequentially.
///
/// Errors: c10::ValueError for lists over different nodes, for an undirected tuple with a repeated
/// node if the options exclude loops, for orders beyond those of equivariant_classes(), or for more
/// than 2^31 look-ups.
NSIMPLEX_API EquivariantPlan equivariant_plan(const TupleBatch& input, const TupleBatch& output,
                                              const EquivariantPlanOptions& options = {});

/// The equivariant linear layer on lists of tuples. It equals equivariant_linear() on dense
/// tensors, except that only tuples of the input list are summed over and only those of the output
/// list are written. A mean divides by the number of listed tuples that contribute; none: 0.
///
/// x [m, C] is in the order of the input list, floating; weight [classes, C, D]; bias [bias
/// classes, D] or none. The result is [m', D] in the order of the output list. Differentiable any
/// number of times. Sums over a class are differences of sums over groups of tuples. These are
/// computed in double and are exact to the rounding of x; counts are integers.
///
/// Complexity: O(b(k + l) (m + m') C) for the sums (one gather and one segment sum), and the
/// product with the weights, in chunks of rows. Memory besides the output is that of the group
/// sums, in double. For the gradient, x and weight are kept and the sums are computed again. A
/// second derivative computes and keeps all sums: [m', classes C] for the classes that apply to a
/// tuple (2 -> 2: 10 of 15). Bits do not depend on the number of threads.
///
/// Errors: c10::ValueError or c10::TypeError that names the argument.
///
/// Sources: Kim, Oh and Hong, arXiv 2110.14416, equations 1 and 15.
NSIMPLEX_API at::Tensor equivariant_linear_sparse(const at::Tensor& x, const at::Tensor& weight,
                                                  const std::optional<at::Tensor>& bias,
                                                  const EquivariantPlan& plan,
                                                  Pooling pooling = Pooling::mean);

}  // namespace nsimplex
