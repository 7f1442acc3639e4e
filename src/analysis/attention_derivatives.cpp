// Computes attention weights and their second derivatives with all tuples stored.

#include "analysis/attention_derivatives.h"

#include <ATen/ATen.h>

namespace nsimplex::analysis {
namespace {

using at::Tensor;

Tensors keys_of(const Tensors& inputs) { return {inputs.begin() + 1, inputs.end()}; }

// <rows, columns>: [B, T, D] and [B, J, D] -> [B, T, J].
Tensor logits(const Tensor& rows, const Tensor& columns) {
  return rows.matmul(columns.transpose(1, 2));
}

// <q_i, [A, x]_iJ> = <q_i, x_J> - sum_M A_iM <q_i, x_M>, from the products <q_i, x_J>.
Tensor bracket(const Tensor& weights, const Tensor& products) {
  return products - (weights * products).sum(-1, /*keepdim=*/true);
}

// Derivative of the product of keys along a.
Tensor first_of_products(const Tensors& keys, const Tensors& a) {
  Tensor sum;
  for (size_t t = 0; t < keys.size(); ++t) {
    Tensors rows = keys;
    rows[t] = a[t];
    const Tensor term = WrittenOut::products(rows);
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

Tensor second_of_products(const Tensors& keys, const Tensors& a, const Tensors& b) {
  Tensor sum = at::zeros_like(WrittenOut::products(keys));
  for (size_t t = 0; t < keys.size(); ++t) {
    for (size_t s = 0; s < keys.size(); ++s) {
      if (s == t) continue;
      Tensors rows = keys;
      rows[t] = a[t];
      rows[s] = b[s];
      sum = sum + WrittenOut::products(rows);
    }
  }
  return sum;
}

}  // namespace

Tensor WrittenOut::products(const Tensors& rows) {
  Tensor all = rows[0];
  for (size_t m = 1; m < rows.size(); ++m) {
    all = (all.unsqueeze(2) * rows[m].unsqueeze(1)).flatten(1, 2);
  }
  return all;
}

Tensor WrittenOut::weights(const Tensors& inputs) const {
  return (logit_scale * logits(inputs[0], products(keys_of(inputs)))).softmax(-1);
}

Tensor WrittenOut::printed_second(const Tensors& inputs, const Tensors& a, const Tensors& b) const {
  const Tensor w = weights(inputs), &q = inputs[0];
  const Tensors keys = keys_of(inputs);
  const Tensor k = products(keys);
  const Tensor k_a = first_of_products(keys, keys_of(a)), k_b = first_of_products(keys, keys_of(b));
  const auto mean = [](const Tensor& of, const Tensor& x) { return (of * x).sum(-1, true); };
  const Tensor slope_a = logits(a[0], k) + logits(q, k_a);
  const Tensor w_b = logit_scale * w * (bracket(w, logits(b[0], k)) + bracket(w, logits(q, k_b)));
  return logit_scale * (w * (bracket(w, logits(a[0], k_b)) + bracket(w, logits(b[0], k_a))) +
                        w_b * bracket(w, slope_a) - w * mean(w_b, slope_a));
}

Tensor WrittenOut::missing_second(const Tensors& inputs, const Tensors& a, const Tensors& b) const {
  const Tensor w = weights(inputs);
  const Tensor k_ab = second_of_products(keys_of(inputs), keys_of(a), keys_of(b));
  return logit_scale * w * bracket(w, logits(inputs[0], k_ab));
}

}  // namespace nsimplex::analysis
