// How operators without kernels of their own behave above autograd, under vmap, and with tensors that
// are not plain arrays of numbers. Without it, torch's own fallbacks would answer: one of them
// loses gradients in silence, and the others speak of operators that no caller knows.

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/operator_table.h"
#include "support/plain_tensor.h"

namespace nsimplex {
namespace {

using at::Tensor;
using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

// "[function] argument" or "[function] argument[2]".
std::string place_of(const OperatorHandle& op, size_t argument, std::optional<size_t> entry = {}) {
  return c10::str("[", op.schema().name().substr(op.schema().name().find("::") + 2), "] ",
                  op.schema().arguments()[argument].name(),
                  entry ? c10::str("[", *entry, "]") : "");
}

// visit(argument, entry, tensor) for each tensor among the arguments on the stack.
template <class Visit>
void for_each_argument(const OperatorHandle& op, const Stack& stack, Visit&& visit) {
  const size_t count = op.schema().arguments().size(), first = stack.size() - count;
  for (size_t i = 0; i < count; ++i) {
    const IValue& value = stack[first + i];
    if (value.isTensor()) {
      if (value.toTensor().defined()) visit(i, std::optional<size_t>(), value.toTensor());
    } else if (value.isTensorList()) {
      const std::vector<Tensor> list = value.toTensorVector();
      for (size_t entry = 0; entry < list.size(); ++entry)
        visit(i, std::optional(entry), list[entry]);
    }
  }
}

// Tensors that are not plain arrays.

bool takes_sparse(const OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return std::ranges::any_of(kOperators, [&](const OperatorRow& each) {
    return each.takes_sparse && name.ends_with(c10::str("::", each.name));
  });
}

// Tensors that the operators do not know. Nobody computes with floating numbers of 8 bits.
bool is_foreign(const Tensor& tensor) {
  return !is_plain(tensor) || at::isFloat8Type(tensor.scalar_type());
}

void refuse_one(const OperatorHandle& op, const std::string& place, const Tensor& tensor) {
  TORCH_CHECK_VALUE(!tensor.is_nested(), place, ": expected a dense tensor, got a nested one");
  const bool sparse = tensor.layout() == at::kSparse || tensor.layout() == at::kSparseCsr;
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided || (sparse && takes_sparse(op)), place,
                    ": expected a dense tensor, got layout ", tensor.layout());
  TORCH_CHECK_TYPE(!tensor.is_quantized() && !at::isFloat8Type(tensor.scalar_type()), place,
                   ": expected numbers that can be computed with, got ", tensor.scalar_type());
}

void refuse_foreign(const OperatorHandle& op, const Stack& stack) {
  for_each_argument(op, stack, [&](size_t i, std::optional<size_t> entry, const Tensor& tensor) {
    if (is_foreign(tensor)) refuse_one(op, place_of(op, i, entry), tensor);
  });
}

// What reading the numbers would crash at, or copying them exhaust.
void refuse_unreadable(const OperatorHandle& op, const Stack& stack) {
  for_each_argument(op, stack, [&](size_t i, std::optional<size_t> entry, const Tensor& tensor) {
    // The dispatcher does not see those of an optional list.
    if (is_foreign(tensor)) refuse_one(op, place_of(op, i, entry), tensor);
    if (!has_memory(tensor)) return;
    TORCH_CHECK_VALUE(is_addressable(tensor), place_of(op, i, entry),
                      ": expected tensors of at most 2^40 numbers, got shape ", tensor.sizes());
    TORCH_CHECK_VALUE(!is_freed(tensor), place_of(op, i, entry),
                      ": expected a tensor that holds its numbers, got one whose memory was freed");
  });
}

// The kernel of the keys that only foreign tensors have.
void refuse(const OperatorHandle& op, Stack* stack) {
  refuse_foreign(op, *stack);
  TORCH_CHECK_VALUE(false, "[", op.schema().name(), "] expected dense tensors, got others");
}

constexpr DispatchKey kSparse[] = {DispatchKey::SparseCPU, DispatchKey::SparseCUDA,
                                   DispatchKey::SparseCsrCPU, DispatchKey::SparseCsrCUDA};
constexpr DispatchKey kForeign[] = {DispatchKey::QuantizedCPU, DispatchKey::QuantizedCUDA,
                                    DispatchKey::MkldnnCPU, DispatchKey::NestedTensorCPU,
                                    DispatchKey::NestedTensorCUDA};

constexpr DispatchKey kAutograd[] = {DispatchKey::AutogradCPU, DispatchKey::AutogradCUDA,
                                     DispatchKey::AutogradMeta, DispatchKey::AutogradOther};

// Above autograd.

// Stands for the gradient that results do not have.
struct NoGradient : torch::autograd::Node {
  NoGradient(std::string place, torch::autograd::edge_list edges)
      : Node(std::move(edges)), place_(std::move(place)) {}

