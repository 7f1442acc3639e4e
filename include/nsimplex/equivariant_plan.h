#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/equivariant.h>
#include <nsimplex/graph.h>

#include <vector>

namespace nsimplex {

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
