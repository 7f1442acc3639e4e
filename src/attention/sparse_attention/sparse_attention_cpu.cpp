// The sparse operator on the CPU: the SIMD kernels over torch's threads, or the reference.

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "attention/common/attention_kernel.h"
#include "attention/sparse_attention/sparse_attention_check.h"
#include "kernels/cpu/sparse_attention/sparse_attention.h"
#include "support/log.h"

namespace nsimplex::sparse {
namespace {

using at::Tensor;
using dense::input_rows;
using dense::output_rows;

// The reason why the reference computes this call, or null.
const char* refusal(const Call& call) {
  if (learned(reduce_of(call.options))) return "the CPU kernel has no learned reducers";
  if (!dense::has_kernel(call.query.scalar_type())) {
    return "the CPU kernel takes float64, float32, bfloat16 and float16";
  }
  return nullptr;
}

// The call without its lists, from which the problem of the kernels is filled.
dense::Call without_lists(const Call& call) {
  const Options& o = call.options;
  return {call.query,
          call.keys,
          call.values,
          {.form = o.form,
           .reduce = o.reduce,
           .logit_scale = o.logit_scale,
           .output_scale = o.output_scale}};
}

// The tensors to which a kernel problem points.
class KernelInputs {
 public:
  explicit KernelInputs(const Call& call)
      : settings_(settings_of(call)),
        tensors_(without_lists(call), "sparse_attention"),
        indices_(own(call.indices)) {
    if (call.offsets) offsets_ = own(*call.offsets);
    check_values(call, indices_, offsets_);
  }

  template <class Problem>
  void fill(Problem& problem) const {
    tensors_.fill(problem.dense);
    kernels::TupleLists& lists = problem.lists;
    lists.indices = indices_.const_data_ptr<int64_t>();
    lists.entries = settings_.list_entries;
    lists.groups = settings_.list_groups;
    lists.size = indices_.size(-1);
    switch (settings_.pattern) {
      case TuplePattern::list:
        lists.pattern = kernels::ListPattern::list;
        lists.offsets = offsets_.const_data_ptr<int64_t>();
        return;
      case TuplePattern::product:
        lists.pattern = kernels::ListPattern::product;
        break;
      case TuplePattern::path:
        lists.pattern = kernels::ListPattern::path;
        break;
    }
    lists.rows = indices_.size(2);
  }

 private:
  // The kernel uses the numbers as addresses. A copy is checked and used, so that no thread can
  // change it in between.
  static Tensor own(const Tensor& numbers) {
    return numbers.to(at::kLong, /*non_blocking=*/false, /*copy=*/true,
                      at::MemoryFormat::Contiguous);
  }

