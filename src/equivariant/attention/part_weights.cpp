#include "equivariant/attention/part_weights.h"

#include <ATen/ATen.h>

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

}  // namespace nsimplex::equivariant