  std::string name() const override { return "NoGradient"; }

  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, place_,
                                ": expected a tensor of which no gradient is asked for, got one "
                                "that requires it; the results have none");
  }

 private:
  std::string place_;
};

// Nodes are held by another kind of pointer in older versions of torch.
using NodePointer = decltype(torch::autograd::Edge::function);

template <class Pointer = NodePointer>
Pointer make_node(const std::string& place, const std::vector<Tensor>& inputs) {
  auto edges = torch::autograd::collect_next_edges(inputs);
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<torch::autograd::Node>>) {
    return std::make_shared<NoGradient>(place, std::move(edges));
  } else {
    return c10::make_intrusive<NoGradient>(place, std::move(edges));
  }
}

// What asks for a derivative of a call.
struct Asked {
  std::vector<Tensor> tensors;  // that require gradients
  std::string place, tangent;   // of the first of them, and of the first with a tangent
};

Asked asked_of(const OperatorHandle& op, const Stack& stack) {
  Asked asked;
  for_each_argument(op, stack, [&](size_t i, std::optional<size_t> entry, const Tensor& tensor) {
    if (at::GradMode::is_enabled() && tensor.requires_grad()) {
      if (asked.tensors.empty()) asked.place = place_of(op, i, entry);
      asked.tensors.push_back(tensor);
    }
    if (asked.tangent.empty() && tensor._fw_grad(0).defined())
      asked.tangent = place_of(op, i, entry);
  });
  return asked;
}

// Results that lost a derivative that was asked for say so where it is computed.
void mark(const Asked& asked, Stack& stack, size_t results) {
  const auto one = [&](Tensor result) {
    if (!result.defined() || !result.is_floating_point() || result.is_inference()) return;
    TORCH_CHECK_NOT_IMPLEMENTED(
        asked.tangent.empty() || result._fw_grad(0).defined(), asked.tangent,
        ": expected a tensor of which no derivative is asked for, got one with a tangent; the "
        "results have none");
    if (asked.tensors.empty() || result.requires_grad()) return;
    torch::autograd::create_gradient_edge(result, make_node(asked.place, asked.tensors));
  };
  for (size_t i = stack.size() - results; i < stack.size(); ++i) {
    if (stack[i].isTensor()) one(stack[i].toTensor());
    if (!stack[i].isTensorList()) continue;
    for (const Tensor& each : stack[i].toTensorVector()) one(each);
  }
}

template <Recorded recorded>
void above_autograd(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  refuse_foreign(op, *stack);
  const Asked asked = asked_of(op, *stack);
  // A composite is recorded call by call, so it runs right here. An operator that reads numbers
  // runs below the transforms, which wrap them.
  const bool derived = !asked.tensors.empty() || !asked.tangent.empty() ||
                       at::functorch::maybeCurrentDynamicLayer().has_value();
  const bool here = recorded == Recorded::composite || (recorded == Recorded::whole && derived);
  if (here) refuse_unreadable(op, *stack);  // it does not come to look_at_memory()
  op.redispatchBoxed(here ? DispatchKeySet(DispatchKey::CPU) : keys & c10::after_autograd_keyset,
                     stack);
  // What a composite leaves without a gradient does not depend on the argument: its lse does not on
  // the values, and nothing does on a batch without entries.
  if (!here && (!asked.tensors.empty() || !asked.tangent.empty())) {
    mark(asked, *stack, op.schema().returns().size());
  }
}

// Below autograd, on the way to the kernel of a device, which reads the memory.
void look_at_memory(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  refuse_unreadable(op, *stack);
  op.redispatchBoxed(keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::BackendSelect),
                     stack);
}

// Under vmap.

// The argument of one call of the loop.
IValue slice_of(const IValue& value, int64_t level, int64_t at) {
  const auto one = [&](const Tensor& tensor) {
    const auto [inside, dimension] = at::functorch::unwrapTensorAtLevel(tensor, level);
    return dimension ? inside.select(*dimension, at) : inside;
  };
  if (value.isTensor() && value.toTensor().defined()) return one(value.toTensor());
  if (!value.isTensorList()) return value;
  std::vector<Tensor> list = value.toTensorVector();
  for (Tensor& each : list) each = one(each);
  return list;
}

