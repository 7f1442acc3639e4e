// Attention over lists of tuples on the CPU, in the kernels' types.

#include <ATen/ATen.h>
#include <torch/library.h>

#include "equivariant/attention/attention_layer.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;

// Low precision is computed in float32.
at::ScalarType kernel_type(const Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

template <class Run>
auto in_kernel_type(const AttentionCall& call, Run&& run) {
  const at::ScalarType type = kernel_type(call.x);
  const auto cast = [&](const Tensor& tensor) { return tensor.to(type); };
  const Tensor x = cast(call.x), query = cast(call.query), query_bias = cast(call.query_bias),
               key = cast(call.key), key_bias = cast(call.key_bias), value = cast(call.value),
               output = cast(call.output);
  std::optional<Tensor> directions;
  if (call.directions) directions = cast(*call.directions);
  return run({x, query, query_bias, key, key_bias, value, output, directions, call.plan, call.parts,
              call.heads, call.form, call.normalise, call.features});
}

Tensor cpu_attention(const AttentionCall& call) {
  check_attention(call);
  return in_kernel_type(
             call, [](const AttentionCall& own) { return AttentionLayer<CpuClass>(own).forward(); })
      .to(call.x.scalar_type());
}

AttentionGradients cpu_attention_backward(const AttentionBackwardCall& call) {
  check_attention_backward(call);
  const at::ScalarType type = call.forward.x.scalar_type();
  return in_kernel_type(call.forward, [&](const AttentionCall& own) {
    AttentionGradients gradients =
        AttentionLayer<CpuClass>(own).backward(call.grad_out.to(kernel_type(own.x)));
    return std::apply([type](const auto&... each) { return AttentionGradients{each.to(type)...}; },
                      gradients);
  });
}

TORCH_LIBRARY_IMPL(nsimplex, CPU, m) {
  m.impl("equivariant_attention", TORCH_FN(flat_attention<&cpu_attention>));
  m.impl("equivariant_attention_backward",
         TORCH_FN(flat_attention_backward<&cpu_attention_backward>));
}

}  // namespace
}  // namespace nsimplex::equivariant
