// Shapes, dtypes and memory order of the dense operator's results, for torch.compile and export.

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "attention/dense/dense_arguments.h"

namespace nsimplex::dense {
namespace {

Output meta_forward(const Call& call) {
  check(call);
  const std::array<c10::SymInt, 4> sizes = output_sizes(call);
  const at::TensorOptions options = call.query.options();
  return {empty_in_order(call.query, sizes, options),
          at::empty_symint(c10::SymIntArrayRef(sizes.data(), 3),
                           options.dtype(accumulate_type(call.query.scalar_type())))};
}

Gradients meta_backward(const BackwardCall& call) {
  check(call);
  size_t next = 0;
  const auto gradient = [&](const at::Tensor& input) {
    return call.wanted[next++] ? empty_in_order(input, input.sym_sizes(), input.options())
                               : at::empty({0}, input.options());
  };
  Gradients gradients;
  std::get<0>(gradients) = gradient(call.forward.query);
  for (const at::Tensor& key : call.forward.keys) std::get<1>(gradients).push_back(gradient(key));
  for (const at::Tensor& value : call.forward.values)
    std::get<2>(gradients).push_back(gradient(value));
  const auto option_gradient = [&](const OptionalTensor& input) {
    return call.wanted[next++] ? at::empty_symint(input->sym_sizes(), input->options())
                               : at::empty({0}, call.forward.query.options());
  };
  std::get<3>(gradients) = option_gradient(call.forward.options.mask);
  std::get<4>(gradients) = option_gradient(call.forward.options.sink);
  return gradients;
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) {
  m.impl("attention", TORCH_FN(flat<&meta_forward>));
  m.impl("attention_reference", TORCH_FN(flat<&meta_forward>));
  m.impl("attention_backward", TORCH_FN(flat_backward<&meta_backward>));
}

}  // namespace
}  // namespace nsimplex::dense