// One result of all calls, as vmap has it.
IValue joined(const std::vector<IValue>& results, const std::string& place, int64_t level) {
  const auto one = [&](const std::vector<Tensor>& tensors) {
    for (const Tensor& each : tensors) {
      TORCH_CHECK_VALUE(each.sizes().equals(tensors[0].sizes()), place,
                        ": expected results of one shape from all that vmap maps over, got ",
                        tensors[0].sizes(), " and ", each.sizes());
    }
    return at::functorch::makeBatched(at::stack(tensors), 0, level);
  };
  std::vector<Tensor> tensors;
  if (results[0].isTensor()) {
    for (const IValue& each : results) tensors.push_back(each.toTensor());
    return one(tensors);
  }
  TORCH_CHECK_VALUE(results[0].isTensorList(), place,
                    ": expected a call without vmap, because some results are no tensors");
  std::vector<Tensor> list;
  for (size_t entry = 0; entry < results[0].toTensorVector().size(); ++entry) {
    tensors.clear();
    for (const IValue& each : results) tensors.push_back(each.toTensorVector().at(entry));
    list.push_back(one(tensors));
  }
  return list;
}

void loop(const OperatorHandle& op, Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard guard(DispatchKey::FuncTorchBatched);
  const int64_t level = at::functorch::maybeCurrentDynamicLayer()->layerId();
  int64_t length = -1;
  std::string place;
  for_each_argument(op, *stack, [&](size_t i, std::optional<size_t> entry, const Tensor& tensor) {
    const auto [inside, dimension] = at::functorch::unwrapTensorAtLevel(tensor, level);
    if (!dimension || length >= 0) return;
    length = inside.size(*dimension);
    place = place_of(op, i, entry);
  });
  TORCH_CHECK_VALUE(length > 0, place, ": expected vmap over at least one entry, got none");
  const size_t count = op.schema().arguments().size(), results = op.schema().returns().size();
  const std::vector<IValue> arguments = torch::jit::pop(*stack, count);
  std::vector<std::vector<IValue>> all(results);
  for (int64_t at = 0; at < length; ++at) {
    Stack own;
    for (const IValue& each : arguments) own.push_back(slice_of(each, level, at));
    op.callBoxed(&own);
    for (size_t i = 0; i < results; ++i) all[i].push_back(own[i]);
  }
  for (const std::vector<IValue>& each : all) stack->push_back(joined(each, place, level));
}

// The dispatcher does not look for wrapped tensors in an optional list, so a call in which vmap
// maps over these alone needs to be told.
void look_into_lists(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  refuse_foreign(op, *stack);
  const int64_t level = at::functorch::maybeCurrentDynamicLayer()->layerId();
  bool mapped = false;
  for_each_argument(op, *stack, [&](size_t, std::optional<size_t>, const Tensor& tensor) {
    mapped = mapped || at::functorch::isBatchedAtLevel(tensor, level);
  });
  keys = keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::FuncTorchVmapMode);
  op.redispatchBoxed(mapped ? keys.add(DispatchKey::FuncTorchBatched) : keys, stack);
}

using torch::CppFunction;

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  for (const OperatorRow& each : kOperators) {
    if (each.mapped == Mapped::loop) m.impl(each.name, CppFunction::makeFromBoxedFunction<&loop>());
  }
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchVmapMode, m) {
  for (const OperatorRow& each : kOperators) {
    m.impl(each.name, CppFunction::makeFromBoxedFunction<&look_into_lists>());
  }
}

TORCH_LIBRARY_IMPL(nsimplex, BackendSelect, m) {
  for (const OperatorRow& each : kOperators) {
    m.impl(each.name, CppFunction::makeFromBoxedFunction<&look_at_memory>());
  }
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const auto add = [&](const char* name, DispatchKey key) {
    m.impl(name, torch::dispatch(key, CppFunction::makeFromBoxedFunction<&refuse>()));
  };
  // By the key of every device: a kernel of all of them would stand behind a composite.
  const auto record = [&](const char* name, Recorded recorded, DispatchKey key) {
    m.impl(name,
           torch::dispatch(
               key, recorded == Recorded::composite
                        ? CppFunction::makeFromBoxedFunction<&above_autograd<Recorded::composite>>()
                    : recorded == Recorded::whole
                        ? CppFunction::makeFromBoxedFunction<&above_autograd<Recorded::whole>>()
                        : CppFunction::makeFromBoxedFunction<&above_autograd<Recorded::host>>()));
  };
  for (const OperatorRow& each : kOperators) {
    for (const DispatchKey key : kAutograd) {
      if (each.recorded != Recorded::own && each.recorded != Recorded::constant) {
        record(each.name, each.recorded, key);
      }
    }
    add(each.name, DispatchKey::AutogradNestedTensor);
    for (const DispatchKey key : kForeign) add(each.name, key);
    for (const DispatchKey key : kSparse) {
      if (!each.takes_sparse) add(each.name, key);
    }
  }
}

}  // namespace
}  // namespace nsimplex
