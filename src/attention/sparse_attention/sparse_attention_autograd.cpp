// The autograd node of the sparse operator and the batching rule of vmap.

#include <torch/library.h>

#include "attention/sparse_attention/sparse_attention_call.h"
#include "support/operator.h"

namespace nsimplex::sparse {
namespace {

// The operators below autograd: the kernel of the device, or the reference if asked for.
struct Kernels {
  static constexpr auto composite_forward = &reference_forward;
  static constexpr auto composite_backward = &reference_backward;
  static Output forward(const Call& call) { return dispatch(call); }
  static Gradients backward(const BackwardCall& call) { return dispatch(call); }
};
struct ReferenceKernels : Kernels {
  static Output forward(const Call& call) { return dispatch_reference(call); }
  static Gradients backward(const BackwardCall& call) { return dispatch_reference(call); }
};

template <class Implementation>
void register_autograd(torch::Library& m, const char* forward, const char* backward) {
  m.impl(forward, TORCH_FN(flat<&recorded_forward<Implementation>>));
  m.impl(backward, TORCH_FN(flat<&recorded_backward<Implementation>>));
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  register_autograd<Kernels>(m, "sparse_attention", "sparse_attention_backward");
  register_autograd<ReferenceKernels>(m, "sparse_attention_reference",
                                      "sparse_attention_reference_backward");
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("sparse_attention", TORCH_FN(flat<&reference_forward>));
  m.impl("sparse_attention_reference", TORCH_FN(flat<&reference_forward>));
  m.impl("sparse_attention_backward", TORCH_FN(flat<&reference_backward>));
  m.impl("sparse_attention_reference_backward", TORCH_FN(flat<&reference_backward>));
}

}  // namespace
}  // namespace nsimplex::sparse
