#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "equivariant/attention/attention_call.h"
#include "equivariant/attention/class_attention.h"
#include "equivariant/sparse/sums_call.h"

namespace nsimplex::equivariant {

/// The input as the tuples of one source see it through light maps, its products with weights, and
/// their gradients. Weights are matrices [columns C, w], in the order of the columns.
template <class Class>
class LightProducts {
 public:
  LightProducts(const SourceTensors& tuples, const at::Tensor& x) : tuples_(tuples), x_(x) {}

  int64_t rows() const { return tuples_.rows; }

  /// [rows, w] of all columns.
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

  /// [rows, w] of each tuple itself.
  at::Tensor of_tuples(Class& run, ClassRows which, const at::Tensor& matrix) {
    return run.product(which, std::nullopt, tuples(), matrix);
  }

  /// Gradients of the matrices from those [rows, w] of the products; those of the input are kept.
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

  /// The gradient of x, of what has come.
  std::optional<at::Tensor> grad_x() const {
    if (!grad_columns_) return std::nullopt;
    const at::Tensor own = transposed(tuples_.gather, *grad_columns_);
    return grad_shared_ ? own + transposed(tuples_.shared.gather, *grad_shared_) : own;
  }

 private:
  int64_t channels() const { return x_.size(1); }
  int64_t own_width() const { return tuples_.columns * channels(); }

  // visit(first input tuple, their number, first row of the weights) of every shared column.
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

  at::Tensor gather(const GatherTensors& own) const {
    return dispatch_sums({x_, own.plan, own.parts, /*mean=*/true});
  }
  at::Tensor transposed(const GatherTensors& own, const at::Tensor& grad) const {
    return dispatch_transposed(
        {grad.reshape({-1, channels()}), own.plan, own.parts, /*mean=*/true});
  }

  const SourceTensors& tuples_;
  const at::Tensor& x_;
  at::Tensor columns_;  // [rows, columns C] without those that are shared
  at::Tensor shared_;   // [input tuples of all shared columns, C]
  std::optional<at::Tensor> grad_columns_, grad_shared_;
};

}  // namespace nsimplex::equivariant
