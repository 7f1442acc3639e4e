// The separable operator on the CPU: the SIMD kernel over torch's threads.

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_kernel.h"
#include "attention/separable_attention/separable_attention_call.h"
#include "kernels/common/rounding.h"
#include "kernels/cpu/separable_attention/separable_attention.h"
#include "support/parallel.h"
#include "support/working_memory.h"

namespace nsimplex::separable {
namespace {

using at::Tensor;
using dense::input_rows;
using dense::output_rows;
using kernels::SeparablePlan;

// The tensor in the dtype of the computation, without a copy if it has that dtype.
Tensor prepared(const Tensor& tensor) {
  return dense::with_contiguous_channels(tensor.to(dense::accumulate_type(tensor.scalar_type())));
}

// The tensors to which a kernel problem points.
class KernelInputs {
 public:
  explicit KernelInputs(const Call& call) : query_(prepared(call.query)) {
    dense::require_addressable("separable_attention", "query", call.query);
    dense::require_addressable("separable_attention", "keys", call.keys);
    dense::require_addressable("separable_attention", "values", call.values);
    for (size_t m = 0; m < call.keys.size(); ++m) {
      keys_.push_back(prepared(call.keys[m]));
      values_.push_back(prepared(call.values[m]));
      visible_.push_back(visibility_of(call, m));
    }
  }

  template <class T>
  void fill(kernels::SeparableProblem<T>& problem) const {
    problem.order = static_cast<int>(keys_.size());
    problem.batch = query_.size(0);
    problem.heads = query_.size(1);
    problem.kv_heads = keys_[0].size(1);
    problem.queries = query_.size(2);
    problem.features = query_.size(3);
    problem.value_dim = values_[0].size(3);
    problem.query = input_rows<T>(query_);
    for (int m = 0; m < problem.order; ++m) {
      problem.axes[m] = {input_rows<T>(keys_[m]), input_rows<T>(values_[m]), visible_[m]};
    }
  }

  at::TensorOptions options() const { return query_.options(); }

 private:
  Tensor query_;
  std::vector<Tensor> keys_, values_;
  std::vector<kernels::Visibility> visible_;
};

// The memory of the plan: the workspace, and one scratch area per worker.
template <class Run>
void run_phases(const SeparablePlan& plan, Run&& run) {
  const auto padded = [](size_t bytes) { return round_up(static_cast<int64_t>(bytes), 64); };
  const int64_t workers = std::clamp<int64_t>(
      *std::max_element(plan.tasks, plan.tasks + SeparablePlan::kMaxPhases), 1, thread_count());
  const int64_t scratch_bytes = padded(plan.scratch_bytes);
  const Tensor memory = working_memory(padded(plan.workspace_bytes) + workers * scratch_bytes);
  char* const workspace = static_cast<char*>(memory.mutable_data_ptr());
  char* const scratch = workspace + padded(plan.workspace_bytes);
  for (int phase = 0; phase < plan.phases; ++phase) {
    parallel_tasks(plan.tasks[phase], [&](int64_t task, int worker) {
      run(phase, task, workspace, scratch + worker * scratch_bytes);
    });
  }
}

template <class T>
Output kernel_forward(const Call& call) {
  const KernelInputs inputs(call);
  kernels::SeparableForward<T> problem;
  inputs.fill(problem);
  const c10::SymInt sizes[] = {problem.batch, problem.heads, problem.queries, problem.value_dim};
  const Tensor out = dense::empty_in_order(call.query, sizes, inputs.options());
  const Tensor normalizer = at::empty(call.query.sizes().slice(0, 3), inputs.options());
  problem.out = output_rows<T>(out);
  problem.normalizer = normalizer.mutable_data_ptr<T>();
  const SeparablePlan plan = kernels::plan_separable_forward(problem);
  run_phases(plan, [&](int phase, int64_t task, void* workspace, void* scratch) {
    kernels::run_separable_forward(problem, plan, phase, task, workspace, scratch);
  });
  return {out.to(call.query.scalar_type()), normalizer};
}

template <class T>
Gradients kernel_backward(const BackwardCall& backward) {
  const Call& call = backward.forward;
  const KernelInputs inputs(call);
  kernels::SeparableBackward<T> problem;
  inputs.fill(problem);
  const Tensor out = prepared(backward.out), grad_out = prepared(backward.grad_out);
  const Tensor normalizer = backward.normalizer.contiguous();
  Tensor grad_normalizer;
  problem.out = input_rows<T>(out);
  problem.grad_out = input_rows<T>(grad_out);
  problem.normalizer = normalizer.const_data_ptr<T>();
  if (backward.grad_normalizer) {
    grad_normalizer = backward.grad_normalizer->to(normalizer.scalar_type()).contiguous();
    problem.grad_normalizer = grad_normalizer.const_data_ptr<T>();
  }
  const SeparablePlan plan = kernels::plan_separable_backward(problem);

  // Every gradient has the memory order of its input. Without tasks, it must be set to zero here.
  const auto made = [&](Tensor tensor) { return plan.phases == 0 ? tensor.zero_() : tensor; };
  const Tensor grad_query =
      made(dense::empty_in_order(call.query, call.query.sym_sizes(), inputs.options()));
  problem.grad_query = output_rows<T>(grad_query);
  std::vector<Tensor> grad_keys, grad_values;
  for (int m = 0; m < problem.order; ++m) {
    const Tensor &key = call.keys[m], &value = call.values[m];
    grad_keys.push_back(made(dense::empty_in_order(key, key.sym_sizes(), inputs.options())));
    problem.grad_key[m] = output_rows<T>(grad_keys[m]);
    std::vector<int64_t> sizes = value.sizes().vec();
    if (dense::heads_inside(value)) std::swap(sizes[1], sizes[2]);
    sizes.insert(sizes.begin(), plan.slices);
    Tensor slices = made(at::empty(sizes, inputs.options()));
    if (dense::heads_inside(value)) slices = slices.transpose(2, 3);
    grad_values.push_back(slices);
    problem.grad_value[m] = output_rows<T>(slices[0]);
    problem.slice_stride[m] = slices.stride(0);
  }
  run_phases(plan, [&](int, int64_t task, void*, void* scratch) {
    kernels::run_separable_backward(problem, plan, task, scratch);
  });

  const at::ScalarType type = call.query.scalar_type();
  Gradients gradients{grad_query.to(type), {}, {}};
  for (int m = 0; m < problem.order; ++m) {
    const Tensor& slices = grad_values[m];
    std::get<1>(gradients).push_back(grad_keys[m].to(type));
    std::get<2>(gradients).push_back(
        plan.slices == 1 ? slices[0].to(type) : dense::in_order_of(call.values[m], slices.sum(0)));
  }
  return gradients;
}

Output cpu_forward(const Call& call) {
  check(call);
  return call.query.scalar_type() == at::kDouble ? kernel_forward<double>(call)
                                                 : kernel_forward<float>(call);
}

Gradients cpu_backward(const BackwardCall& call) {
  check(call);
  return call.forward.query.scalar_type() == at::kDouble ? kernel_backward<double>(call)
                                                         : kernel_backward<float>(call);
}

TORCH_LIBRARY_IMPL(nsimplex, CPU, m) {
  m.impl("separable_attention", TORCH_FN(flat<&cpu_forward>));
  m.impl("separable_attention_backward", TORCH_FN(flat<&cpu_backward>));
}

}  // namespace
}  // namespace nsimplex::separable
