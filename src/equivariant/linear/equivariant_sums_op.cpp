// The sums of every class over lists of tuples: schema, checks, shapes, the ATen version, and the
// CPU version by segment sums and gathers over torch's threads. The operator is linear, and its
// backward is its transpose. Each of the two operators is the backward of the other.

#include <ATen/ATen.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "equivariant/linear/class_parts.h"
#include "equivariant/linear/equivariant_plan.h"
#include "equivariant/linear/equivariant_sums_call.h"
#include "support/operator.h"
#include "support/parallel.h"
#include "support/plain_tensor.h"
#include "support/transforms.h"

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

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using Operator = Tensor (*)(const SumsCall&);

template <Operator forward_operator, Operator backward_operator>
struct SumsFunction : torch::autograd::Function<SumsFunction<forward_operator, backward_operator>> {
  static Tensor forward(AutogradContext* context, const Tensor& values, const SumsCall* call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    context->save_for_backward(variable_list(call->plan.begin(), call->plan.end()));
    context->saved_data["parts"] = call->parts.vec();
    context->saved_data["mean"] = call->mean;
    return forward_operator({values, call->plan, call->parts, call->mean});
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list plan = context->get_saved_variables();
    const std::vector<int64_t> parts = context->saved_data["parts"].toIntVector();
    return {backward_operator({grads[0], plan, parts, context->saved_data["mean"].toBool()}),
            Tensor()};
  }
};

template <Operator own, Operator other, Operator reference>
Tensor autograd(const SumsCall& call) {
  return autograd_forward(call, reference, own, [](const SumsCall& recorded) {
    return SumsFunction<own, other>::apply(recorded.values, &recorded);
  });
}

constexpr Operator kSums = &autograd<&dispatch_sums, &dispatch_transposed, &reference_sums>;
constexpr Operator kTransposed =
    &autograd<&dispatch_transposed, &dispatch_sums, &reference_transposed>;

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("equivariant_sums", TORCH_FN(flat_sums<kSums>));
  m.impl("equivariant_sums_backward", TORCH_FN(flat_sums<kTransposed>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("equivariant_sums", TORCH_FN(flat_sums<&reference_sums>));
  m.impl("equivariant_sums_backward", TORCH_FN(flat_sums<&reference_transposed>));
}

using at::Tensor;

using FlatSums = decltype(flat_sums<&reference_sums>);

void check_plan(const SumsCall& call, const char* name) {
  TORCH_CHECK_VALUE(call.plan.size() == kPlanTensors, "[", name, "] plan: expected ", kPlanTensors,
                    " tensors of an equivariant_plan, got ", call.plan.size());
  for (size_t t = 0; t < kPlanTensors; ++t) {
    const at::ScalarType type = t < kOutputPlaces ? at::kInt : at::kLong;
    TORCH_CHECK_TYPE(call.plan[t].scalar_type() == type && call.plan[t].is_contiguous(), "[", name,
                     "] plan[", t, "]: expected contiguous ", type, ", got ",
                     call.plan[t].scalar_type());
  }
}

void check_values(const SumsCall& call, const char* name, const char* argument,
                  c10::SymInt (SumsCall::*rows_of)() const) {
  check_plan(call, name);
  const c10::SymInt rows = (call.*rows_of)();
  TORCH_CHECK_TYPE(is_floating(call.values), "[", name, "] ", argument,
                   ": expected a floating dtype, got ", call.values.scalar_type());
  TORCH_CHECK_VALUE(call.values.dim() == 2 && call.values.sym_size(0) == rows, "[", name, "] ",
                    argument, ": expected [", rows, ", channels], got ", call.values.sym_sizes());
  const at::Device own = call.plan[kLookups].device(), device = call.values.device();
  TORCH_CHECK_VALUE(own == device, "[", name, "] plan: expected ", argument, "'s device ", device,
                    ", got ", own, "; plan.to(device) moves it");
}

at::ScalarType wide_type() { return at::kDouble; }

// The contents of each part of [rows x (classes or lookups), d], and the coefficients of its terms.
struct PartTensors {
  Tensor coefficients;  // [classes, lookups]
  Tensor share;         // [rows, classes, 1]
};

PartTensors tensors_of(const SumsCall& call, const PatternPart& part, int64_t first_term,
                       int64_t first_count) {
  const auto classes = static_cast<int64_t>(part.classes.size());
  const auto options = call.values.options().dtype(wide_type());
  const Tensor terms = call.plan[kTerms].narrow(0, first_term, part.terms).to(at::kLong);
  const Tensor places = terms.select(1, 0) * part.lookups + terms.select(1, 1);
  const Tensor coefficients = at::zeros({classes * part.lookups}, options)
                                  .index_add(0, places, terms.select(1, 2).to(wide_type()))
                                  .view({classes, part.lookups});
  Tensor share = at::ones({1, 1, 1}, options);
  if (call.mean) {
    const Tensor counts = call.plan[kCounts].narrow(0, first_count, part.rows * classes);
    share = at::where(counts == 0, 0., counts.to(wide_type()).reciprocal())
                .view({part.rows, classes, 1});
  }
  return {coefficients, share};
}

// The group of every entry of kGroupRows.
Tensor group_of_entry(const SumsCall& call) {
  const Tensor& offsets = call.plan[kGroupOffsets];
  if (offsets.is_cpu() && has_numbers(offsets)) {
    const BelowTransforms below;
    const Tensor numbers = below_transforms(offsets);
    TORCH_CHECK_VALUE(numbers.numel() > 0 &&
                          numbers.flatten()[-1].item<int64_t>() == call.plan[kGroupRows].size(0),
                      "[equivariant_sums] plan: expected the tensors of an equivariant_plan, got "
                      "groups of another number of entries");
  }
  const Tensor sizes = offsets.diff().to(at::kLong);
  const std::optional<c10::SymInt> entries = call.plan[kGroupRows].sym_size(0);
  return at::repeat_interleave_symint(sizes, entries);
}

}  // namespace

