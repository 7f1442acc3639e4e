// How one equivariant class attends, by the reference or by CPU kernels.

#pragma once

#include <ATen/ATen.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include <optional>

#include "equivariant/attention/equivariant_attention_call.h"
#include "equivariant/attention/rectified_features.h"
#include "equivariant/linear/equivariant_sums_call.h"
#include "kernels/common/equivariant_problems.h"

namespace nsimplex::equivariant {

/// Rows may have gaps between them, but the channels of all heads of a row must be contiguous.
inline at::Tensor packed_heads(const at::Tensor& rows) {
  const bool packed = rows.stride(2) == 1 && rows.stride(1) == rows.size(2);
  return packed ? rows : rows.contiguous();
}

template <class T>
kernels::HeadRows<T> head_rows(const at::Tensor& rows) {
  return {rows.const_data_ptr<T>(), rows.stride(0), rows.size(2)};
}

/// Memory for one tensor at a time. Each tensor overwrites the previous one.
class ReusedMemory {
 public:
  /// The tensor is not initialised.
  at::Tensor take(at::IntArrayRef sizes, const at::TensorOptions& options) {
    const int64_t count = c10::multiply_integers(sizes);
    if (!memory_.defined() || memory_.numel() < count || memory_.dtype() != options.dtype()) {
      memory_ = at::Tensor();  // frees the memory before the next allocation
      memory_ = at::empty({count}, options);
    }
    return memory_.narrow(0, 0, count).view(sizes);
  }

 private:
  at::Tensor memory_;
};

}  // namespace nsimplex::equivariant

// Attention of one class at the outputs of one pattern, from its queries, keys and values.

namespace nsimplex::equivariant {

/// s(q, k) is exp(scale q . k) for softmax, and q . k otherwise.
struct ClassCall {
  const PlanTensors& plan;
  const PartTensors& part;
  AttentionForm form;
  bool normalise;
  double scale;
  at::Tensor query, key;  ///< [rows, H, d]; features in the kernel forms
  at::Tensor value;       ///< [rows of keys, H, e]
};

struct ClassGradients {
  at::Tensor out;                ///< the result of the forward pass
  at::Tensor query, key, value;  ///< as the inputs, or in double
};

/// The kinds of rows that are needed at one time.
enum class ClassRows { queries, keys, values, grad_out };

/// The place where columns are added: from `first` on, of `all`.
struct ColumnPlace {
  int64_t first = 0, all = 0;
};

/// How classes are computed. A result may be valid only until the function is called again, for the
/// same rows if the call names them.
///
/// This class uses ATen calls over the list of all pairs. It is differentiable and defines the
/// result.
class ReferenceClass {
 public:
  /// rows [m, c] times matrix [c, w], plus `bias`.
  at::Tensor product(ClassRows which, const std::optional<at::Tensor>& bias, const at::Tensor& rows,
                     const at::Tensor& matrix);
  /// The same, plus the entries that each row selects from `products` [input tuples of all columns,
  /// w].
  at::Tensor product(ClassRows which, const std::optional<at::Tensor>& bias, const at::Tensor& rows,
                     const at::Tensor& matrix, const at::Tensor& products,
                     const SharedTensors& shared);
  /// rows times matrix, in separate memory.
  at::Tensor plain_product(const at::Tensor& rows, const at::Tensor& matrix);
  /// The transpose of this selection: [input tuples of all columns, w] from rows [m, w].
  at::Tensor sums_of_rows(const SharedTensors& shared, const at::Tensor& rows);
  /// sum += rows times matrix, at `place` if there are other columns.
  void add_product(std::optional<at::Tensor>& sum, const at::Tensor& rows, const at::Tensor& matrix,
                   std::optional<ColumnPlace> place = std::nullopt);
  /// rows^T grad for rows [m, c] and grad [m, w].
  at::Tensor transposed_product(const at::Tensor& rows, const at::Tensor& grad);

  at::Tensor features(ClassRows which, FeatureMap map, const at::Tensor& x,
                      const at::Tensor& directions, const FeatureShift& shift);
  at::Tensor features_backward(FeatureMap map, const at::Tensor& x, const at::Tensor& directions,
                               const at::Tensor& features, const at::Tensor& grad);
  /// A gradient in the shape and dtype of its tensor, [rows, w].
  at::Tensor flat_rows(const at::Tensor& grad, at::ScalarType type);

  at::Tensor forward(const ClassCall& call);  ///< [rows of queries, H, e]
  ClassGradients backward(const ClassCall& call, const at::Tensor& grad_out);
};

/// The working memory of CpuClass besides products and features.
struct ClassMemory {
  ReusedMemory out, sums, grad_sums, key_sums, grad_query, grad_key, grad_value;
};

/// Kernels of the CPU, float or double. Memory of the size of the queries is allocated once for all
/// classes, because the system clears memory that is freed and allocated again page by page.
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
  /// Calls add(block of the result, its first row) while the block is in a cache.
  template <class Add>
  at::Tensor product_and(ClassRows which, const std::optional<at::Tensor>& bias,
                         const at::Tensor& rows, const at::Tensor& matrix, Add&& add);

