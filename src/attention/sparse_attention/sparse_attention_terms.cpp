// Computes logits, reduced values and their gradients for one chunk of tuples.

#include "attention/sparse_attention/sparse_attention_terms.h"

#include <ATen/ATen.h>

#include <limits>

#include "attention/common/attention_arguments.h"
#include "support/infinity.h"

namespace nsimplex::sparse {
namespace {

using at::Tensor;

Tensor sum_of(const std::vector<Tensor>& terms) {
  Tensor sum = terms[0];
  for (size_t m = 1; m < terms.size(); ++m) sum = sum + terms[m];
  return sum;
}

// The product of all factors but one; undefined for a single factor.
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
      std::vector<Tensor> of_first(2);  // every axis adds to the weights of the first layer
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

namespace {

using at::Tensor;

constexpr int64_t kRowDimension = 3;  // of queries, and of tuples

std::vector<Tensor> parts_of(at::TensorList tensors, const TupleList& list, at::ScalarType type) {
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) parts.push_back(list.part(tensor).to(type));
  return parts;
}

std::vector<Tensor> weights_of(const Call& call, const TupleList& list, at::ScalarType type) {
  std::vector<Tensor> weights;
  for (const Tensor& weight : call.options.weights())
    weights.push_back(list.heads(weight).to(type));
  return weights;
}

}  // namespace

ListPart::ListPart(const Call& call, const Settings& settings, const TupleList& list)
    : settings(settings),
      form(settings.form, settings.order),
      reducer(settings.reduce,
              weights_of(call, list, dense::accumulate_type(call.query.scalar_type()))) {
  const at::ScalarType type = dense::accumulate_type(call.query.scalar_type());
  const int64_t kv_heads = call.keys[0].size(1);
  const Tensor grouped = call.query.unflatten(1, {kv_heads, call.query.size(1) / kv_heads});
  query = list.part(grouped).to(type) * settings.scale.logit;
  keys = parts_of(call.keys, list, type);
  values = parts_of(call.values, list, type);
}

ChunkTerms::ChunkTerms(const ListPart& part, const TupleChunk& chunk)
    : part_(part), chunk_(chunk), query_(spread(rows(part.query))) {
  const int order = part.settings.order;
  for (int m = 0; m < order; ++m) {
    const auto gather = [&](const Tensor& from) {
      const Tensor rows = from.index_select(2, chunk.keys[m]);
      return chunk.missing.defined() ? rows.masked_fill(chunk.missing.unsqueeze(-1), 0) : rows;
    };
    keys_.push_back(gather(part.keys[m]).unsqueeze(2));
    values_.push_back(gather(part.values[m]));
  }
  leading_.push_back(order > 1 ? keys_[0]
                               : at::ones({1, 1, 1, 1, part.form.unit_channels(query_.size(-1))},
                                          query_.options()));
  for (int m = 1; m + 1 < order; ++m) {
    leading_.push_back(part.form.join(m).z(leading_.back(), keys_[m]));
  }
  combined_ = part.form.with_query().z(leading_.back(), query_);
}

Tensor ChunkTerms::logits() const {
  const Tensor logits = (combined_ * keys_.back()).sum(-1);
  return chunk_.missing.defined() ? logits.masked_fill(chunk_.missing, -kInfinity) : logits;
}

Tensor ChunkTerms::rows(const Tensor& tensor) const {
  return tensor.narrow(kRowDimension, chunk_.first_query, chunk_.queries);
}

Tensor ChunkTerms::spread(const Tensor& rows) const {
  return rows.index_select(kRowDimension, chunk_.rows);
}

Tensor ChunkTerms::sum_to_rows(const Tensor& terms) const {
  at::DimVector sizes(terms.sizes());
  sizes[kRowDimension] = chunk_.queries;
  return at::zeros(sizes, terms.options()).index_add(kRowDimension, chunk_.rows, terms);
}

Tensor ChunkTerms::largest_of_rows(const Tensor& terms) const {
  at::DimVector sizes(terms.sizes());
  sizes[kRowDimension] = chunk_.queries;
  return at::full(sizes, -std::numeric_limits<double>::infinity(), terms.options())
      .scatter_reduce(kRowDimension, chunk_.rows.expand_as(terms), terms.detach(), "amax");
}

ChunkTerms::FormGradients ChunkTerms::form_backward(const Tensor& grad_logits) const {
  const int order = part_.settings.order;
  const dense::LeadingRows& form = part_.form;
  const Tensor grad_column = grad_logits.unsqueeze(-1);
  const Tensor grad_combined = grad_column * keys_.back();
  FormGradients grads;
  grads.query = sum_to_rows(form.with_query().y(leading_.back(), grad_combined));
  grads.keys.resize(order);
  grads.keys[order - 1] = (grad_column * combined_).sum(2);
  if (order == 1) return grads;
  Tensor grad = form.with_query().x(query_, grad_combined).sum(2, /*keepdim=*/true);
  for (int m = order - 2; m > 0; --m) {
    grads.keys[m] = form.join(m).y(leading_[m - 1], grad).squeeze(2);
    grad = form.join(m).x(keys_[m], grad);
  }
  grads.keys[0] = grad.squeeze(2);
  return grads;
}

}  // namespace nsimplex::sparse
