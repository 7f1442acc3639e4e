// Derivatives of the class sums: each of the two operators is the backward of the other.

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "attention/autograd.h"
#include "equivariant/sparse/sums_call.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using Operator = Tensor (*)(const SumsCall&);

template <Operator forward_operator, Operator backward_operator>
struct SumsFunction : torch::autograd::Function<SumsFunction<forward_operator, backward_operator>> {
  static Tensor forward(AutogradContext* context, const Tensor& values, const SumsCall* call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    context->save_for_backward(variable_list(call->plan.begin(), call->plan.end()));
    context->saved_data["parts"] = call->parts.vec();
    context->saved_data["mean"] = call->mean;
    return forward_operator({values, call->plan, call->parts, call->mean});
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list plan = context->get_saved_variables();
    const std::vector<int64_t> parts = context->saved_data["parts"].toIntVector();
    return {backward_operator({grads[0], plan, parts, context->saved_data["mean"].toBool()}),
            Tensor()};
  }
};

template <Operator own, Operator other, Operator reference>
Tensor autograd(const SumsCall& call) {
  return autograd_forward(call, reference, own, [](const SumsCall& recorded) {
    return SumsFunction<own, other>::apply(recorded.values, &recorded);
  });
}

constexpr Operator kSums = &autograd<&dispatch_sums, &dispatch_transposed, &reference_sums>;
constexpr Operator kTransposed =
    &autograd<&dispatch_transposed, &dispatch_sums, &reference_transposed>;

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("equivariant_sums", TORCH_FN(flat_sums<kSums>));
  m.impl("equivariant_sums_backward", TORCH_FN(flat_sums<kTransposed>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("equivariant_sums", TORCH_FN(flat_sums<&reference_sums>));
  m.impl("equivariant_sums_backward", TORCH_FN(flat_sums<&reference_transposed>));
}

}  // namespace
}  // namespace nsimplex::equivariant
