// The class sums on the CPU: segment sums and gathers over torch's threads.

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "equivariant/sparse/class_parts.h"
#include "equivariant/sparse/plan_values.h"
#include "support/parallel.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;

template <class T>
Tensor sums(const SumsCall& call, const Tensor& x) {
  const int64_t channels = x.size(1);
  const Tensor tables = group_sums<T>(call, x);
  const Tensor out = at::empty({call.plan[kCounts].size(0), channels}, x.options());
  for_each_part(call, by_class, [&](const kernels::ClassPart& part, const PartPlace& place) {
    kernels::ClassSums<T> problem{part, channels, x.size(0)};
    problem.features = x.const_data_ptr<T>();
    problem.tables = tables.const_data_ptr<double>();
    problem.sums = out.mutable_data_ptr<T>() + place.sum * channels;
    parallel_tasks(kernels::plan_class_sums(part).tasks[0],
                   [&](int64_t task, int) { kernels::run_class_sums(problem, task); });
  });
  return out;
}

template <class T>
Tensor transposed(const SumsCall& call, const Tensor& grad) {
  const int64_t channels = grad.size(1);
  const auto wide = grad.options().dtype(at::kDouble);
  const Tensor lookups = at::empty({call.plan[kLookups].size(0), channels}, grad.options());
  for_each_part(call, by_lookup, [&](const kernels::ClassPart& part, const PartPlace& place) {
    kernels::ClassSumsTransposed<T> problem{part, channels};
    problem.grad_sums = grad.const_data_ptr<T>() + place.sum * channels;
    problem.grad_lookups = lookups.mutable_data_ptr<T>() + place.lookup * channels;
    parallel_tasks(kernels::plan_class_sums(part).tasks[0],
                   [&](int64_t task, int) { kernels::run_class_sums_transposed(problem, task); });
  });
  const Tensor sources = at::empty({call.plan[kSourceOffsets].size(0) - 1, channels}, wide);
  segment_sums<T, double>(segments(call, kSourceOffsets, kSourceLookups), lookups, sources);
  const Tensor out = at::empty({call.plan[kRowOffsets].size(0) - 1, channels}, grad.options());
  segment_sums<double, T>(segments(call, kRowOffsets, kRowSources), sources, out);
  return out;
}

template <class Run>
Tensor in_kernel_type_of(const Tensor& values, Run&& run) {
  return in_kernel_type(values.scalar_type(), [&](auto number) {
    using T = decltype(number);
    const Tensor own = values.to(c10::CppTypeToScalarType<T>::value).contiguous();
    return run(own, number).to(values.scalar_type());
  });
}

Tensor cpu_sums(const SumsCall& call) {
  check_sums(call);
  check_plan_values(call, "equivariant_sums");
  return in_kernel_type_of(
      call.values, [&](const Tensor& x, auto type) { return sums<decltype(type)>(call, x); });
}

Tensor cpu_transposed(const SumsCall& call) {
  check_transposed(call);
  check_plan_values(call, "equivariant_sums_backward");
  return in_kernel_type_of(call.values, [&](const Tensor& grad, auto type) {
    return transposed<decltype(type)>(call, grad);
  });
}

TORCH_LIBRARY_IMPL(nsimplex, CPU, m) {
  m.impl("equivariant_sums", TORCH_FN(flat_sums<&cpu_sums>));
  m.impl("equivariant_sums_backward", TORCH_FN(flat_sums<&cpu_transposed>));
}

}  // namespace
}  // namespace nsimplex::equivariant