  Settings settings_;
  dense::KernelInputs tensors_;
  Tensor indices_, offsets_;
};

template <class T>
Output kernel_forward(const Call& call) {
  using R = kernels::Accum<T>;
  const KernelInputs inputs(call);
  kernels::SparseForward<T> problem;
  inputs.fill(problem);
  const Tensor out = dense::empty_in_order(call.query, output_sizes(call), call.query.options());
  const Tensor lse = at::empty(call.query.sizes().slice(0, 3),
                               call.query.options().dtype(c10::CppTypeToScalarType<R>::value));
  problem.dense.out = output_rows<T>(out);
  problem.dense.lse = lse.mutable_data_ptr<R>();
  const kernels::DensePlan plan = kernels::plan_sparse_forward(problem);
  dense::run_phases("sparse_attention", problem.dense.order, plan,
                    [&](int phase, int64_t task, void* workspace, void* scratch) {
                      kernels::run_sparse_forward(problem, plan, phase, task, workspace, scratch);
                    });
  return {out, lse};
}

// The softmax states of rows for the backward pass, if the lse of some row is large; otherwise
// none.
template <class T>
dense::RowStates<T> states_of_large_rows(const KernelInputs& inputs, const Tensor& lse) {
  dense::RowStates<T> states = dense::room_for_states<T>(lse);
  if (states.empty()) return states;
  kernels::SparseForward<T> measured;
  inputs.fill(measured);
  measured.dense.states = states.data();
  measured.dense.known_lse = lse.const_data_ptr<kernels::Accum<T>>();
  const kernels::DensePlan plan = kernels::plan_sparse_forward(measured);
  dense::run_phases("sparse_attention_states", measured.dense.order, plan,
                    [&](int phase, int64_t task, void* workspace, void* scratch) {
                      kernels::run_sparse_forward(measured, plan, phase, task, workspace, scratch);
                    });
  return states;
}

template <class T>
Gradients kernel_backward(const BackwardCall& backward) {
  using R = kernels::Accum<T>;
  const Call& call = backward.forward;
  const KernelInputs inputs(call);
  kernels::SparseBackward<T> problem;
  inputs.fill(problem);
  kernels::DenseBackward<T>& whole = problem.dense;
  const Tensor out = dense::with_contiguous_channels(backward.out);
  const Tensor grad_out = dense::with_contiguous_channels(backward.grad_out);
  const Tensor lse = backward.lse.contiguous();
  const Tensor grad_lse = backward.grad_lse ? backward.grad_lse->contiguous() : Tensor();
  whole.out = input_rows<T>(out);
  whole.grad_out = input_rows<T>(grad_out);
  whole.lse = lse.const_data_ptr<R>();
  if (grad_lse.defined()) whole.grad_lse = grad_lse.const_data_ptr<R>();
  const dense::RowStates<T> states = states_of_large_rows<T>(inputs, lse);
  if (!states.empty()) whole.states = states.data();

  size_t next = 0;
  const auto gradient = [&](const Tensor& input, kernels::Rows<T>& rows) {
    if (!backward.wanted[next++]) return at::empty({0}, input.options());
    Tensor grad = dense::empty_in_order(input, input.sym_sizes(), input.options());
    rows = output_rows<T>(grad);
    return grad;
  };
  Gradients gradients;
  auto& [grad_query, grad_keys, grad_values, grad_weights] = gradients;
  grad_query = gradient(call.query, whole.grad_query);
  for (int m = 0; m < whole.order; ++m) {
    grad_keys.push_back(gradient(call.keys[m], whole.grad_key[m]));
  }
  for (int m = 0; m < whole.order; ++m) {
    grad_values.push_back(gradient(call.values[m], whole.grad_value[m]));
  }
  const kernels::DensePlan plan = kernels::plan_sparse_backward(problem);
  dense::run_phases("sparse_attention_backward", whole.order, plan,
                    [&](int phase, int64_t task, void* workspace, void* scratch) {
                      kernels::run_sparse_backward(problem, plan, phase, task, workspace, scratch);
                    });
  return gradients;
}

Output cpu_forward(const Call& call) {
  check(call);
  if (const char* const reason = refusal(call)) {
    warn_fallback("sparse_attention", reason);
    return reference_forward(call);
  }
  return dense::with_storage_type(call.query.scalar_type(),
                                  [&](auto type) { return kernel_forward<decltype(type)>(call); });
}

Gradients cpu_backward(const BackwardCall& backward) {
  check(backward);
  if (const char* const reason = refusal(backward.forward)) {
    warn_fallback("sparse_attention_backward", reason);
    return reference_backward(backward);
  }
  return dense::with_storage_type(backward.forward.query.scalar_type(), [&](auto type) {
    return kernel_backward<decltype(type)>(backward);
  });
}

TORCH_LIBRARY_IMPL(nsimplex, CPU, m) {
  m.impl("sparse_attention", TORCH_FN(flat<&cpu_forward>));
  m.impl("sparse_attention_backward", TORCH_FN(flat<&cpu_backward>));
}

}  // namespace
}  // namespace nsimplex::sparse
