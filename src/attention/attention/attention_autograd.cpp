// The autograd node of the dense operator and the batching rule of vmap.

#include <torch/library.h>

#include <algorithm>
#include <functional>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_augment.h"
#include "support/operator.h"

namespace nsimplex::dense {
namespace {

// The gradients of all arguments, in the order of Call::differentiable().
using AllGradients = decltype(std::tuple_cat(Gradients(), std::tuple<PairMaskGradients>()));

Gradients no_gradients(const Call& call) {
  Gradients none;
  std::get<1>(none).resize(call.keys.size());
  std::get<2>(none).resize(call.values.size());
  return none;
}

// Divides what is wanted between the two backward operators. One of which nothing is wanted is not
// called.
template <class OfInputs, class OfPairMasks>
AllGradients all_gradients(BackwardCall call, OfInputs&& of_inputs, OfPairMasks&& of_pair_masks) {
  const auto any = [](const c10::List<bool>& wanted) {
    return std::ranges::any_of(wanted.vec(), std::identity());
  };
  PairMasksBackwardCall pairs{call};
  const size_t inputs = unwanted(call.forward).size();
  const c10::List<bool> all = call.wanted;
  call.wanted = c10::List<bool>();
  pairs.wanted = c10::List<bool>();
  for (size_t i = 0; i < all.size(); ++i) {
    (i < inputs ? call.wanted : pairs.wanted).push_back(all[i]);
  }
  return std::tuple_cat(
      any(call.wanted) ? of_inputs(call) : no_gradients(call.forward),
      std::make_tuple(any(pairs.wanted) ? of_pair_masks(pairs) : PairMaskGradients()));
}

// The operators below autograd: the kernel of the device, or the reference if asked for.
struct Kernels {
  static constexpr auto composite_forward = &reference_forward;
  static Output forward(const Call& call) { return dispatch(call); }
  static AllGradients backward(const BackwardCall& call) {
    return all_gradients(
        call, [](const BackwardCall& own) { return dispatch(own); },
        [](const PairMasksBackwardCall& own) { return dispatch(own); });
  }
};
struct ReferenceKernels {
  static constexpr auto composite_forward = &reference_forward;
  static Output forward(const Call& call) { return dispatch_reference(call); }
  static AllGradients backward(const BackwardCall& call) {
    return all_gradients(call, &reference_backward, &reference_pair_masks_backward);
  }
};

// The backward operators, whose gradients are the reference's.
struct BackwardKernels {
  static constexpr auto composite_backward = &reference_backward;
  static Gradients backward(const BackwardCall& call) { return dispatch(call); }
};
struct PairMasksBackwardKernels {
  static constexpr auto composite_backward = &reference_pair_masks_backward;
  static PairMaskGradients backward(const PairMasksBackwardCall& call) { return dispatch(call); }
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
  m.impl("attention_backward", TORCH_FN(flat<&recorded_backward<BackwardKernels>>));
  m.impl("attention_pair_masks_backward",
         TORCH_FN(flat<&recorded_backward<PairMasksBackwardKernels>>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("attention", TORCH_FN(flat<&reference_forward>));
  m.impl("attention_reference", TORCH_FN(flat<&reference_forward>));
  m.impl("attention_backward", TORCH_FN(flat<&reference_backward>));
  m.impl("attention_pair_masks_backward", TORCH_FN(flat<&reference_pair_masks_backward>));
}

}  // namespace
}  // namespace nsimplex::dense
