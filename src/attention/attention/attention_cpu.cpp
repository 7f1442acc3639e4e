// The dense operator on the CPU: the SIMD kernel over torch's threads, or the reference.

#include <ATen/ops/empty.h>
#include <nsimplex/attention.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_augment.h"
#include "attention/common/attention_kernel.h"
#include "attention/common/attention_mask.h"
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
  const size_t order = backward.forward.keys.size();
  if (backward.wanted[1 + 2 * order] && backward.forward.query.size(2) > 1 &&
      masks_of(backward.forward)[0].tensor().size(2) == 1) {
    return "the CPU kernel has no gradient of a mask that is the same for all queries";
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

// The problem of a backward call, with the tensors to which it points.
template <class T>
struct KernelBackward {
  using R = kernels::Accum<T>;

  explicit KernelBackward(const BackwardCall& backward)
      : inputs(backward.forward),
        out(with_contiguous_channels(backward.out)),
        grad_out(with_contiguous_channels(backward.grad_out)),
        lse(backward.lse.contiguous()),
        grad_lse(backward.grad_lse ? backward.grad_lse->contiguous() : Tensor()) {
    inputs.fill(problem);
    problem.out = input_rows<T>(out);
    problem.grad_out = input_rows<T>(grad_out);
    problem.lse = lse.const_data_ptr<R>();
    if (grad_lse.defined()) problem.grad_lse = grad_lse.const_data_ptr<R>();
    states = states_of_large_rows<T>(problem, lse);
    if (!states.empty()) problem.states = states.data();
  }

  // Asks for the gradient of a mask, which has its shape but all queries.
  void want(const TupleMask& mask) {
    at::DimVector sizes(mask.tensor().sizes());
    sizes[2] = problem.queries;
    const Tensor gradient = at::zeros(sizes, lse.options());
    kernels::TupleGradient<R>& own = problem.grad_mask[problem.mask_gradients++];
    static_cast<kernels::TuplePlaces&>(own) = tuple_places(gradient);
    own.sum = gradient.mutable_data_ptr<R>();
    grad_masks.push_back(gradient);
  }

  // Runs the kernel. Tasks that add to the same gradients of masks run one after the other.
  void run() {
    const DensePlan plan = kernels::plan_dense_backward(problem);
    bool of_all_entries = false, of_all_heads = false;
    for (int k = 0; k < problem.mask_gradients; ++k) {
      of_all_entries |= problem.grad_mask[k].batch_stride == 0;
      of_all_heads |= problem.grad_mask[k].head_stride == 0 && problem.kv_heads > 1;
    }
    const int64_t together = of_all_heads     ? plan.blocks
                             : of_all_entries ? plan.blocks * problem.kv_heads
                                              : 0;
    const auto run_task = [&](int phase, int64_t task, void* workspace, void* scratch) {
      kernels::run_dense_backward(problem, plan, phase, task, workspace, scratch);
    };
    run_phases("attention_backward", problem.order, plan, run_task, plan.fused ? 0 : 1, together);
  }

  KernelInputs inputs;
  Tensor out, grad_out, lse, grad_lse;
  RowStates<T> states;
  std::vector<Tensor> grad_masks;
  kernels::DenseBackward<T> problem;
};

template <class T>
Gradients kernel_backward(const BackwardCall& backward) {
  using R = kernels::Accum<T>;
  const Call& call = backward.forward;
  KernelBackward<T> kernel(backward);
  kernels::DenseBackward<T>& problem = kernel.problem;
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
  const std::vector<TupleMask> masks = masks_of(call);
  const bool want_mask = backward.wanted[1 + 2 * problem.order];
  if (want_mask) kernel.want(masks[0]);
  const bool want_sink = backward.wanted[2 + 2 * problem.order];
  grad_sink = want_sink ? at::empty({problem.heads}, kernel.lse.options())
                        : at::empty({0}, call.query.options());
  if (want_sink) problem.grad_sink = grad_sink.mutable_data_ptr<R>();
  kernel.run();
  grad_mask = want_mask ? masks[0].in_own_shape(kernel.grad_masks[0])
                        : at::empty({0}, call.query.options());
  if (want_sink) grad_sink = grad_sink.to(call.options.sink->scalar_type());
  return gradients;
}

template <class T>
PairMaskGradients kernel_pair_masks_backward(const PairMasksBackwardCall& backward) {
  const Call& call = backward.forward;
  KernelBackward<T> kernel(backward);
  const std::vector<TupleMask> masks = pair_masks_of(call);
  for (size_t m = 0; m < masks.size(); ++m) {
    if (backward.wanted[m]) kernel.want(masks[m]);
  }
  kernel.run();
  PairMaskGradients gradients;
  size_t next = 0;
  for (size_t m = 0; m < masks.size(); ++m) {
    if (!backward.wanted[m]) {
      gradients.push_back(at::empty({0}, call.query.options()));
      continue;
    }
    Tensor gradient = kernel.grad_masks[next++];
    if (masks[m].tensor().size(2) == 1) gradient = gradient.sum(2, /*keepdim=*/true);
    gradients.push_back(masks[m].in_own_shape(gradient));
  }
  return gradients;
}

PairMaskGradients cpu_pair_masks_backward(const PairMasksBackwardCall& backward) {
  check(backward);
  if (const std::string reason = refusal(backward.forward); !reason.empty()) {
    warn_fallback("attention_pair_masks_backward", reason);
    return reference_pair_masks_backward(backward);
  }
  return with_storage_type(backward.forward.query.scalar_type(), [&](auto type) {
    return kernel_pair_masks_backward<decltype(type)>(backward);
  });
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
  m.impl("attention_pair_masks_backward", TORCH_FN(flat<&cpu_pair_masks_backward>));
}

}  // namespace
}  // namespace dense

AttentionWorkspace attention_workspace(const at::Tensor& query, at::TensorList keys,
                                       at::TensorList values, const AttentionOptions& options) {
  return dense::with_call(query, keys, values, options, dense::workspace);
}

}  // namespace nsimplex
