// The sparse equivariant linear layer, the sums of every class times its weight: schema, checks,
// shapes and the public function. The autograd node stores the inputs and no sums. The reference
// computes the sums of all classes in full by ATen calls, and so do its gradients, which can be
// differentiated again.

#include <ATen/ATen.h>
#include <nsimplex/equivariant_linear.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <iterator>

#include "equivariant/classes/equivariant_classes.h"
#include "equivariant/linear/equivariant_linear_sparse_call.h"
#include "support/operator.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;

// Calls visit(part, rows, sums and classes before it) for the parts, which are the output tuples of
// one pattern each.
template <class Visit>
void for_each_pattern(const LinearCall& call, Visit&& visit) {
  int64_t row = 0, sum = 0, first_class = 0;
  for (const PatternPart& part : unflatten_parts(call.parts)) {
    visit(part, row, sum, first_class);
    row += part.rows;
    sum += part.rows * std::ssize(part.classes);
    first_class += std::ssize(part.classes);
  }
}

// The rows of the output, part by part.
Tensor in_parts(const Tensor& rows, const Tensor& places) {
  const Tensor numbers = at::arange(places.size(0), places.options());
  return rows.index_select(0, at::empty_like(places).scatter(0, places, numbers));
}

}  // namespace

Tensor reference_linear(const LinearCall& call) {
  check_linear(call);
  const auto& [x, weight, bias, plan, parts, mean] = call;
  const Tensor sums = dispatch_sums(call.sums());
  std::vector<Tensor> out;
  for_each_pattern(call, [&](const PatternPart& part, int64_t, int64_t sum, int64_t first_class) {
    const int64_t classes = std::ssize(part.classes);
    const Tensor own =
        sums.narrow(0, sum, part.rows * classes).view_symint({part.rows, classes * x.sym_size(1)});
    const Tensor matrix = part_matrix(call, first_class, classes);
    out.push_back(bias ? at::addmm(bias->select(0, part.bias_class), own, matrix)
                       : at::mm(own, matrix));
  });
  if (out.empty()) return x.new_zeros_symint({0, weight.sym_size(2)});
  return at::cat(out).index_select(0, plan[kOutputPlaces]);
}

LinearGradients reference_linear_backward(const LinearBackwardCall& call) {
  check_linear(call);
  const auto& [x, weight, bias, plan, parts, mean] = call.forward;
  const c10::SymInt channels = x.sym_size(1);
  const Tensor grad = in_parts(call.grad_out, plan[kOutputPlaces]);
  const Tensor sums = call.wanted[1] ? dispatch_sums(call.forward.sums()) : Tensor();
  std::vector<Tensor> grad_sums{x.new_zeros_symint({0, channels})};
  Tensor grad_weight = call.wanted[1] ? at::zeros_like(weight) : Tensor();
  Tensor grad_bias = call.wanted[2] ? at::zeros_like(*bias) : Tensor();
  for_each_pattern(
      call.forward, [&](const PatternPart& part, int64_t row, int64_t sum, int64_t first_class) {
        const int64_t classes = std::ssize(part.classes);
        const Tensor own = grad.narrow(0, row, part.rows);
        if (call.wanted[0]) {
          const Tensor matrix = part_matrix(call.forward, first_class, classes);
          grad_sums.push_back(at::mm(own, matrix.t()).view_symint({part.rows * classes, channels}));
        }
        if (call.wanted[1]) {
          const Tensor own_sums =
              sums.narrow(0, sum, part.rows * classes).view_symint({part.rows, classes * channels});
          const Tensor product = at::mm(own_sums.t(), own);
          grad_weight =
              grad_weight.index_add(0, plan[kWeightClasses].narrow(0, first_class, classes),
                                    product.view_symint({classes, channels, weight.sym_size(2)}));
        }
        if (call.wanted[2]) {
          const Tensor at_class = at::full({1}, part.bias_class, plan[kOutputPlaces].options());
          grad_bias = grad_bias.index_add(0, at_class, own.sum(0, /*keepdim=*/true));
        }
      });
  const Tensor all_sums = call.wanted[0] ? at::cat(grad_sums) : Tensor();
  return {call.wanted[0] ? dispatch_transposed({all_sums, plan, parts, mean}) : Tensor(),
          grad_weight, grad_bias};
}

