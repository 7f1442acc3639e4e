// The dense operator on the CPU: the SIMD kernel over torch's threads, or the reference.

#include <ATen/ops/empty.h>
#include <nsimplex/attention.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_augment.h"
#include "attention/common/attention_kernel.h"
#include "support/log.h"

namespace nsimplex {
namespace dense {
namespace {

using at::Tensor;
using kernels::DensePlan;

// The reason why the reference computes this call; empty if the kernel does. Unsupported sizes were
// already rejected by check().
std::string refusal(const Call& call) {
  if (!has_kernel(call.query.scalar_type())) {
    return "the CPU kernel takes float64, float32, bfloat16 and float16";
  }
  const char* const name = unhandled(call.options, kCpu);
  return name ? c10::str("the CPU kernel does not take the option ", name) : "";
}

std::string refusal(const BackwardCall& backward) {
  if (backward.wanted[1 + 2 * backward.forward.keys.size()]) {
    return "the CPU kernel has no gradient of the mask";
  }
  return refusal(backward.forward);
}

template <class T>
Output kernel_forward(const Call& call) {
  using R = kernels::Accum<T>;
  const KernelInputs inputs(call);
  kernels::DenseForward<T> problem;
  inputs.fill(problem);
  const Tensor out = empty_in_order(call.query, output_sizes(call), call.query.options());
  const Tensor lse = at::empty(call.query.sizes().slice(0, 3),
                               call.query.options().dtype(c10::CppTypeToScalarType<R>::value));
  problem.out = output_rows<T>(out);
  problem.lse = lse.mutable_data_ptr<R>();
  const DensePlan plan = kernels::plan_dense_forward(problem);
  const auto run = [&](int phase, int64_t task, void* workspace, void* scratch) {
    kernels::run_dense_forward(problem, plan, phase, task, workspace, scratch);
  };
  run_phases("attention", problem.order, plan, run);
  return {out, lse};
}

Output cpu_forward(const Call& call) {
  check(call);
  check_values(call);
  if (augmented(call)) return augmented_forward(call, &cpu_forward);
  if (const std::string reason = refusal(call); !reason.empty()) {
    warn_fallback("attention", reason);
    return reference_forward(call);
  }
  return with_storage_type(call.query.scalar_type(),
                           [&](auto type) { return kernel_forward<decltype(type)>(call); });
}

// The softmax states of rows for the backward pass, if the lse of some row is large; otherwise
// none.
template <class T>
RowStates<T> states_of_large_rows(const kernels::DenseProblem<T>& problem, const Tensor& lse) {
  if (!kernels::exponential(problem.normalizer)) return {};
  RowStates<T> states = room_for_states<T>(lse);
  if (states.empty()) return states;
  kernels::DenseForward<T> measured{problem};
  measured.states = states.data();
  measured.known_lse = lse.const_data_ptr<kernels::Accum<T>>();
  const DensePlan plan = kernels::plan_dense_forward(measured);
  run_phases("attention_states", problem.order, plan,
             [&](int phase, int64_t task, void* workspace, void* scratch) {
               kernels::run_dense_forward(measured, plan, phase, task, workspace, scratch);
             });
  return states;
}

template <class T>
Gradients kernel_backward(const BackwardCall& backward) {
  using R = kernels::Accum<T>;
  const Call& call = backward.forward;
  const KernelInputs inputs(call);
  kernels::DenseBackward<T> problem;
  inputs.fill(problem);
  const Tensor out = with_contiguous_channels(backward.out);
  const Tensor grad_out = with_contiguous_channels(backward.grad_out);
  const Tensor lse = backward.lse.contiguous();
  const Tensor grad_lse = backward.grad_lse ? backward.grad_lse->contiguous() : Tensor();
  problem.out = input_rows<T>(out);
  problem.grad_out = input_rows<T>(grad_out);
  problem.lse = lse.const_data_ptr<R>();
  if (grad_lse.defined()) problem.grad_lse = grad_lse.const_data_ptr<R>();
  const RowStates<T> states = states_of_large_rows<T>(problem, lse);
  if (!states.empty()) problem.states = states.data();

  size_t next = 0;
  const auto gradient = [&](const Tensor& input, kernels::Rows<T>& rows) {
    if (!backward.wanted[next++]) return at::empty({0}, input.options());
    Tensor grad = empty_in_order(input, input.sym_sizes(), input.options());
    rows = output_rows<T>(grad);
    return grad;
  };
  Gradients gradients;
  auto& [grad_query, grad_keys, grad_values, grad_mask, grad_sink] = gradients;
  grad_query = gradient(call.query, problem.grad_query);
  for (int m = 0; m < problem.order; ++m) {
    grad_keys.push_back(gradient(call.keys[m], problem.grad_key[m]));
  }
  for (int m = 0; m < problem.order; ++m) {
    grad_values.push_back(gradient(call.values[m], problem.grad_value[m]));
  }
  grad_mask = at::empty({0}, call.query.options());
  const bool want_sink = backward.wanted[2 + 2 * problem.order];
  grad_sink =
      want_sink ? at::empty({problem.heads}, lse.options()) : at::empty({0}, call.query.options());
  if (want_sink) problem.grad_sink = grad_sink.mutable_data_ptr<R>();
  const DensePlan plan = kernels::plan_dense_backward(problem);
  const auto run = [&](int phase, int64_t task, void* workspace, void* scratch) {
    kernels::run_dense_backward(problem, plan, phase, task, workspace, scratch);
  };
  run_phases("attention_backward", problem.order, plan, run);
  if (want_sink) grad_sink = grad_sink.to(call.options.sink->scalar_type());
  return gradients;
}

Gradients cpu_backward(const BackwardCall& backward) {
  check(backward);
  const Call& call = backward.forward;
  if (augmented(call)) return augmented_backward(backward, &cpu_backward);
  if (const std::string reason = refusal(backward); !reason.empty()) {
    warn_fallback("attention_backward", reason);
    return reference_backward(backward);
  }
  return with_storage_type(call.query.scalar_type(),
                           [&](auto type) { return kernel_backward<decltype(type)>(backward); });
}

template <class T>
AttentionWorkspace kernel_workspace(const Call& call) {
  const KernelInputs inputs(call);
  kernels::DenseForward<T> forward;
  inputs.fill(forward);
  kernels::DenseBackward<T> backward;
  inputs.fill(backward);
  // A plan depends on which gradients are wanted, not on their addresses.
  backward.grad_query.data = const_cast<T*>(forward.query.data);
  for (int m = 0; m < backward.order; ++m) {
    backward.grad_key[m].data = backward.grad_value[m].data = backward.grad_query.data;
  }
  return {memory_of(kernels::plan_dense_forward(forward)).total(),
          memory_of(kernels::plan_dense_backward(backward)).total()};
}

AttentionWorkspace workspace(const Call& call) {
  check(call);
  // The call without rows of ones comes first and is the largest.
  if (augmented(call)) return workspace(partial_calls(call).front().call());
  if (!call.query.is_cpu() || !refusal(call).empty()) return {};
  return with_storage_type(call.query.scalar_type(),
                           [&](auto type) { return kernel_workspace<decltype(type)>(call); });
}

std::tuple<int64_t, int64_t> workspace_bytes(const Call& call) {
  const AttentionWorkspace bytes = workspace(call);
  return {bytes.forward_bytes, bytes.backward_bytes};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "attention_workspace(Tensor query, Tensor[] keys, Tensor[] values, *" NSIMPLEX_OPTIONS_SCHEMA
      ") -> (int forward_bytes, int backward_bytes)",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("attention_workspace", TORCH_FN(flat<&workspace_bytes>));
}

TORCH_LIBRARY_IMPL(nsimplex, CPU, m) {
  m.impl("attention", TORCH_FN(flat<&cpu_forward>));
  m.impl("attention_backward", TORCH_FN(flat<&cpu_backward>));
}

}  // namespace
}  // namespace dense

AttentionWorkspace attention_workspace(const at::Tensor& query, at::TensorList keys,
                                       at::TensorList values, const AttentionOptions& options) {
  return dense::with_call(query, keys, values, options, dense::workspace);
}

}  // namespace nsimplex
