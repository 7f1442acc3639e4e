// The separable operator from ATen calls, feature by feature: the state of feature r at query i is
// a matrix product of the 0/1 matrix "query i sees key j" with the rows k_j[r] (v_j, 1).

#include <ATen/ATen.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/separable_attention/separable_attention_call.h"

namespace nsimplex::separable {
namespace {

using at::Tensor;

// The call in the dtype of sums, with key heads and their groups as separate dimensions: query [B,
// Hk, G, Tq, R], keys [B, Hk, 1, T_m, R], values [B, Hk, 1, T_m, Dv + 1] with a last channel of
// ones, sees [Tq, T_m] of zeros and ones.
struct Wide {
  Tensor query;
  std::vector<Tensor> keys, values, sees;

  explicit Wide(const Call& call) {
    const at::ScalarType type = dense::accumulate_type(call.query.scalar_type());
    query = call.query.to(type).unflatten(1, {call.keys[0].size(1), -1});
    for (size_t m = 0; m < call.keys.size(); ++m) {
      keys.push_back(call.keys[m].to(type).unsqueeze(2));
      const Tensor value = call.values[m].to(type).unsqueeze(2);
      values.push_back(at::cat({value, at::ones_like(value.narrow(-1, 0, 1))}, -1));
      sees.push_back(sees_of(visibility_of(call, m), call.query.size(2)).to(type));
    }
  }

  Tensor sees_of(const kernels::Visibility& visible, int64_t queries) const {
    const at::TensorOptions options = query.options().dtype(at::kLong).requires_grad(false);
    const Tensor position = at::arange(queries, options).unsqueeze(1) + visible.offset;
    const Tensor key = at::arange(visible.length, options).unsqueeze(0);
    Tensor seen = at::ones({queries, visible.length}, options.dtype(at::kBool));
    if (visible.left >= 0) seen = seen & (key > position - visible.left);
    if (visible.right >= 0) seen = seen & (key <= position + visible.right);
    if (visible.causal) seen = seen & (key <= position);
    return seen;
  }

  size_t order() const { return keys.size(); }
  int64_t features() const { return query.size(-1); }
  static Tensor feature(const Tensor& tensor, int64_t r) { return tensor.narrow(-1, r, 1); }

  // S^m_i[r, :] of every query: [B, Hk, 1, Tq, Dv + 1].
  std::vector<Tensor> states(int64_t r) const {
    std::vector<Tensor> states;
    for (size_t m = 0; m < order(); ++m) {
      states.push_back(sees[m].matmul(feature(keys[m], r) * values[m]));
    }
    return states;
  }
};

// factor times the product of all states except the one at `without`.
Tensor product(Tensor factor, const std::vector<Tensor>& states, size_t without) {
  for (size_t m = 0; m < states.size(); ++m) {
    if (m != without) factor = factor * states[m];
  }
  return factor;
}

}  // namespace

Tensor gradient_of_sums(const BackwardCall& call) {
  const at::ScalarType type = call.normalizer.scalar_type();
  const Tensor silent = call.normalizer.eq(0);
  const Tensor inverse = call.normalizer.masked_fill(silent, 1).reciprocal().masked_fill(silent, 0);
  const Tensor grad_num = call.grad_out.to(type) * inverse.unsqueeze(-1);
  Tensor grad_den = -(grad_num * call.out.to(type)).sum(-1);
  if (call.grad_normalizer) {
    grad_den = grad_den + call.grad_normalizer->to(type).masked_fill(silent, 0);
  }
  return at::cat({grad_num, grad_den.unsqueeze(-1)}, -1);
}

Output quotient_of(const Call& call, const Tensor& sums) {
  const Tensor den = sums.select(-1, -1);
  const Tensor silent = den.eq(0).unsqueeze(-1);
  const Tensor num = sums.narrow(-1, 0, sums.size(-1) - 1).masked_fill(silent, 0);
  return {dense::in_order_of(call.query, num / den.unsqueeze(-1).masked_fill(silent, 1)),
          den.contiguous()};
}

Output reference_forward(const Call& call) {
  check(call);
  const Wide wide(call);
  Tensor sums;
  for (int64_t r = 0; r < wide.features(); ++r) {
    const Tensor term = product(Wide::feature(wide.query, r), wide.states(r), wide.order());
    sums = r == 0 ? term : sums + term;
  }
  return quotient_of(call, sums.flatten(1, 2));
}

Gradients reference_backward(const BackwardCall& call) {
  check(call);
  const Wide wide(call.forward);
  const Tensor gradient = gradient_of_sums(call).unflatten(1, {wide.query.size(1), -1});
  std::vector<Tensor> query_columns;
  std::vector<std::vector<Tensor>> key_columns(wide.order());
  std::vector<Tensor> values(wide.order());
  for (int64_t r = 0; r < wide.features(); ++r) {
    const std::vector<Tensor> states = wide.states(r);
    query_columns.push_back(product(gradient, states, wide.order()).sum(-1, /*keepdim=*/true));
    const Tensor outer = (gradient * Wide::feature(wide.query, r)).sum(2, /*keepdim=*/true);
    for (size_t m = 0; m < wide.order(); ++m) {
      const Tensor of_keys = wide.sees[m].t().matmul(product(outer, states, m));
      key_columns[m].push_back((of_keys * wide.values[m]).sum(-1, /*keepdim=*/true));
      const Tensor of_values = of_keys * Wide::feature(wide.keys[m], r);
      values[m] = r == 0 ? of_values : values[m] + of_values;
    }
  }
  const Call& forward = call.forward;
  Gradients gradients{
      dense::in_order_of(forward.query, at::cat(query_columns, -1).flatten(1, 2)), {}, {}};
  for (size_t m = 0; m < wide.order(); ++m) {
    std::get<1>(gradients).push_back(
        dense::in_order_of(forward.keys[m], at::cat(key_columns[m], -1).squeeze(2)));
    std::get<2>(gradients).push_back(dense::in_order_of(
        forward.values[m], values[m].squeeze(2).narrow(-1, 0, forward.values[m].size(3))));
  }
  return gradients;
}

namespace {

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("separable_attention_reference", TORCH_FN(flat<&reference_forward>));
}

}  // namespace
}  // namespace nsimplex::separable
