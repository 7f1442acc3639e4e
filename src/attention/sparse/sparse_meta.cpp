// Shapes, dtypes and memory order of the sparse operator's results, for torch.compile and export.

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "attention/dense/dense_arguments.h"
#include "attention/sparse/sparse_arguments.h"

namespace nsimplex::sparse {
namespace {

Output meta_forward(const Call& call) {
  check(call);
  const std::array<c10::SymInt, 4> sizes = output_sizes(call);
  const at::TensorOptions options = call.query.options();
  const at::ScalarType wide = dense::accumulate_type(call.query.scalar_type());
  return {dense::empty_in_order(call.query, sizes, options),
          at::empty_symint(c10::SymIntArrayRef(sizes.data(), 3), options.dtype(wide))};
}

Gradients meta_backward(const BackwardCall& call) {
  check(call);
  size_t next = 0;
  const auto in_order = [&](const at::Tensor& input) {
    return call.wanted[next++] ? dense::empty_in_order(input, input.sym_sizes(), input.options())
                               : at::empty({0}, input.options());
  };
  Gradients gradients;
  auto& [query, keys, values, weights] = gradients;
  query = in_order(call.forward.query);
  for (const at::Tensor& key : call.forward.keys) keys.push_back(in_order(key));
  for (const at::Tensor& value : call.forward.values) values.push_back(in_order(value));
  for (const at::Tensor& weight : call.forward.options.weights()) {
    weights.push_back(call.wanted[next++] ? at::empty_symint(weight.sym_sizes(), weight.options())
                                          : at::empty({0}, weight.options()));
  }
  return gradients;
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) {
  m.impl("sparse_attention", TORCH_FN(flat<&meta_forward>));
  m.impl("sparse_attention_reference", TORCH_FN(flat<&meta_forward>));
  m.impl("sparse_attention_backward", TORCH_FN(flat_backward<&meta_backward>));
  m.impl("sparse_attention_reference_backward", TORCH_FN(flat_backward<&meta_backward>));
}

}  // namespace
}  // namespace nsimplex::sparse
