// The autograd node of the dense operator and the batching rule of vmap.

#include "attention/attention/attention_autograd.h"

#include <torch/library.h>

#include "support/operator.h"

namespace nsimplex::dense {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Saved tensors: query, keys.., values.., out, lse, then these, then the key masks if there are
// any.
enum OptionIndex { kKeyLengths, kSegments, kMask, kSink, kOptionTensors };

// Places in the tuple of plain options.
enum Field {
  kOrder,
  kCausal,
  kForm,
  kReduce,
  kNormalizer,
  kLogitScale,
  kOutputScale,
  kDistinct,
  kWindow,
  kAugment,
  kDropout,
  kSeed
};

// Plain values in a tuple: compiled autograd compares them, and refuses opaque objects.
c10::IValue pack(size_t order, const Options& o) {
  std::vector<c10::IValue> window, augment;
  if (o.window) window.assign(o.window->begin(), o.window->end());
  if (o.augment) augment.assign(o.augment->begin(), o.augment->end());
  return c10::ivalue::Tuple::create({static_cast<int64_t>(order), o.causal, std::string(o.form),
                                     std::string(o.reduce), std::string(o.normalizer),
                                     o.logit_scale, o.output_scale, std::string(o.distinct),
                                     c10::ivalue::Tuple::create(std::move(window)),
                                     c10::ivalue::Tuple::create(std::move(augment)), o.dropout_p,
                                     o.seed ? c10::IValue(*o.seed) : c10::IValue()});
}

OptionalTensor optional(const Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

at::ArrayRef<c10::IValue> elements(const c10::IValue& tuple) {
  return tuple.toTupleRef().elements().asArrayRef();
}

}  // namespace

void save_call(AutogradContext& context, const Call& call, const Output& output) {
  const Options& options = call.options;
  variable_list saved{call.query};
  saved.insert(saved.end(), call.keys.begin(), call.keys.end());
  saved.insert(saved.end(), call.values.begin(), call.values.end());
  saved.push_back(std::get<0>(output));
  saved.push_back(std::get<1>(output));
  for (const OptionalTensor* each : std::initializer_list<const OptionalTensor*>{
           &options.key_lengths, &options.cu_seqlens, &options.mask, &options.sink}) {
    saved.push_back(each->value_or(Tensor()));
  }
  if (options.key_masks) {
    saved.insert(saved.end(), options.key_masks->begin(), options.key_masks->end());
  }
  context.save_for_backward(std::move(saved));
  context.saved_data["options"] = pack(call.keys.size(), options);
}

SavedCall::SavedCall(AutogradContext& context)
    : tensors_(context.get_saved_variables()), fields_(context.saved_data["options"].toTuple()) {
  const at::ArrayRef<c10::IValue> fields = fields_->elements().asArrayRef();
  order_ = static_cast<size_t>(fields[kOrder].toInt());
  for (const c10::IValue& each : elements(fields[kWindow])) window_.push_back(each.toSymInt());
  for (const c10::IValue& each : elements(fields[kAugment])) augment_.push_back(each.toInt());
  const Tensor* const options = &tensors_[3 + 2 * order_];
  key_lengths_ = optional(options[kKeyLengths]);
  cu_seqlens_ = optional(options[kSegments]);
  mask_ = optional(options[kMask]);
  sink_ = optional(options[kSink]);
}

Call SavedCall::call() const {
  const at::ArrayRef<c10::IValue> fields = fields_->elements().asArrayRef();
  const at::TensorList all(tensors_);
  at::OptionalSymIntArrayRef window;
  if (!window_.empty()) window = c10::SymIntArrayRef(window_);
  at::OptionalIntArrayRef augment;
  if (!augment_.empty()) augment = at::IntArrayRef(augment_);
  std::optional<c10::SymInt> seed;
  if (!fields[kSeed].isNone()) seed = fields[kSeed].toSymInt();
  const size_t first_mask = 3 + 2 * order_ + kOptionTensors;
  OptionalTensorList key_masks;
  if (tensors_.size() > first_mask) key_masks = all.slice(first_mask);
  return {all[0],
          all.slice(1, order_),
          all.slice(1 + order_, order_),
          {fields[kCausal].toBool(), window, fields[kForm].toStringView(),
           fields[kReduce].toStringView(), fields[kNormalizer].toStringView(),
           fields[kLogitScale].toOptional<double>(), fields[kOutputScale].toOptional<double>(),
           key_lengths_, key_masks, cu_seqlens_, mask_, sink_, fields[kDistinct].toStringView(),
           augment, fields[kDropout].toDouble(), seed}};
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
  static Gradients backward(const BackwardCall& call) { return reference_backward(call); }
};

// Saves the inputs, out and lse, nothing else: O(T) memory. Key and value lists are TensorLists all
// the way: apply() looks into those, and not into a std::vector<Tensor>, whose gradients would
// vanish. Mask and sink come besides the options for the same reason.
template <class Implementation>
struct AttentionFunction : torch::autograd::Function<AttentionFunction<Implementation>> {
  static variable_list forward(AutogradContext* context, const Tensor& query, at::TensorList keys,
                               at::TensorList values, const OptionalTensor& /*mask*/,
                               const OptionalTensor& /*sink*/, const Options* options) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const Call call{query, keys, values, *options};
    auto [out, lse] = Implementation::forward(call);
    save_call(*context, call, {out, lse});
    context->set_materialize_grads(false);
    return {out, lse};
  }

