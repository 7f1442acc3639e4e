// The autograd node of the dense operator, and what stands above it in the dispatcher: autocast and
// the batching rule of vmap.

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/functorch/DynamicLayer.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "attention/dense/dense_arguments.h"

namespace nsimplex::dense {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The options of a call as the node keeps them: plain values in a tuple, which compiled autograd
// can compare (it refuses opaque objects).
c10::IValue pack(const Options& o) {
  std::vector<c10::IValue> window;
  if (o.window) window.assign(o.window->begin(), o.window->end());
  return c10::ivalue::Tuple::create({o.causal, std::string(o.form), std::string(o.reduce),
                                     std::string(o.normalizer), o.logit_scale, o.output_scale,
                                     std::string(o.distinct),
                                     c10::ivalue::Tuple::create(std::move(window))});
}

// Views packed options; lives as long as they are used.
class UnpackedOptions {
 public:
  explicit UnpackedOptions(const c10::IValue& packed) : fields_(packed.toTuple()) {
    for (const c10::IValue& each : field(7).toTupleRef().elements().asArrayRef()) {
      window_.push_back(each.toSymInt());
    }
  }

  Options view(const OptionalTensor& key_lengths) const {
    at::OptionalSymIntArrayRef window;
    if (!window_.empty()) window = c10::SymIntArrayRef(window_);
    return {field(0).toBool(),
            window,
            field(1).toStringView(),
            field(2).toStringView(),
            field(3).toStringView(),
            field(4).toOptional<double>(),
            field(5).toOptional<double>(),
            key_lengths,
            none_,
            none_,
            none_,
            field(6).toStringView(),
            std::nullopt,
            0.0,
            std::nullopt};
  }

 private:
  const c10::IValue& field(size_t index) const { return fields_->elements().asArrayRef()[index]; }

  c10::intrusive_ptr<c10::ivalue::Tuple> fields_;
  c10::SmallVector<c10::SymInt, 8> window_;
  OptionalTensor none_;
};

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
// vanish.
template <class Implementation>
struct AttentionFunction : torch::autograd::Function<AttentionFunction<Implementation>> {
  static variable_list forward(AutogradContext* context, const Tensor& query, at::TensorList keys,
                               at::TensorList values, const Options* options) {
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [out, lse] = Implementation::forward({query, keys, values, *options});
    variable_list saved{query};
    saved.insert(saved.end(), keys.begin(), keys.end());
    saved.insert(saved.end(), values.begin(), values.end());
    saved.push_back(out);
    saved.push_back(lse);
    saved.push_back(options->key_lengths.value_or(Tensor()));
    context->save_for_backward(std::move(saved));
    context->set_materialize_grads(false);
    context->saved_data["options"] = pack(*options);
    return {out, lse};
  }

  // Calls the backward operator, through its own autograd kernel: that one decides whether this
  // gradient will be differentiated again.
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const size_t order = (saved.size() - 4) / 2, inputs = 1 + 2 * order;
    variable_list result(inputs + 1);  // the last one belongs to the options
    if (!grads[0].defined() && !grads[1].defined()) return result;

    const at::TensorList all(saved);
    const Tensor &out = saved[inputs], &lse = saved[inputs + 1], &lengths = saved[inputs + 2];
    const Tensor grad_out = grads[0].defined() ? grads[0] : at::zeros_like(out);
    const OptionalTensor grad_lse = grads[1].defined() ? OptionalTensor(grads[1]) : std::nullopt;
    const OptionalTensor key_lengths = lengths.defined() ? OptionalTensor(lengths) : std::nullopt;
    c10::List<bool> wanted;
    wanted.reserve(inputs);
    for (size_t i = 0; i < inputs; ++i) wanted.push_back(context->needs_input_grad(i));