std::vector<int64_t> flatten(const std::vector<PatternPart>& parts) {
  std::vector<int64_t> flat;
  for (const PatternPart& part : parts) {
    const auto classes = static_cast<int64_t>(part.classes.size());
    flat.insert(flat.end(), {part.rows, part.lookups, part.terms, part.bias_class, classes});
    flat.insert(flat.end(), part.classes.begin(), part.classes.end());
  }
  return flat;
}

std::vector<PatternPart> unflatten_parts(at::IntArrayRef flat) {
  constexpr size_t kFixed = 5;
  std::vector<PatternPart> parts;
  for (size_t at = 0; at < flat.size();) {
    TORCH_CHECK_VALUE(at + kFixed <= flat.size() && flat[at + 4] >= 0 &&
                          at + kFixed + flat[at + 4] <= flat.size(),
                      "[equivariant_sums] parts: expected those of an equivariant_plan");
    PatternPart part{flat[at], flat[at + 1], flat[at + 2], {}, flat[at + 3]};
    const auto classes = flat.slice(at + kFixed, flat[at + 4]);
    part.classes = classes.vec();
    parts.push_back(std::move(part));
    at += kFixed + classes.size();
  }
  return parts;
}

void check_sums(const SumsCall& call) {
  check_values(call, "equivariant_sums", "x", &SumsCall::input_rows);
}
void check_transposed(const SumsCall& call) {
  check_values(call, "equivariant_sums_backward", "grad", &SumsCall::sums);
}

Tensor dispatch_sums(const SumsCall& call) {
  static const auto op = find_operator<FlatSums>("nsimplex::equivariant_sums");
  return op.call(call.values, call.plan, call.parts, call.mean);
}
Tensor dispatch_transposed(const SumsCall& call) {
  static const auto op = find_operator<FlatSums>("nsimplex::equivariant_sums_backward");
  return op.call(call.values, call.plan, call.parts, call.mean);
}