  // Calls the backward operator, through its own autograd kernel: that one decides whether this
  // gradient will be differentiated again.
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const SavedCall saved(*context);
    const size_t order = saved.order(), inputs = 1 + 2 * order;
    variable_list result(inputs + 3);  // mask and sink, and the options, which have no gradient
    if (!grads[0].defined() && !grads[1].defined()) return result;

    const Tensor grad_out = grads[0].defined() ? grads[0] : at::zeros_like(saved.out());
    const OptionalTensor grad_lse = grads[1].defined() ? OptionalTensor(grads[1]) : std::nullopt;
    c10::List<bool> wanted;
    wanted.reserve(inputs + 2);
    for (size_t i = 0; i < inputs; ++i) wanted.push_back(context->needs_input_grad(i));
    size_t edge = inputs;  // an absent option has no edge
    for (const OptionalTensor* option : {&saved.mask(), &saved.sink()}) {
      wanted.push_back(option->has_value() && context->needs_input_grad(edge++));
    }

    auto [grad_query, grad_keys, grad_values, grad_mask, grad_sink] = Implementation::backward(
        {saved.call(), saved.out(), saved.lse(), grad_out, grad_lse, wanted});
    const auto hand_over = [&](size_t i, Tensor& gradient) {
      if (wanted[i]) result[i] = std::move(gradient);
    };
    hand_over(0, grad_query);
    for (size_t m = 0; m < order; ++m) {
      hand_over(1 + m, grad_keys[m]);
      hand_over(1 + order + m, grad_values[m]);
    }
    hand_over(inputs, grad_mask);
    hand_over(inputs + 1, grad_sink);
    return result;
  }
};

template <class Implementation>
Output above_forward(const Call& call) {
  return autograd_forward(call, &reference_forward, &Implementation::forward, [](const Call& own) {
    variable_list result = AttentionFunction<Implementation>::apply(
        own.query, own.keys, own.values, own.options.mask, own.options.sink, &own.options);
    return Output(std::move(result[0]), std::move(result[1]));
  });
}

Gradients above_backward(const BackwardCall& call) {
  return autograd_backward(call, &reference_backward, &Kernels::backward);
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("attention", TORCH_FN(flat<&above_forward<Kernels>>));
  m.impl("attention_reference", TORCH_FN(flat<&above_forward<ReferenceKernels>>));
  m.impl("attention_backward", TORCH_FN(flat_backward<&above_backward>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("attention", TORCH_FN(flat<&reference_forward>));
  m.impl("attention_reference", TORCH_FN(flat<&reference_forward>));
  m.impl("attention_backward", TORCH_FN(flat_backward<&reference_backward>));
}

}  // namespace
}  // namespace nsimplex::dense
