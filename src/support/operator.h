// Calls registered operators, keeps calls for their backward, and decides above autograd which
// version computes.

#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "support/flat_call.h"
#include "support/plain_tensor.h"

// The decisions above autograd, which are the same for every operator with an autograd node. A
// call's any_input(predicate) tells whether a tensor that it may be differentiated in satisfies a
// predicate. A backward call's any_tensor(predicate) tells the same of any of its tensors.

namespace nsimplex {

inline bool requires_grad(const at::Tensor& tensor) { return tensor.requires_grad(); }
inline bool has_tangent(const at::Tensor& tensor) { return tensor._fw_grad(/*level=*/0).defined(); }

/// Whether all tensors of a call are plain arrays that hold their numbers. The operator below
/// autograd refuses others by name (operator_rules.cpp).
template <class Call>
bool all_plain(const Call& call) {
  const auto foreign = [](const at::Tensor& tensor) {
    return !is_plain(tensor) || is_freed(tensor);
  };
  bool plain = true;
  const auto look = [&](const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, at::Tensor> || std::is_same_v<Field, at::TensorList>) {
      plain = plain && !any_tensor_of(std::tie(field), foreign);
    } else if constexpr (std::is_base_of_v<OptionalTensor, Field>) {
      const OptionalTensor& optional = field;
      plain = plain && !any_tensor_of(std::tie(optional), foreign);
    } else if constexpr (std::is_same_v<Field, OptionalTensorList>) {
      const at::TensorList list = field.value_or(at::TensorList());
      plain = plain && !any_tensor_of(std::tie(list), foreign);
    }
  };
  if constexpr (requires { Call::fields(call); }) {
    std::apply([&](const auto&... field) { (look(field), ...); }, Call::fields(call));
    return plain;
  } else {
    return !call.any_input(foreign);
  }
}

/// Whether a call must consist of ATen calls: a C++ autograd function supports neither functorch's
/// transforms nor forward mode.
template <class Call>
bool needs_composite(const Call& call) {
  return (at::functorch::maybeCurrentDynamicLayer().has_value() || call.any_input(has_tangent)) &&
         all_plain(call);
}

/// The forward operator above autograd: `composite` consists of ATen calls, `below` computes and
/// records nothing, `record` applies the autograd function.
template <class Call, class Composite, class Below, class Record>
auto autograd_forward(const Call& call, Composite&& composite, Below&& below, Record&& record) {
  if (needs_composite(call)) return composite(call);
  if (at::GradMode::is_enabled() && call.any_input(requires_grad)) return record(call);
  const at::AutoDispatchBelowADInplaceOrView guard;
  return below(call);
}

/// The backward operator above autograd. If the gradient is differentiated again, `composite`
/// computes it, recorded operation by operation.
template <class BackwardCall, class Composite, class Below>
auto autograd_backward(const BackwardCall& call, Composite&& composite, Below&& below) {
  const bool again = call.any_tensor(
      [](const at::Tensor& tensor) { return requires_grad(tensor) || has_tangent(tensor); });
  const bool composed = (at::GradMode::is_enabled() && again) || needs_composite(call.forward) ||
                        has_tangent(call.grad_out);
  if (composed && all_plain(call)) return composite(call);
  const at::AutoDispatchBelowADInplaceOrView guard;
  return below(call);
}

/// The registered operator of this name, for calls through the dispatcher.
template <class Function>
c10::TypedOperatorHandle<Function> find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

/// A registered operator as a function of a call (flat_call.h), through the dispatcher.
template <class Result, class Call>
class Operator {
 public:
  explicit Operator(const char* name) : handle_(find_operator<Signature>(name)) {}

  Result operator()(const Call& call) const {
    return std::apply([&](const auto&... arguments) { return handle_.call(arguments...); },
                      Call::fields(call));
  }

 private:
  using Signature = typename FlatSignature<Result, FieldsOf<Call>>::Type;
  c10::TypedOperatorHandle<Signature> handle_;
};

/// The arguments of a call between forward and backward: tensors as saved variables, everything
/// else as plain values in a tuple, because compiled autograd compares those and refuses opaque
/// objects.
struct KeptArguments {
  std::vector<at::Tensor> tensors;
  std::vector<c10::IValue> values;
};

