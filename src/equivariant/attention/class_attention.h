#pragma once

#include <ATen/core/Tensor.h>

#include "equivariant/attention/attention_call.h"
#include "equivariant/attention/features.h"
#include "equivariant/attention/reused_memory.h"

// Attention of one class at the outputs of one pattern, from its queries, keys and values.

namespace nsimplex::equivariant {

/// s(q, k) is exp(scale q . k) for softmax, q . k otherwise.
struct ClassCall {
  const PlanTensors& plan;
  const PartTensors& part;
  AttentionForm form;
  bool normalise;
  double scale;
  at::Tensor query, key;  ///< [rows, H, d], of the kernel forms features
  at::Tensor value;       ///< [rows of keys, H, e]
};

struct ClassGradients {
  at::Tensor out;                ///< the result again
  at::Tensor query, key, value;  ///< as the inputs, or in double
};

/// Rows that are needed at a time.
enum class ClassRows { queries, keys, values, grad_out };

/// Where columns are added: from `first` on, of `all`.
struct ColumnPlace {
  int64_t first = 0, all = 0;
};

/// How classes are computed. A result may hold only until the function is called again, for the
/// same rows where it is told which.
///
/// ATen calls over the list of all pairs, differentiable; the definition.
class ReferenceClass {
 public:
  /// rows [m, c] times matrix [c, w], and `bias`.
  at::Tensor product(ClassRows which, const std::optional<at::Tensor>& bias, const at::Tensor& rows,
                     const at::Tensor& matrix);
  /// The same, and what each row sees of `products` [input tuples of all columns, w].
  at::Tensor product(ClassRows which, const std::optional<at::Tensor>& bias, const at::Tensor& rows,
                     const at::Tensor& matrix, const at::Tensor& products,
                     const SharedTensors& shared);
  /// rows times matrix alone, in memory of its own.
  at::Tensor plain_product(const at::Tensor& rows, const at::Tensor& matrix);
  /// The transpose of what each row sees: [input tuples of all columns, w] of rows [m, w].
  at::Tensor sums_of_rows(const SharedTensors& shared, const at::Tensor& rows);
  /// sum += rows times matrix, at `place` where there are other columns.
  void add_product(std::optional<at::Tensor>& sum, const at::Tensor& rows, const at::Tensor& matrix,
                   std::optional<ColumnPlace> place = std::nullopt);
  /// rows^T grad, of rows [m, c] and grad [m, w].
  at::Tensor transposed_product(const at::Tensor& rows, const at::Tensor& grad);

  at::Tensor features(ClassRows which, FeatureMap map, const at::Tensor& x,
                      const at::Tensor& directions, const FeatureShift& shift);
  at::Tensor features_backward(FeatureMap map, const at::Tensor& x, const at::Tensor& directions,
                               const at::Tensor& features, const at::Tensor& grad);
  /// A gradient as what it is the gradient of, [rows, w].
  at::Tensor flat_rows(const at::Tensor& grad, at::ScalarType type);

  at::Tensor forward(const ClassCall& call);  ///< [rows of queries, H, e]
  ClassGradients backward(const ClassCall& call, const at::Tensor& grad_out);
};

/// What CpuClass works in beside products and features.
struct ClassMemory {
  ReusedMemory out, sums, grad_sums, key_sums, grad_query, grad_key, grad_value;
};

/// Kernels of the CPU, float or double. What is as large as queries are is allocated once for all
/// classes: memory that is given back and taken again is cleared page by page.
class CpuClass {
 public:
  at::Tensor product(ClassRows which, const std::optional<at::Tensor>& bias, const at::Tensor& rows,
                     const at::Tensor& matrix);
  at::Tensor product(ClassRows which, const std::optional<at::Tensor>& bias, const at::Tensor& rows,
                     const at::Tensor& matrix, const at::Tensor& products,
                     const SharedTensors& shared);
  at::Tensor plain_product(const at::Tensor& rows, const at::Tensor& matrix);
  at::Tensor sums_of_rows(const SharedTensors& shared, const at::Tensor& rows);
  void add_product(std::optional<at::Tensor>& sum, const at::Tensor& rows, const at::Tensor& matrix,
                   std::optional<ColumnPlace> place = std::nullopt);
  at::Tensor transposed_product(const at::Tensor& rows, const at::Tensor& grad);

  at::Tensor features(ClassRows which, FeatureMap map, const at::Tensor& x,
                      const at::Tensor& directions, const FeatureShift& shift);
  at::Tensor features_backward(FeatureMap map, const at::Tensor& x, const at::Tensor& directions,
                               const at::Tensor& features, const at::Tensor& grad);
  at::Tensor flat_rows(const at::Tensor& grad, at::ScalarType type);

  at::Tensor forward(const ClassCall& call);
  ClassGradients backward(const ClassCall& call, const at::Tensor& grad_out);

 private:
  /// add(block of the result, its first row) while the block is in a cache.
  template <class Add>
  at::Tensor product_and(ClassRows which, const std::optional<at::Tensor>& bias,
                         const at::Tensor& rows, const at::Tensor& matrix, Add&& add);

  ReusedMemory products_[4], query_features_, key_features_, gradient_;
  ClassMemory memory_;
};

}  // namespace nsimplex::equivariant