namespace {

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("equivariant_linear_sparse", TORCH_FN(flat_linear<&reference_linear>));
  m.impl("equivariant_linear_sparse_backward",
         TORCH_FN(flat_linear_backward<&reference_linear_backward>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("equivariant_linear_sparse", TORCH_FN(flat_linear<&reference_linear>));
  m.impl("equivariant_linear_sparse_backward",
         TORCH_FN(flat_linear_backward<&reference_linear_backward>));
}

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr size_t kInputs = 3;  // x, weight, bias: saved before the plan

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const OptionalTensor& bias, const LinearCall* call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    variable_list saved{x, weight, bias.value_or(Tensor())};
    saved.insert(saved.end(), call->plan.begin(), call->plan.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["parts"] = call->parts.vec();
    context->saved_data["mean"] = call->mean;
    return dispatch_linear({x, weight, bias, call->plan, call->parts, call->mean});
  }

  // The call goes through the autograd kernel of the backward operator, which decides whether this
  // gradient will be differentiated again.
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const OptionalTensor bias = saved[2].defined() ? OptionalTensor(saved[2]) : std::nullopt;
    const std::vector<int64_t> parts = context->saved_data["parts"].toIntVector();
    const LinearCall call{saved[0], saved[1],
                          bias,     at::TensorList(saved).slice(kInputs),
                          parts,    context->saved_data["mean"].toBool()};
    auto [x, weight, bias_gradient] =
        dispatch_linear_backward({grads[0],
                                  call,
                                  {context->needs_input_grad(0), context->needs_input_grad(1),
                                   bias.has_value() && context->needs_input_grad(2)}});
    return {x, weight, bias_gradient, Tensor()};
  }
};

Tensor above(const LinearCall& call) {
  return autograd_forward(call, &reference_linear, &dispatch_linear, [](const LinearCall& own) {
    return LinearFunction::apply(own.x, own.weight, own.bias, &own);
  });
}

LinearGradients above_backward(const LinearBackwardCall& call) {
  return autograd_backward(call, &reference_linear_backward, &dispatch_linear_backward);
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("equivariant_linear_sparse", TORCH_FN(flat_linear<&above>));
  m.impl("equivariant_linear_sparse_backward", TORCH_FN(flat_linear_backward<&above_backward>));
}

}  // namespace
}  // namespace nsimplex::equivariant

