// Products of rows with weights on the CPU.

#include "equivariant/attention/class_products.h"

#include <ATen/ATen.h>

#include "equivariant/attention/class_attention.h"
#include "equivariant/linear/class_parts.h"
#include "kernels/cpu/equivariant/class_kernels.h"
#include "support/rows_product.h"

namespace nsimplex::equivariant {

using at::Tensor;

Tensor with_none(const Tensor& weight) {
  std::vector<int64_t> shape = weight.sizes().vec();
  shape[0] = 1;
  return at::cat({weight.new_zeros(shape), weight});
}

Tensor map_matrix(const Tensor& maps, const Tensor& numbers) {
  return maps.index_select(0, numbers + 1).flatten(0, 1);
}

void WeightGradient::add(const Tensor& numbers, const Tensor& own) {
  numbers_.push_back(numbers);
  own_.push_back(own);
}

Tensor WeightGradient::sum(const Tensor& weight) const {
  if (own_.empty()) return at::zeros_like(weight);
  std::vector<int64_t> shape = weight.sizes().vec();
  std::vector<Tensor> rows;
  for (size_t i = 0; i < own_.size(); ++i) {
    shape[0] = numbers_[i].size(0);
    rows.push_back(own_[i].reshape(shape));
  }
  shape[0] = weight.size(0) + 1;
  return weight.new_zeros(shape)
      .index_add(0, at::cat(numbers_) + 1, at::cat(rows))
      .narrow(0, 1, weight.size(0));
}

namespace {

using at::Tensor;

template <class T>
void add_seen_rows(const Tensor& to, const Tensor& products, const SharedTensors& shared,
                   int64_t begin) {
  kernels::SeenRows<T> problem;
  problem.rows = to.size(0);
  problem.columns = shared.places.size(1);
  problem.width = to.size(1);
  problem.products = products.const_data_ptr<T>();
  problem.places = shared.places.const_data_ptr<int32_t>() + begin * problem.columns;
  problem.to = to.mutable_data_ptr<T>();
  kernels::add_seen_rows(problem);
}

}  // namespace

Tensor CpuClass::product(ClassRows which, const std::optional<Tensor>& bias, const Tensor& rows,
                         const Tensor& matrix) {
  return product_and(which, bias, rows, matrix, [](const Tensor&, int64_t) {});
}

Tensor CpuClass::product(ClassRows which, const std::optional<Tensor>& bias, const Tensor& rows,
                         const Tensor& matrix, const Tensor& products,
                         const SharedTensors& shared) {
  return product_and(which, bias, rows, matrix, [&](const Tensor& to, int64_t begin) {
    rows.scalar_type() == at::kDouble ? add_seen_rows<double>(to, products, shared, begin)
                                      : add_seen_rows<float>(to, products, shared, begin);
  });
}

template <class Add>
Tensor CpuClass::product_and(ClassRows which, const std::optional<Tensor>& bias, const Tensor& rows,
                             const Tensor& matrix, Add&& add) {
  const Tensor result =
      products_[static_cast<size_t>(which)].take({rows.size(0), matrix.size(1)}, rows.options());
  for_each_block(rows.size(0), matrix.size(1), [&](int64_t begin, int64_t count) {
    Tensor to = result.narrow(0, begin, count);
    rows_product(rows.narrow(0, begin, count), matrix, bias, to);
    add(to, begin);
  });
  return result;
}

Tensor CpuClass::plain_product(const Tensor& rows, const Tensor& matrix) {
  return blocks_product(rows, matrix);
}

Tensor CpuClass::sums_of_rows(const SharedTensors& shared, const Tensor& rows) {
  const Tensor sums =
      at::empty({shared.offsets.size(0) - 1, rows.size(1)}, rows.options().dtype(at::kDouble));
  const Segments seen{shared.offsets.const_data_ptr<int32_t>(),
                      shared.rows.const_data_ptr<int32_t>(), shared.rows.size(0)};
  in_kernel_type(rows.scalar_type(),
                 [&](auto number) { segment_sums<decltype(number), double>(seen, rows, sums); });
  return sums.to(rows.scalar_type());
}

void CpuClass::add_product(std::optional<Tensor>& sum, const Tensor& rows, const Tensor& matrix,
                           std::optional<ColumnPlace> place) {
  const int64_t width = matrix.size(1);
  if (!sum) sum = at::zeros({rows.size(0), place ? place->all : width}, rows.options());
  const Tensor own = place ? sum->narrow(1, place->first, width) : *sum;
  for_each_block(rows.size(0), width, [&](int64_t begin, int64_t count) {
    Tensor to = own.narrow(0, begin, count);
    add_rows_product(rows.narrow(0, begin, count), matrix, to);
  });
}

Tensor CpuClass::transposed_product(const Tensor& rows, const Tensor& grad) {
  return nsimplex::transposed_product(rows, grad);
}

Tensor CpuClass::flat_rows(const Tensor& grad, at::ScalarType type) {
  const Tensor rows = grad.flatten(1);
  if (rows.scalar_type() == type) return rows;
  return gradient_.take(rows.sizes(), rows.options().dtype(type)).copy_(rows);
}

}  // namespace nsimplex::equivariant
