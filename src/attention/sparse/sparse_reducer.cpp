#include "attention/sparse/sparse_reducer.h"

#include <ATen/ATen.h>

namespace nsimplex::sparse {
namespace {

using at::Tensor;

Tensor sum_of(const std::vector<Tensor>& terms) {
  Tensor sum = terms[0];
  for (size_t m = 1; m < terms.size(); ++m) sum = sum + terms[m];
  return sum;
}

// The product of all but one; undefined for a single one.
Tensor product_without(const std::vector<Tensor>& factors, size_t left_out) {
  Tensor product;
  for (size_t m = 0; m < factors.size(); ++m) {
    if (m != left_out) product = product.defined() ? product * factors[m] : factors[m];
  }
  return product;
}

}  // namespace

Tensor TupleReducer::layer(size_t index, const Tensor& x) const {
  const Tensor &matrix = weights_[2 * index], &bias = weights_[2 * index + 1];
  return at::matmul(x, matrix.transpose(1, 2)) + bias.unsqueeze(1);
}

Tensor TupleReducer::layer_backward(size_t index, const Tensor& x, const Tensor& grad,
                                    std::vector<Tensor>& weights) const {
  const Tensor of_matrix = at::matmul(grad.transpose(-1, -2), x).sum(0);
  weights.insert(weights.begin(), {of_matrix, grad.sum(2).sum(0)});
  return at::matmul(grad, weights_[2 * index]);
}

Tensor TupleReducer::combine(const std::vector<Tensor>& values) const {
  switch (reduce_) {
    case TupleReduce::product:
      return product_without(values, values.size());
    case TupleReduce::sum:
      return sum_of(values);
    case TupleReduce::mean:
      return sum_of(values) / static_cast<double>(values.size());
    case TupleReduce::mlp:
      return layer(1, at::gelu(layer(0, at::cat(values, -1))));
    case TupleReduce::mlp_symmetric: {
      std::vector<Tensor> hidden;
      for (const Tensor& value : values) hidden.push_back(at::gelu(layer(0, value)));
      return layer(2, at::gelu(layer(1, sum_of(hidden))));
    }
  }
  TORCH_CHECK_VALUE(false, "[sparse_attention] reduce: not an enumerator of TupleReduce");
}

TupleReducer::Gradients TupleReducer::backward(const std::vector<Tensor>& values,
                                               const Tensor& grad) const {
  Gradients grads;
  switch (reduce_) {
    case TupleReduce::product:
      for (size_t m = 0; m < values.size(); ++m) {
        const Tensor others = product_without(values, m);
        grads.values.push_back(others.defined() ? grad * others : grad);
      }
      break;
    case TupleReduce::sum:
      grads.values.assign(values.size(), grad);
      break;
    case TupleReduce::mean:
      grads.values.assign(values.size(), grad / static_cast<double>(values.size()));
      break;
    case TupleReduce::mlp: {
      const Tensor joined = at::cat(values, -1), hidden = layer(0, joined);
      const Tensor of_hidden =
          at::gelu_backward(layer_backward(1, at::gelu(hidden), grad, grads.weights), hidden);
      const Tensor of_joined = layer_backward(0, joined, of_hidden, grads.weights);
      grads.values = of_joined.chunk(static_cast<int64_t>(values.size()), -1);
      break;
    }
    case TupleReduce::mlp_symmetric: {
      std::vector<Tensor> first, hidden;
      for (const Tensor& value : values) {
        first.push_back(layer(0, value));
        hidden.push_back(at::gelu(first.back()));
      }
      const Tensor sum = sum_of(hidden), second = layer(1, sum);
      const Tensor of_second =
          at::gelu_backward(layer_backward(2, at::gelu(second), grad, grads.weights), second);
      const Tensor of_sum = layer_backward(1, sum, of_second, grads.weights);
      std::vector<Tensor> of_first(2);  // every axis adds to the first layer's weights
      for (size_t m = 0; m < values.size(); ++m) {
        std::vector<Tensor> part;
        grads.values.push_back(
            layer_backward(0, values[m], at::gelu_backward(of_sum, first[m]), part));
        for (size_t w = 0; w < 2; ++w) of_first[w] = m == 0 ? part[w] : of_first[w] + part[w];
      }
      grads.weights.insert(grads.weights.begin(), of_first.begin(), of_first.end());
      break;
    }
  }
  return grads;
}

}  // namespace nsimplex::sparse