namespace nsimplex {
namespace equivariant {
namespace {

using at::Tensor;

constexpr char kSparseLinear[] = "equivariant_linear_sparse";
constexpr char kSparseAt[] = "[equivariant_linear_sparse] ";

using LinearOperator = decltype(flat_linear<&reference_linear>);
using BackwardFunction = decltype(flat_linear_backward<&reference_linear_backward>);

std::string_view pooling_name(bool mean) { return name_of(mean ? Pooling::mean : Pooling::sum); }

Tensor meta_linear(const LinearCall& call) {
  check_linear(call);
  const c10::SymInt rows = call.plan[kOutputPlaces].sym_size(0);
  return call.x.new_empty_symint({rows, call.weight.sym_size(2)});
}

LinearGradients meta_linear_backward(const LinearBackwardCall& call) {
  check_linear(call);
  const auto like = [&](size_t which, const Tensor& tensor) {
    return call.wanted[which] ? tensor.new_empty_symint(tensor.sym_sizes()) : Tensor();
  };
  return {like(0, call.forward.x), like(1, call.forward.weight),
          call.wanted[2] ? like(2, *call.forward.bias) : Tensor()};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def(
      "equivariant_linear_sparse(Tensor x, Tensor weight, Tensor? bias, Tensor[] plan, int[] "
      "parts, str pooling=\"mean\") -> Tensor",
      tags);
  m.def(
      "equivariant_linear_sparse_backward(Tensor grad, Tensor x, Tensor weight, Tensor? bias, "
      "Tensor[] plan, int[] parts, str pooling, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
      tags);
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) {
  m.impl("equivariant_linear_sparse", TORCH_FN(flat_linear<&meta_linear>));
  m.impl("equivariant_linear_sparse_backward",
         TORCH_FN(flat_linear_backward<&meta_linear_backward>));
}

}  // namespace

bool means(c10::string_view pooling) {
  return parse_pooling(pooling, kSparseLinear) == Pooling::mean;
}

void check_linear(const LinearCall& call) {
  const auto& [x, weight, bias, plan, parts, mean] = call;
  TORCH_CHECK_VALUE(x.dim() == 2, kSparseAt, "x: expected [m, C], got ", x.sym_sizes());
  TORCH_CHECK_VALUE(weight.dim() == 3 && weight.sym_size(1) == x.sym_size(1), kSparseAt,
                    "weight: expected [classes, ", x.sym_size(1), " channels, D], got ",
                    weight.sym_sizes());
  TORCH_CHECK_TYPE(weight.scalar_type() == x.scalar_type(), kSparseAt, "weight: expected ",
                   x.scalar_type(), " as x, got ", weight.scalar_type());
  TORCH_CHECK_TYPE(!bias || bias->scalar_type() == x.scalar_type(), kSparseAt, "bias: expected ",
                   x.scalar_type(), " as x, got ", bias ? bias->scalar_type() : x.scalar_type());
  TORCH_CHECK_VALUE(!bias || (bias->dim() == 2 && bias->sym_size(1) == weight.sym_size(2)),
                    kSparseAt, "bias: expected [classes, ", weight.sym_size(2), "], got ",
                    bias ? bias->sym_sizes() : c10::SymIntArrayRef());
  check_sums(call.sums());
  for (const PatternPart& part : unflatten_parts(parts)) {
    TORCH_CHECK_VALUE(!bias || part.bias_class < bias->sym_size(0), kSparseAt,
                      "bias: expected more than ", part.bias_class, " classes, got ",
                      bias ? bias->sym_size(0) : 0);
  }
}

void check_linear(const LinearBackwardCall& call) {
  check_linear(call.forward);
  const c10::SymInt rows = call.forward.plan[kOutputPlaces].sym_size(0);
  const c10::SymInt columns = call.forward.weight.sym_size(2);
  const at::ScalarType type = call.forward.x.scalar_type();
  TORCH_CHECK_TYPE(call.grad_out.scalar_type() == type,
                   "[equivariant_linear_sparse_backward] grad: expected ", type, " as x, got ",
                   call.grad_out.scalar_type());
  TORCH_CHECK_VALUE(call.grad_out.dim() == 2 && call.grad_out.sym_size(0) == rows &&
                        call.grad_out.sym_size(1) == columns,
                    "[equivariant_linear_sparse_backward] grad: expected [", rows, ", ", columns,
                    "], got ", call.grad_out.sym_sizes());
  TORCH_CHECK_VALUE(call.forward.bias || !call.wanted[2],
                    "[equivariant_linear_sparse_backward] output_mask: there is no bias");
}

Tensor part_matrix(const LinearCall& call, int64_t first, int64_t classes) {
  return call.weight.index_select(0, call.plan[kWeightClasses].narrow(0, first, classes))
      .flatten(0, 1);
}

Tensor dispatch_linear(const LinearCall& call) {
  static const auto op = find_operator<LinearOperator>("nsimplex::equivariant_linear_sparse");
  return op.call(call.x, call.weight, call.bias, call.plan, call.parts, pooling_name(call.mean));
}

LinearGradients dispatch_linear_backward(const LinearBackwardCall& call) {
  static const auto op =
      find_operator<BackwardFunction>("nsimplex::equivariant_linear_sparse_backward");
  const LinearCall& forward = call.forward;
  return op.call(call.grad_out, forward.x, forward.weight, forward.bias, forward.plan,
                 forward.parts, pooling_name(forward.mean), call.wanted);
}

}  // namespace equivariant

at::Tensor equivariant_linear_sparse(const at::Tensor& x, const at::Tensor& weight,
                                     const std::optional<at::Tensor>& bias,
                                     const EquivariantPlan& plan, Pooling pooling) {
  using namespace equivariant;
  const auto check_classes = [](const char* name, const Tensor& tensor, int64_t classes) {
    TORCH_CHECK_VALUE(tensor.size(0) == classes, kSparseAt, name, ": expected ", classes,
                      " classes, got ", tensor.size(0));
  };
  check_classes("weight", weight, plan.class_count);
  if (bias) check_classes("bias", *bias, plan.bias_class_count);
  return dispatch_linear({x, weight, bias, plan.tensors, plan.parts, pooling == Pooling::mean});
}

}  // namespace nsimplex