    const UnpackedOptions options(context->saved_data["options"]);
    auto [grad_query, grad_keys, grad_values] = Implementation::backward(
        {{all[0], all.slice(1, order), all.slice(1 + order, order), options.view(key_lengths)},
         out,
         lse,
         grad_out,
         grad_lse,
         wanted});
    if (wanted[0]) result[0] = std::move(grad_query);
    for (size_t m = 0; m < order; ++m) {
      if (wanted[1 + m]) result[1 + m] = std::move(grad_keys[m]);
      if (wanted[1 + order + m]) result[1 + order + m] = std::move(grad_values[m]);
    }
    return result;
  }
};

template <class Predicate>
bool any_input(const Call& call, Predicate&& predicate) {
  return predicate(call.query) || std::any_of(call.keys.begin(), call.keys.end(), predicate) ||
         std::any_of(call.values.begin(), call.values.end(), predicate);
}

bool requires_grad(const Tensor& tensor) { return tensor.requires_grad(); }
bool has_tangent(const Tensor& tensor) { return tensor._fw_grad(/*level=*/0).defined(); }

// A C++ autograd function knows neither functorch's transforms nor forward mode; the reference is
// made of operators that do.
bool needs_composite(const Call& call) {
  return at::functorch::maybeCurrentDynamicLayer().has_value() || any_input(call, has_tangent);
}

template <class Implementation>
Output autograd_forward(const Call& call) {
  if (needs_composite(call)) return reference_forward(call);
  if (!at::GradMode::is_enabled() || !any_input(call, requires_grad)) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return Implementation::forward(call);
  }
  variable_list result =
      AttentionFunction<Implementation>::apply(call.query, call.keys, call.values, &call.options);
  return {std::move(result[0]), std::move(result[1])};
}

// A gradient that is differentiated again is the reference's, recorded operation by operation.
Gradients autograd_backward(const BackwardCall& call) {
  const auto recorded = [&](const Tensor& tensor) {
    return requires_grad(tensor) || has_tangent(tensor);
  };
  const bool again = any_input(call.forward, recorded) || recorded(call.out) ||
                     recorded(call.lse) || recorded(call.grad_out) ||
                     (call.grad_lse && recorded(*call.grad_lse));
  if ((at::GradMode::is_enabled() && again) || needs_composite(call.forward) ||
      has_tangent(call.grad_out)) {
    return reference_backward(call);
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return dispatch(call);
}

// fp32 until a kernel of lower precision pays.
template <class Implementation, c10::DeviceType device>
Output autocast_forward(const Call& call) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(
      c10::DispatchKeySet(at::autocast::get_autocast_dispatch_key_from_device_type(device)));
  const auto cast = [](const auto& argument) {
    return at::autocast::cached_cast(at::kFloat, argument, device);
  };
  const std::vector<Tensor> keys = cast(call.keys), values = cast(call.values);
  return Implementation::forward({cast(call.query), keys, values, call.options});
}

template <class Implementation>
constexpr auto autocast_cpu = &autocast_forward<Implementation, c10::DeviceType::CPU>;
template <class Implementation>
constexpr auto autocast_cuda = &autocast_forward<Implementation, c10::DeviceType::CUDA>;

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("attention", TORCH_FN(flat<&autograd_forward<Kernels>>));
  m.impl("attention_reference", TORCH_FN(flat<&autograd_forward<ReferenceKernels>>));
  m.impl("attention_backward", TORCH_FN(flat_backward<&autograd_backward>));
}

TORCH_LIBRARY_IMPL(nsimplex, AutocastCPU, m) {
  m.impl("attention", TORCH_FN(flat<autocast_cpu<Kernels>>));
  m.impl("attention_reference", TORCH_FN(flat<autocast_cpu<ReferenceKernels>>));
}

TORCH_LIBRARY_IMPL(nsimplex, AutocastCUDA, m) {
  m.impl("attention", TORCH_FN(flat<autocast_cuda<Kernels>>));
  m.impl("attention_reference", TORCH_FN(flat<autocast_cuda<ReferenceKernels>>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("attention", TORCH_FN(flat<&reference_forward>));
  m.impl("attention_reference", TORCH_FN(flat<&reference_forward>));
  m.impl("attention_backward", TORCH_FN(flat_backward<&reference_backward>));
}

}  // namespace
}  // namespace nsimplex::dense
