// The autograd node of the separable operator and the batching rule of vmap.

#include <torch/library.h>

#include "attention/separable_attention/separable_attention_call.h"
#include "support/operator.h"

namespace nsimplex::separable {
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
  static Gradients backward(const BackwardCall& call) { return reference_backward(call); }
};

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("separable_attention", TORCH_FN(flat<&recorded_forward<Kernels>>));
  m.impl("separable_attention_reference", TORCH_FN(flat<&recorded_forward<ReferenceKernels>>));
  m.impl("separable_attention_backward", TORCH_FN(flat<&recorded_backward<Kernels>>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("separable_attention", TORCH_FN(flat<&reference_forward>));
  m.impl("separable_attention_reference", TORCH_FN(flat<&reference_forward>));
  m.impl("separable_attention_backward", TORCH_FN(flat<&reference_backward>));
}

}  // namespace
}  // namespace nsimplex::separable
