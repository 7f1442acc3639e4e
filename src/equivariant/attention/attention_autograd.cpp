// The autograd node of attention over lists of tuples and the batching rule of vmap.

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "attention/autograd.h"
#include "equivariant/attention/attention_call.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr size_t kWeights = 7;  // x among them

// Saves the inputs, nothing else.
struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& query,
                        const Tensor& query_bias, const Tensor& key, const Tensor& key_bias,
                        const Tensor& value, const Tensor& output, const AttentionCall* call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    variable_list saved{x, query, query_bias, key, key_bias, value, output};
    saved.push_back(call->directions.value_or(Tensor()));
    saved.insert(saved.end(), call->plan.begin(), call->plan.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["parts"] = call->parts.vec();
    context->saved_data["heads"] = call->heads;
    context->saved_data["form"] = std::string(call->form);
    context->saved_data["normalise"] = call->normalise;
    context->saved_data["features"] = std::string(call->features);
    return dispatch_attention({x, query, query_bias, key, key_bias, value, output, call->directions,
                               call->plan, call->parts, call->heads, call->form, call->normalise,
                               call->features});
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const at::TensorList all(saved);
    std::optional<Tensor> directions;
    if (saved[kWeights].defined()) directions = saved[kWeights];
    const std::vector<int64_t> parts = context->saved_data["parts"].toIntVector();
    const std::string form = context->saved_data["form"].toStringRef();
    const std::string features = context->saved_data["features"].toStringRef();
    AttentionGradients gradients = dispatch_attention_backward(
        {grads[0],
         {all[0], all[1], all[2], all[3], all[4], all[5], all[6], directions,
          all.slice(kWeights + 1), parts, context->saved_data["heads"].toInt(), form,
          context->saved_data["normalise"].toBool(), features}});
    variable_list result(kWeights + 1);  // the last is the call's
    std::apply(
        [&](auto&... each) {
          size_t i = 0;
          ((result[i] = context->needs_input_grad(i) ? std::move(each) : Tensor(), ++i), ...);
        },
        gradients);
    return result;
  }
};

Tensor above_forward(const AttentionCall& call) {
  return autograd_forward(
      call, &reference_attention, &dispatch_attention, [](const AttentionCall& own) {
        return AttentionFunction::apply(own.x, own.query, own.query_bias, own.key, own.key_bias,
                                        own.value, own.output, &own);
      });
}

AttentionGradients above_backward(const AttentionBackwardCall& call) {
  return autograd_backward(call, &reference_attention_backward, &dispatch_attention_backward);
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("equivariant_attention", TORCH_FN(flat_attention<&above_forward>));
  m.impl("equivariant_attention_backward", TORCH_FN(flat_attention_backward<&above_backward>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("equivariant_attention", TORCH_FN(flat_attention<&reference_attention>));
  m.impl("equivariant_attention_backward",
         TORCH_FN(flat_attention_backward<&reference_attention_backward>));
}

}  // namespace
}  // namespace nsimplex::equivariant
