// The autograd node of the sparse operator and the batching rule of vmap.

#include "attention/sparse_attention/sparse_attention_autograd.h"

#include <torch/library.h>

#include "support/operator.h"

namespace nsimplex::sparse {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Places in the tuple of plain options.
enum Field { kOrder, kPattern, kForm, kReduce, kLogitScale, kOutputScale };

}  // namespace

void save_call(AutogradContext& context, const Call& call, const Output& output) {
  const Options& o = call.options;
  variable_list saved{call.query};
  for (const at::TensorList list : {call.keys, call.values, o.weights()}) {
    saved.insert(saved.end(), list.begin(), list.end());
  }
  saved.insert(saved.end(), {std::get<0>(output), std::get<1>(output), call.indices,
                             call.offsets.value_or(Tensor())});
  context.save_for_backward(std::move(saved));
  // Plain values in a tuple: compiled autograd compares them, and refuses opaque objects.
  context.saved_data["options"] = c10::ivalue::Tuple::create(
      {static_cast<int64_t>(call.keys.size()), std::string(o.pattern), std::string(o.form),
       std::string(o.reduce), o.logit_scale, o.output_scale});
}

SavedCall::SavedCall(AutogradContext& context)
    : tensors_(context.get_saved_variables()), fields_(context.saved_data["options"].toTuple()) {
  order_ = static_cast<size_t>(fields_->elements().asArrayRef()[kOrder].toInt());
  inputs_ = tensors_.size() - 4;
  if (tensors_.back().defined()) offsets_ = tensors_.back();
}

Call SavedCall::call() const {
  const at::ArrayRef<c10::IValue> fields = fields_->elements().asArrayRef();
  const at::TensorList all(tensors_);
  const size_t first_weight = 1 + 2 * order_;
  OptionalTensorList weights;
  if (inputs_ > first_weight) weights = all.slice(first_weight, inputs_ - first_weight);
  return {all[0],
          all.slice(1, order_),
          all.slice(1 + order_, order_),
          all[inputs_ + 2],
          offsets_,
          {fields[kPattern].toStringView(), fields[kForm].toStringView(),
           fields[kReduce].toStringView(), weights, fields[kLogitScale].toOptional<double>(),
           fields[kOutputScale].toOptional<double>()}};
}

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The operators below autograd: the kernel of the device, or the reference on request.
struct Kernels {
  static Output forward(const Call& call) { return dispatch(call); }
  static Gradients backward(const BackwardCall& call) { return dispatch(call); }
};
struct ReferenceKernels {
  static Output forward(const Call& call) { return dispatch_reference(call); }
  static Gradients backward(const BackwardCall& call) { return dispatch_reference(call); }
};

// Saves the inputs, out and lse, nothing else: O(T) memory besides the list. Lists of tensors come
// as TensorLists, into which apply() looks for inputs.
template <class Implementation>
struct SparseFunction : torch::autograd::Function<SparseFunction<Implementation>> {
  static variable_list forward(AutogradContext* context, const Tensor& query, at::TensorList keys,
                               at::TensorList values, at::TensorList /*weights*/,
                               const Call* call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const Call own{query, keys, values, call->indices, call->offsets, call->options};
    auto [out, lse] = Implementation::forward(own);
    save_call(*context, own, {out, lse});
    context->set_materialize_grads(false);
    return {out, lse};
  }

  // Calls the backward operator, through its own autograd kernel: that one decides whether this
  // gradient will be differentiated again.
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const SavedCall saved(*context);
    variable_list result(saved.inputs() + 1);  // the call itself has no gradient
    if (!grads[0].defined() && !grads[1].defined()) return result;

    const Tensor grad_out = grads[0].defined() ? grads[0] : at::zeros_like(saved.out());
    const OptionalTensor grad_lse = grads[1].defined() ? OptionalTensor(grads[1]) : std::nullopt;
    c10::List<bool> wanted;
    for (size_t i = 0; i < saved.inputs(); ++i) wanted.push_back(context->needs_input_grad(i));
    auto [query, keys, values, weights] = Implementation::backward(
        {saved.call(), saved.out(), saved.lse(), grad_out, grad_lse, wanted});
    size_t next = 0;
    const auto hand_over = [&](Tensor& gradient) {
      if (wanted[next]) result[next] = std::move(gradient);
      ++next;
    };
    hand_over(query);
    for (std::vector<Tensor>* const list : {&keys, &values, &weights}) {
      for (Tensor& gradient : *list) hand_over(gradient);
    }
    return result;
  }
};

template <class Implementation>
Output above_forward(const Call& call) {
  return autograd_forward(call, &reference_forward, &Implementation::forward, [](const Call& own) {
    variable_list result = SparseFunction<Implementation>::apply(own.query, own.keys, own.values,
                                                                 own.options.weights(), &own);
    return Output(std::move(result[0]), std::move(result[1]));
  });
}

template <class Implementation>
Gradients above_backward(const BackwardCall& call) {
  return autograd_backward(call, &reference_backward, &Implementation::backward);
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("sparse_attention", TORCH_FN(flat<&above_forward<Kernels>>));
  m.impl("sparse_attention_reference", TORCH_FN(flat<&above_forward<ReferenceKernels>>));
  m.impl("sparse_attention_backward", TORCH_FN(flat_backward<&above_backward<Kernels>>));
  m.impl("sparse_attention_reference_backward",
         TORCH_FN(flat_backward<&above_backward<ReferenceKernels>>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("sparse_attention", TORCH_FN(flat<&reference_forward>));
  m.impl("sparse_attention_reference", TORCH_FN(flat<&reference_forward>));
  m.impl("sparse_attention_backward", TORCH_FN(flat_backward<&reference_backward>));
  m.impl("sparse_attention_reference_backward", TORCH_FN(flat_backward<&reference_backward>));
}

}  // namespace
}  // namespace nsimplex::sparse