  ReusedMemory products_[4], query_features_, key_features_, gradient_;
  ClassMemory memory_;
};

/// The input as the tuples of one source read it through light maps, its products with weights, and
/// their gradients. Weights are matrices [columns C, w], in the order of the columns.
template <class Class>
class LightProducts {
 public:
  LightProducts(const SourceTensors& tuples, const at::Tensor& x) : tuples_(tuples), x_(x) {}

  int64_t rows() const { return tuples_.rows; }

  /// The products [rows, w] of all columns.
  at::Tensor of_columns(Class& run, ClassRows which, const at::Tensor& bias,
                        const at::Tensor& matrix) {
    const at::Tensor own = matrix.narrow(0, 0, own_width());
    if (tuples_.shared.counts.empty()) return run.product(which, bias, columns(), own);
    std::vector<at::Tensor> products;
    for_each_shared([&](int64_t first, int64_t count, int64_t row) {
      products.push_back(
          run.plain_product(shared().narrow(0, first, count), matrix.narrow(0, row, channels())));
    });
    return run.product(which, bias, columns(), own, at::cat(products), tuples_.shared);
  }

  /// The products [rows, w] of each tuple itself.
  at::Tensor of_tuples(Class& run, ClassRows which, const at::Tensor& matrix) {
    return run.product(which, std::nullopt, tuples(), matrix);
  }

  /// Returns gradients of the matrices from those [rows, w] of the products, and keeps those of the
  /// input.
  at::Tensor columns_backward(Class& run, const at::Tensor& matrix, const at::Tensor& grad) {
    std::vector<at::Tensor> of_matrix{run.transposed_product(columns(), grad)};
    run.add_product(grad_columns_, grad, matrix.narrow(0, 0, own_width()).t());
    if (!tuples_.shared.counts.empty()) {
      const at::Tensor sums = run.sums_of_rows(tuples_.shared, grad);
      std::vector<at::Tensor> of_shared;
      for_each_shared([&](int64_t first, int64_t count, int64_t row) {
        const at::Tensor own = sums.narrow(0, first, count);
        of_matrix.push_back(run.transposed_product(shared().narrow(0, first, count), own));
        of_shared.push_back(run.plain_product(own, matrix.narrow(0, row, channels()).t()));
      });
      const at::Tensor all = at::cat(of_shared);
      grad_shared_ = grad_shared_ ? *grad_shared_ + all : all;
    }
    return at::cat(of_matrix);
  }
  at::Tensor tuples_backward(Class& run, const at::Tensor& matrix, const at::Tensor& grad) {
    run.add_product(grad_columns_, grad, matrix.t(),
                    ColumnPlace{tuples_.value_column * channels(), own_width()});
    return run.transposed_product(tuples(), grad);
  }

  /// The gradient of x from all calls so far.
  std::optional<at::Tensor> grad_x() const {
    if (!grad_columns_) return std::nullopt;
    const at::Tensor own = transposed(tuples_.gather, *grad_columns_);
    return grad_shared_ ? own + transposed(tuples_.shared.gather, *grad_shared_) : own;
  }

 private:
  int64_t channels() const { return x_.size(1); }
  int64_t own_width() const { return tuples_.columns * channels(); }

  // Calls visit(first input tuple, their number, first row of the weights) for every shared column.
  template <class Visit>
  void for_each_shared(Visit&& visit) const {
    int64_t first = 0, row = own_width();
    for (const int64_t count : tuples_.shared.counts) {
      visit(first, count, row);
      first += count;
      row += channels();
    }
  }

  const at::Tensor& columns() {
    if (!columns_.defined()) {
      columns_ = gather(tuples_.gather).view({tuples_.rows, own_width()});
    }
    return columns_;
  }
  at::Tensor tuples() { return columns().narrow(1, tuples_.value_column * channels(), channels()); }
  const at::Tensor& shared() {
    if (!shared_.defined()) shared_ = gather(tuples_.shared.gather);
    return shared_;
  }

  at::Tensor gather(const InTensors::Gather& own) const {
    return dispatch_sums({x_, own.plan, own.parts, /*mean=*/true});
  }
  at::Tensor transposed(const InTensors::Gather& own, const at::Tensor& grad) const {
    return dispatch_transposed(
        {grad.reshape({-1, channels()}), own.plan, own.parts, /*mean=*/true});
  }

  const SourceTensors& tuples_;
  const at::Tensor& x_;
  at::Tensor columns_;  // [rows, columns C] without the shared ones
  at::Tensor shared_;   // [input tuples of all shared columns, C]
  std::optional<at::Tensor> grad_columns_, grad_shared_;
};

}  // namespace nsimplex::equivariant
