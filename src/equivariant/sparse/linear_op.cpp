// The sparse equivariant linear layer, the sums of every class times its weight: schema, checks,
// shapes, the public function.

#include <ATen/ATen.h>
#include <nsimplex/equivariant_plan.h>
#include <torch/library.h>

#include "attention/dispatch.h"
#include "equivariant/classes/kinds.h"
#include "equivariant/sparse/linear_call.h"

namespace nsimplex {
namespace equivariant {
namespace {

using at::Tensor;

constexpr char kSparseLinear[] = "equivariant_linear_sparse";
constexpr char kSparseAt[] = "[equivariant_linear_sparse] ";

using LinearOperator = decltype(flat_linear<&reference_linear>);
using BackwardFunction = decltype(flat_linear_backward<&reference_linear_backward>);

c10::string_view pooling_name(bool mean) { return to_string(mean ? Pooling::mean : Pooling::sum); }

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