/// Reads kept arguments in the order in which they were written. Views of them live as long as this
/// object.
class KeptReader {
 public:
  KeptReader(std::vector<at::Tensor> tensors, c10::intrusive_ptr<c10::ivalue::Tuple> values)
      : tensors_(std::move(tensors)), values_(std::move(values)) {}

  const at::Tensor& tensor() { return tensors_[next_tensor_++]; }
  at::TensorList tensors(size_t count) {
    next_tensor_ += count;
    return at::TensorList(tensors_).slice(next_tensor_ - count, count);
  }
  const c10::IValue& value() { return values_->elements().asArrayRef()[next_value_++]; }

  template <class T>
  at::ArrayRef<T> numbers(const c10::IValue& tuple) {
    std::vector<T> numbers;
    for (const c10::IValue& each : tuple.toTupleRef().elements()) numbers.push_back(each.to<T>());
    auto& owner = std::get<std::deque<std::vector<T>>>(numbers_);
    return owner.emplace_back(std::move(numbers));
  }

 private:
  std::vector<at::Tensor> tensors_;
  c10::intrusive_ptr<c10::ivalue::Tuple> values_;
  size_t next_tensor_ = 0, next_value_ = 0;
  std::tuple<std::deque<std::vector<int64_t>>, std::deque<std::vector<c10::SymInt>>> numbers_;
};

/// How an argument of type T passes from forward to backward: by default as a plain value. SymInts
/// stay symbolic.
template <class T>
struct Kept {
  static void write(KeptArguments& to, const T& value) { to.values.emplace_back(value); }
  static T read(KeptReader& from) { return from.value().to<T>(); }
};

template <>
struct Kept<std::string_view> {
  static void write(KeptArguments& to, std::string_view text) {
    to.values.emplace_back(std::string(text));
  }
  static std::string_view read(KeptReader& from) { return from.value().toStringView(); }
};

template <class T>
struct Kept<c10::OptionalArrayRef<T>> {
  static void write(KeptArguments& to, const c10::OptionalArrayRef<T>& numbers) {
    if (!numbers) {
      to.values.emplace_back();
      return;
    }
    to.values.emplace_back(
        c10::ivalue::Tuple::create(std::vector<c10::IValue>(numbers->begin(), numbers->end())));
  }
  static c10::OptionalArrayRef<T> read(KeptReader& from) {
    const c10::IValue& numbers = from.value();
    if (numbers.isNone()) return std::nullopt;
    return from.numbers<T>(numbers);
  }
};

template <>
struct Kept<at::Tensor> {
  static void write(KeptArguments& to, const at::Tensor& tensor) { to.tensors.push_back(tensor); }
  static const at::Tensor& read(KeptReader& from) { return from.tensor(); }
};

template <>
struct Kept<OptionalTensor> {
  static void write(KeptArguments& to, const OptionalTensor& tensor) {
    to.tensors.push_back(tensor.value_or(at::Tensor()));
  }
  static OptionalTensor read(KeptReader& from) {
    const at::Tensor& tensor = from.tensor();
    return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
  }
};

template <>
struct Kept<OptionalInt64> : Kept<OptionalTensor> {};

template <>
struct Kept<at::TensorList> {
  static void write(KeptArguments& to, at::TensorList list) {
    to.values.emplace_back(static_cast<int64_t>(list.size()));
    to.tensors.insert(to.tensors.end(), list.begin(), list.end());
  }
  static at::TensorList read(KeptReader& from) {
    return from.tensors(static_cast<size_t>(from.value().toInt()));
  }
};

template <>
struct Kept<OptionalTensorList> {
  static void write(KeptArguments& to, const OptionalTensorList& list) {
    to.values.emplace_back(list.has_value());
    Kept<at::TensorList>::write(to, list.value_or(at::TensorList()));
  }
  static OptionalTensorList read(KeptReader& from) {
    const bool given = from.value().toBool();
    const at::TensorList list = Kept<at::TensorList>::read(from);
    return given ? OptionalTensorList(list) : std::nullopt;
  }
};

/// Keeps a call, and tensors besides, for backward.
template <class Call>
void save_call(torch::autograd::AutogradContext& context, const Call& call,
               const std::vector<at::Tensor>& results) {
  KeptArguments kept;
  const auto write = [&](const auto& field) {
    Kept<std::decay_t<decltype(field)>>::write(kept, field);
  };
  std::apply([&](const auto&... field) { (write(field), ...); }, Call::fields(call));
  kept.tensors.insert(kept.tensors.end(), results.begin(), results.end());
  context.save_for_backward(std::move(kept.tensors));
  context.saved_data["arguments"] = c10::ivalue::Tuple::create(std::move(kept.values));
}

