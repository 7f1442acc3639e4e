// The autograd node of the dense operator and the batching rule of vmap.

#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_augment.h"
#include "support/operator.h"

namespace nsimplex::dense {
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

// The bias of the orders is added when their results are merged, which is differentiable itself.
template <class Implementation>
Output above_forward(const Call& call) {
  if (!call.options.order_bias) return recorded_forward<Implementation>(call);
  check(call);
  return augmented_forward(call, &recorded_forward<Implementation>);
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("attention", TORCH_FN(flat<&above_forward<Kernels>>));
  m.impl("attention_reference", TORCH_FN(flat<&above_forward<ReferenceKernels>>));
  m.impl("attention_backward", TORCH_FN(flat<&recorded_backward<Kernels>>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("attention", TORCH_FN(flat<&reference_forward>));
  m.impl("attention_reference", TORCH_FN(flat<&reference_forward>));
  m.impl("attention_backward", TORCH_FN(flat<&reference_backward>));
}

}  // namespace
}  // namespace nsimplex::dense