Tensor reference_sums(const SumsCall& call) {
  check_sums(call);
  const Tensor x = call.values.to(wide_type());
  const c10::SymInt channels = x.sym_size(1);
  const c10::SymInt groups = call.plan[kGroupOffsets].sym_size(0) - 1;
  const Tensor tables =
      at::zeros_symint({groups, channels}, x.options())
          .index_add(0, group_of_entry(call), x.index_select(0, call.plan[kGroupRows]));
  const Tensor none = at::zeros_symint({1, channels}, x.options());
  // The number -1 selects the row of zeros.
  const Tensor sources = at::cat({none, x, tables});
  std::vector<Tensor> sums;
  int64_t lookup = 0, term = 0, count = 0;
  for (const PatternPart& part : unflatten_parts(call.parts)) {
    const auto [coefficients, share] = tensors_of(call, part, term, count);
    const Tensor places = call.plan[kLookups].narrow(0, lookup, part.rows * part.lookups) + 1;
    const Tensor found =
        sources.index_select(0, places).view_symint({part.rows, part.lookups, channels});
    sums.push_back((at::matmul(coefficients, found) * share).flatten(0, 1));
    lookup += part.rows * part.lookups;
    term += part.terms;
    count += part.rows * static_cast<int64_t>(part.classes.size());
  }
  if (sums.empty()) return call.values.new_zeros_symint({0, channels});
  return at::cat(sums).to(call.values.scalar_type());
}

Tensor reference_transposed(const SumsCall& call) {
  check_transposed(call);
  const Tensor grad = call.values.to(wide_type());
  const c10::SymInt channels = grad.sym_size(1), rows = call.input_rows();
  Tensor sources =
      at::zeros_symint({call.plan[kSourceOffsets].sym_size(0), channels}, grad.options());
  int64_t lookup = 0, term = 0, count = 0;
  for (const PatternPart& part : unflatten_parts(call.parts)) {
    const auto classes = static_cast<int64_t>(part.classes.size());
    const auto [coefficients, share] = tensors_of(call, part, term, count);
    const Tensor own =
        grad.narrow(0, count, part.rows * classes).view_symint({part.rows, classes, channels});
    const Tensor places = call.plan[kLookups].narrow(0, lookup, part.rows * part.lookups) + 1;
    sources = sources.index_add(0, places, at::matmul(coefficients.t(), own * share).flatten(0, 1));
    lookup += part.rows * part.lookups;
    term += part.terms;
    count += part.rows * classes;
  }
  // Row 0 collected the entries without a source.
  const Tensor tables = sources.narrow_symint(0, rows + 1, sources.sym_size(0) - rows - 1);
  return sources.narrow_symint(0, 1, rows)
      .index_add(0, call.plan[kGroupRows], tables.index_select(0, group_of_entry(call)))
      .to(call.values.scalar_type());
}

namespace {

Tensor meta_sums(const SumsCall& call) {
  check_sums(call);
  return call.values.new_empty_symint({call.sums(), call.values.sym_size(1)});
}
Tensor meta_transposed(const SumsCall& call) {
  check_transposed(call);
  return call.values.new_empty_symint({call.input_rows(), call.values.sym_size(1)});
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def("equivariant_sums(Tensor x, Tensor[] plan, int[] parts, bool mean) -> Tensor", tags);
  m.def("equivariant_sums_backward(Tensor grad, Tensor[] plan, int[] parts, bool mean) -> Tensor",
        tags);
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) {
  m.impl("equivariant_sums", TORCH_FN(flat_sums<&meta_sums>));
  m.impl("equivariant_sums_backward", TORCH_FN(flat_sums<&meta_transposed>));
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("equivariant_sums", TORCH_FN(flat_sums<&reference_sums>));
  m.impl("equivariant_sums_backward", TORCH_FN(flat_sums<&reference_transposed>));
}

}  // namespace
}  // namespace nsimplex::equivariant
