// The sparse equivariant linear layer: the sums of every class, times its weight.

#include <ATen/ATen.h>
#include <nsimplex/equivariant_plan.h>
#include <torch/library.h>

#include <iterator>

#include "attention/dispatch.h"
#include "equivariant/classes/kinds.h"
#include "equivariant/sparse/sums_call.h"

namespace nsimplex {
namespace equivariant {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

constexpr char kName[] = "equivariant_linear_sparse";
constexpr char kAt[] = "[equivariant_linear_sparse] ";

void check_weights(const Tensor& x, const Tensor& weight, const OptionalTensor& bias) {
  TORCH_CHECK_VALUE(x.dim() == 2, kAt, "x: expected [m, C], got ", x.sym_sizes());
  TORCH_CHECK_VALUE(weight.dim() == 3 && weight.sym_size(1) == x.sym_size(1), kAt,
                    "weight: expected [classes, ", x.sym_size(1), " channels, D], got ",
                    weight.sym_sizes());
  TORCH_CHECK_TYPE(weight.scalar_type() == x.scalar_type(), kAt, "weight: expected ",
                   x.scalar_type(), " as x, got ", weight.scalar_type());
  TORCH_CHECK_VALUE(!bias || (bias->dim() == 2 && bias->sym_size(1) == weight.sym_size(2)), kAt,
                    "bias: expected [classes, ", weight.sym_size(2), "], got ",
                    bias ? bias->sym_sizes() : c10::SymIntArrayRef());
}

// Parts of the output tuples, those of one pattern together, each a product of what applies to it.
Tensor flat(const Tensor& x, const Tensor& weight, const OptionalTensor& bias, at::TensorList plan,
            at::IntArrayRef parts, c10::string_view pooling) {
  check_weights(x, weight, bias);
  const bool mean = parse_pooling(pooling, kName) == Pooling::mean;
  const c10::SymInt channels = x.sym_size(1);
  const std::vector<PatternPart> patterns = unflatten_parts(parts);
  if (patterns.empty()) return x.new_zeros_symint({0, weight.sym_size(2)});
  std::vector<int64_t> sizes;
  for (const PatternPart& part : patterns) sizes.push_back(part.rows * std::ssize(part.classes));
  // Split and not narrowed: the gradient of all parts is put together in one pass.
  const std::vector<Tensor> sums = dispatch_sums({x, plan, parts, mean}).split_with_sizes(sizes);
  std::vector<Tensor> out;
  int64_t first_class = 0;
  for (const PatternPart& part : patterns) {
    const int64_t classes = std::ssize(part.classes);
    TORCH_CHECK_VALUE(!bias || part.bias_class < bias->sym_size(0), kAt,
                      "bias: expected more than ", part.bias_class, " classes, got ",
                      bias ? bias->sym_size(0) : 0);
    const Tensor own = sums[out.size()].view_symint({part.rows, classes * channels});
    const Tensor matrix =
        weight.index_select(0, plan[kWeightClasses].narrow(0, first_class, classes)).flatten(0, 1);
    out.push_back(bias ? at::addmm(bias->select(0, part.bias_class), own, matrix)
                       : at::mm(own, matrix));
    first_class += classes;
  }
  if (out.size() == 1) return out[0];  // the rows of the only pattern are in order
  return at::cat(out).index_select(0, plan[kOutputPlaces]);
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "equivariant_linear_sparse(Tensor x, Tensor weight, Tensor? bias, Tensor[] plan, int[] "
      "parts, str pooling=\"mean\") -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeImplicitAutograd, m) {
  m.impl("equivariant_linear_sparse", TORCH_FN(flat));
}

}  // namespace
}  // namespace equivariant

at::Tensor equivariant_linear_sparse(const at::Tensor& x, const at::Tensor& weight,
                                     const std::optional<at::Tensor>& bias,
                                     const EquivariantPlan& plan, Pooling pooling) {
  using namespace equivariant;
  const auto check_classes = [](const char* name, const Tensor& tensor, const auto& classes) {
    TORCH_CHECK_VALUE(tensor.size(0) == std::ssize(classes), kAt, name, ": expected ",
                      classes.size(), " classes, got ", tensor.size(0));
  };
  check_classes("weight", weight, equivariant_classes(plan.input, plan.output, plan.classes));
  if (bias) check_classes("bias", *bias, equivariant_classes({.order = 0}, plan.output));
  static const auto op = find_operator<decltype(flat)>("nsimplex::equivariant_linear_sparse");
  return op.call(x, weight, bias, plan.tensors, plan.parts, to_string(pooling));
}

}  // namespace nsimplex
