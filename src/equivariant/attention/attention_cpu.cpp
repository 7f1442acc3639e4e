// Attention over lists of tuples on the CPU.

#include <ATen/ATen.h>
#include <torch/library.h>

#include "equivariant/attention/attention_layer.h"

namespace nsimplex::equivariant {
namespace {

at::Tensor cpu_attention(const AttentionCall& call) {
  check_attention(call);
  check_fingerprint(call.plan, call.parts);
  return attend_in_wide_type<CpuClass>(call);
}

AttentionGradients cpu_attention_backward(const AttentionBackwardCall& call) {
  check_attention_backward(call);
  check_fingerprint(call.forward.plan, call.forward.parts);
  return differentiate_in_wide_type<CpuClass>(call);
}

TORCH_LIBRARY_IMPL(nsimplex, CPU, m) {
  m.impl("equivariant_attention", TORCH_FN(flat_attention<&cpu_attention>));
  m.impl("equivariant_attention_backward",
         TORCH_FN(flat_attention_backward<&cpu_attention_backward>));
}

}  // namespace
}  // namespace nsimplex::equivariant