/// A kept call. It refers to this object.
template <class Call>
class SavedCall {
 public:
  explicit SavedCall(torch::autograd::AutogradContext& context)
      : kept_(context.get_saved_variables(), context.saved_data["arguments"].toTuple()) {
    const auto read = [&](auto& field) {
      field = Kept<std::decay_t<decltype(field)>>::read(kept_);
    };
    std::apply([&](auto&... field) { (read(field), ...); }, Call::fields(call_));
  }
  SavedCall(const SavedCall&) = delete;
  SavedCall& operator=(const SavedCall&) = delete;

  const Call& call() const { return call_; }
  /// The next of the tensors that were kept besides.
  const at::Tensor& next_result() { return kept_.tensor(); }

 private:
  KeptReader kept_;
  Call call_;
};

/// The autograd function of an operator with two results, out and a statistic of its rows, whose
/// backward is an operator too. It keeps the arguments and the results, nothing else: O(T) memory.
/// `Kernels` has forward(call) and backward(backward call) below autograd.
///
/// The tensors of call.differentiable() are arguments of forward() only because apply() looks for
/// inputs among them. Lists are TensorLists: apply() does not look into a std::vector, and its
/// gradients would vanish. The gradients come back in the same order.
template <class Kernels>
struct CallFunction : torch::autograd::Function<CallFunction<Kernels>> {
  using Call = CallOf<&Kernels::forward>;
  using BackwardCall = CallOf<&Kernels::backward>;
  using Context = torch::autograd::AutogradContext;

  template <class... Inputs>
  static std::vector<at::Tensor> forward(Context* context, const Call* call, const Inputs&...) {
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [out, statistic] = Kernels::forward(*call);
    save_call(*context, *call, {out, statistic});
    context->set_materialize_grads(false);
    return {out, statistic};
  }

  // Calls the backward operator through its own autograd kernel, which decides whether this
  // gradient will be differentiated again.
  static std::vector<at::Tensor> backward(Context* context, const std::vector<at::Tensor>& grads) {
    SavedCall<Call> saved(*context);
    c10::List<bool> wanted;
    size_t edge = 0;  // an absent tensor has no edge
    for_each_tensor(saved.call().differentiable(), [&](const at::Tensor& input) {
      wanted.push_back(input.defined() && context->needs_input_grad(edge++));
    });
    std::vector<at::Tensor> result(1 + wanted.size());  // the call itself has no gradient
    if (!grads[0].defined() && !grads[1].defined()) return result;

    const at::Tensor out = saved.next_result(), statistic = saved.next_result();
    BackwardCall call{saved.call(), out, statistic,
                      grads[0].defined() ? grads[0] : at::zeros_like(out),
                      grads[1].defined() ? OptionalTensor(grads[1]) : std::nullopt};
    if constexpr (requires { call.wanted; }) call.wanted = wanted;
    size_t next = 0;
    for_each_tensor(Kernels::backward(call), [&](const at::Tensor& gradient) {
      if (wanted[next++]) result[next] = gradient;
    });
    return result;
  }
};

/// The forward operator above autograd, recorded by CallFunction. Beside forward() and backward(),
/// `Kernels` names composite_forward and composite_backward, the same from ATen calls.
template <class Kernels>
auto recorded_forward(const CallOf<&Kernels::forward>& call) {
  using Call = CallOf<&Kernels::forward>;
  return autograd_forward(call, Kernels::composite_forward, &Kernels::forward, [](const Call& own) {
    const auto apply = [&](const auto&... inputs) {
      return CallFunction<Kernels>::apply(&own, inputs...);
    };
    std::vector<at::Tensor> result = std::apply(apply, own.differentiable());
    return ResultOf<&Kernels::forward>(std::move(result[0]), std::move(result[1]));
  });
}

/// The backward operator above autograd.
template <class Kernels>
auto recorded_backward(const CallOf<&Kernels::backward>& call) {
  return autograd_backward(call, Kernels::composite_backward, &Kernels::backward);
}

}  // namespace nsimplex
