// Converts between tensors and matrices, and checks the tensors that functions get.

#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "causal/matrix.h"
#include "causal/tables/table_arguments.h"
#include "support/as_function.h"
#include "support/size_limits.h"

// Between tensors and what the plain code of this folder takes and gives.

namespace nsimplex::causal {

inline at::Tensor to_tensor(const Matrix& matrix) {
  at::Tensor result = at::empty({matrix.rows(), matrix.cols()}, at::kDouble);
  std::copy_n(matrix.data(), matrix.size(), result.mutable_data_ptr<double>());
  return result;
}

/// The same without a copy: the tensor owns the matrix from then on.
inline at::Tensor to_tensor(Matrix&& matrix) {
  const auto owner = std::make_shared<Matrix>(std::move(matrix));
  return at::from_blob(
      owner->data(), {owner->rows(), owner->cols()}, [owner](void*) {}, at::kDouble);
}

/// A dense tensor on the CPU with numbers of `type` and `dim` axes, contiguous. Views of expanded or
/// negated numbers are copied. `argument`: "[function] name".
inline at::Tensor checked_tensor(const std::string& argument, const at::Tensor& tensor,
                                 at::ScalarType type, int64_t dim) {
  TORCH_CHECK_VALUE(tensor.defined(), argument, ": expected a tensor, got none");
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided && !tensor.is_nested(), argument,
                    ": expected a dense tensor, got ",
                    tensor.is_nested() ? "a nested one" : c10::str("layout ", tensor.layout()));
  TORCH_CHECK_TYPE(tensor.scalar_type() == type, argument, ": expected ",
                   type == at::kDouble ? "float64" : "int64", ", got ", tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.dim() == dim, argument, ": expected ", dim, " axes, got shape ",
                    tensor.sizes());
  TORCH_CHECK_VALUE(tensor.is_cpu(), argument, ": expected a tensor on the CPU, got one on ",
                    tensor.device());
  TORCH_CHECK_VALUE(tensor.has_storage(), argument,
                    ": expected a tensor with numbers, got one that a transform wraps");
  if (!tensor.is_contiguous()) {
    TORCH_CHECK_VALUE(tensor.numel() <= kMostMade, argument, ": expected at most ", kMostMade,
                      " numbers where a copy is made, got shape ", tensor.sizes());
  }
  return tensor.detach().resolve_neg().contiguous();
}

/// A matrix of any float64 numbers. `argument`: "[function] name".
inline at::Tensor checked_matrix(const std::string& argument, const at::Tensor& matrix) {
  return checked_tensor(argument, matrix, at::kDouble, 2);
}

/// checked_matrix() without infinite numbers and, unless gaps are kept, without NaN.
inline at::Tensor checked_table(const std::string& argument, const at::Tensor& table,
                                Gaps gaps = Gaps::refused) {
  at::Tensor checked = checked_matrix(argument, table);
  try {
    require_finite(argument, {checked.const_data_ptr<double>(), checked.size(0), checked.size(1)},
                   gaps);
  } catch (const InputError& error) {
    C10_THROW_ERROR(ValueError, error.what());
  }
  return checked;
}

/// checked_matrix() with as many rows as columns.
inline at::Tensor checked_square(const std::string& argument, const at::Tensor& matrix) {
  at::Tensor checked = checked_matrix(argument, matrix);
  TORCH_CHECK_VALUE(checked.size(0) == checked.size(1), argument,
                    ": expected as many rows as columns, got shape ", checked.sizes());
  return checked;
}

/// checked_square() of finite weights: NaN and infinity differ from 0 and would count as edges.
inline at::Tensor checked_graph(const std::string& argument, const at::Tensor& graph) {
  return checked_table(argument, checked_square(argument, graph));
}

/// A table and a graph of its columns, both checked. `at`: "[function] ".
inline std::pair<at::Tensor, at::Tensor> checked_table_and_graph(const std::string& at,
                                                                 const at::Tensor& table,
                                                                 const at::Tensor& graph,
                                                                 Gaps gaps = Gaps::refused) {
  std::pair both{checked_table(at + "table", table, gaps), checked_graph(at + "graph", graph)};
  TORCH_CHECK_VALUE(both.first.size(1) == both.second.size(1), at, "graph: expected one over ",
                    both.first.size(1), " columns, got ", both.second.size(1));
  return both;
}

/// float64 [M]: per column of a table [n, M] the exponent e of its largest number, which is below
/// 2^e. NaN does not count.
inline at::Tensor binary_exponents(const at::Tensor& table) {
  const at::Tensor largest = table.nan_to_num(0.0).abs().amax(0);
  return std::get<1>(at::frexp(largest)).to(at::kDouble);
}

/// table * 2^exponents, with one exponent per column or one in all, without intermediate results
/// out of range.
inline at::Tensor times_power(const at::Tensor& table, const at::Tensor& exponents) {
  const at::Tensor half = (exponents / 2).floor();
  return table * at::exp2(half) * at::exp2(exponents - half);
}

/// The largest of binary_exponents() as a tensor [], by which a table can be scaled so that squares
/// stay within the range of double; 0 if they are far from its ends anyway.
inline at::Tensor large_exponent(const at::Tensor& table) {
  constexpr double kModerate = 200;
  if (table.numel() == 0) return at::zeros({}, at::kDouble);
  const at::Tensor exponents = binary_exponents(table);
  const bool moderate = exponents.abs().max().item<double>() <= kModerate;
  return moderate ? at::zeros({}, at::kDouble) : exponents.max();
}

/// Of a contiguous float64 matrix; lives as long as the tensor.
inline TableView view_matrix(const at::Tensor& matrix) {
  return {matrix.const_data_ptr<double>(), matrix.size(0), matrix.size(1)};
}

}  // namespace nsimplex::causal
