#include "attention/sparse/sparse_terms.h"

#include <ATen/ATen.h>

#include <limits>

#include "attention/dense/dense_arguments.h"

namespace nsimplex::sparse {
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
    keys_.push_back(part.keys[m].index_select(2, chunk.keys[m]).unsqueeze(2));
    values_.push_back(part.values[m].index_select(2, chunk.keys[m]));
  }
  leading_.push_back(order > 1 ? keys_[0]
                               : at::ones({1, 1, 1, 1, part.form.unit_channels(query_.size(-1))},
                                          query_.options()));
  for (int m = 1; m + 1 < order; ++m) {
    leading_.push_back(part.form.join(m).z(leading_.back(), keys_[m]));
  }
  combined_ = part.form.with_query().z(leading_.back(), query_);
}

Tensor ChunkTerms::logits() const { return (combined_ * keys_.back()).sum(-1); }

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
