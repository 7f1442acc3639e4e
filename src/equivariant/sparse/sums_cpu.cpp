// The class sums on the CPU: segment sums and gathers over torch's threads.

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>

#include "equivariant/sparse/sums_call.h"
#include "kernels/cpu/equivariant/class_sums.h"
#include "support/parallel.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;
using kernels::ClassTerm;

static_assert(sizeof(ClassTerm) == 3 * sizeof(int32_t));  // a row of kTerms

const int32_t* numbers(const SumsCall& call, PlanTensor which) {
  return call.plan[which].const_data_ptr<int32_t>();
}

// to[s] = sum of from[rows[e]] over the entries of segment s.
template <class From, class To>
void segment_sums(const SumsCall& call, PlanTensor offsets, PlanTensor rows, const Tensor& from,
                  const Tensor& to) {
  kernels::SegmentSums<From, To> problem;
  problem.offsets = numbers(call, offsets);
  problem.rows = numbers(call, rows);
  problem.segments = to.size(0);
  problem.entries = call.plan[rows].size(0);
  problem.channels = to.size(1);
  problem.from = from.const_data_ptr<From>();
  problem.to = to.mutable_data_ptr<To>();
  const kernels::SumsPlan plan = kernels::plan_segment_sums(problem);
  const Tensor workspace = at::empty({static_cast<int64_t>(plan.workspace_bytes)}, at::kByte);
  for (int phase = 0; phase < plan.phases; ++phase) {
    parallel_tasks(plan.tasks[phase], [&](int64_t task, int) {
      kernels::run_segment_sums(problem, plan, phase, task, workspace.mutable_data_ptr());
    });
  }
}

// visit(part, lookups before it, sums before it) for every part, its terms in the order that
// `before` asks for.
template <class Before, class Visit>
void for_each_part(const SumsCall& call, Before&& before, Visit&& visit) {
  const auto* const all_terms = reinterpret_cast<const ClassTerm*>(numbers(call, kTerms));
  int64_t lookup = 0, term = 0, sum = 0;
  for (const PatternPart& each : unflatten_parts(call.parts)) {
    std::vector<ClassTerm> terms(all_terms + term, all_terms + term + each.terms);
    std::stable_sort(terms.begin(), terms.end(), before);
    kernels::ClassPart part;
    part.rows = each.rows;
    part.classes = static_cast<int64_t>(each.classes.size());
    part.lookups = each.lookups;
    part.terms = each.terms;
    part.term = terms.data();
    part.lookup = numbers(call, kLookups) + lookup;
    part.count = call.mean ? numbers(call, kCounts) + sum : nullptr;
    visit(part, lookup, sum);
    lookup += part.rows * part.lookups;
    term += part.terms;
    sum += part.rows * part.classes;
  }
}

template <class T>
Tensor sums(const SumsCall& call, const Tensor& x) {
  const int64_t channels = x.size(1);
  const Tensor tables =
      at::empty({call.plan[kGroupOffsets].size(0) - 1, channels}, x.options().dtype(at::kDouble));
  segment_sums<T, double>(call, kGroupOffsets, kGroupRows, x, tables);
  const Tensor out = at::empty({call.plan[kCounts].size(0), channels}, x.options());
  const auto by_class = [](const ClassTerm& a, const ClassTerm& b) {
    return a.to_class < b.to_class;
  };
  for_each_part(call, by_class, [&](const kernels::ClassPart& part, int64_t, int64_t first) {
    kernels::ClassSums<T> problem{part, channels, x.size(0)};
    problem.features = x.const_data_ptr<T>();
    problem.tables = tables.const_data_ptr<double>();
    problem.sums = out.mutable_data_ptr<T>() + first * channels;
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
  const auto by_lookup = [](const ClassTerm& a, const ClassTerm& b) { return a.lookup < b.lookup; };
  for_each_part(call, by_lookup, [&](const kernels::ClassPart& part, int64_t lookup, int64_t sum) {
    kernels::ClassSumsTransposed<T> problem{part, channels};
    problem.grad_sums = grad.const_data_ptr<T>() + sum * channels;
    problem.grad_lookups = lookups.mutable_data_ptr<T>() + lookup * channels;
    parallel_tasks(kernels::plan_class_sums(part).tasks[0],
                   [&](int64_t task, int) { kernels::run_class_sums_transposed(problem, task); });
  });
  const Tensor sources = at::empty({call.plan[kSourceOffsets].size(0) - 1, channels}, wide);
  segment_sums<T, double>(call, kSourceOffsets, kSourceLookups, lookups, sources);
  const Tensor out = at::empty({call.plan[kRowOffsets].size(0) - 1, channels}, grad.options());
  segment_sums<double, T>(call, kRowOffsets, kRowSources, sources, out);
  return out;
}

// Low precision is computed in float32.
template <class Run>
Tensor in_kernel_type(const Tensor& values, Run&& run) {
  if (values.scalar_type() == at::kDouble) return run(values.contiguous(), double());
  return run(values.to(at::kFloat).contiguous(), float()).to(values.scalar_type());
}

Tensor cpu_sums(const SumsCall& call) {
  check_sums(call);
  return in_kernel_type(call.values,
                        [&](const Tensor& x, auto type) { return sums<decltype(type)>(call, x); });
}

Tensor cpu_transposed(const SumsCall& call) {
  check_transposed(call);
  return in_kernel_type(call.values, [&](const Tensor& grad, auto type) {
    return transposed<decltype(type)>(call, grad);
  });
}

TORCH_LIBRARY_IMPL(nsimplex, CPU, m) {
  m.impl("equivariant_sums", TORCH_FN(flat_sums<&cpu_sums>));
  m.impl("equivariant_sums_backward", TORCH_FN(flat_sums<&cpu_transposed>));
}

}  // namespace
}  // namespace nsimplex::equivariant
