// Schema, checks and public function of the dense equivariant linear layer.

#include <torch/library.h>

#include "attention/dispatch.h"
#include "equivariant/classes/kinds.h"
#include "equivariant/dense/dense_call.h"

namespace nsimplex {
namespace equivariant {
namespace {

constexpr char kDenseLinear[] = "equivariant_linear";
constexpr char kAt[] = "[equivariant_linear] ";

at::Tensor flat(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                int64_t input_order, int64_t output_order, c10::string_view input_symmetry,
                c10::string_view output_symmetry, bool input_loops, bool output_loops,
                c10::string_view classes, c10::string_view pooling,
                const OptionalTensor& node_counts, std::optional<c10::SymInt> nodes) {
  return dense_linear({x,
                       weight,
                       bias,
                       {input_order, parse_symmetry(input_symmetry, kDenseLinear), input_loops},
                       {output_order, parse_symmetry(output_symmetry, kDenseLinear), output_loops},
                       parse_class_set(classes, kDenseLinear),
                       parse_pooling(pooling, kDenseLinear),
                       node_counts,
                       std::move(nodes)});
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "equivariant_linear(Tensor x, Tensor weight, Tensor? bias=None, *, int input_order, int "
      "output_order, str input_symmetry=\"ordered\", str output_symmetry=\"ordered\", bool "
      "input_loops=True, bool output_loops=True, str classes=\"all\", str pooling=\"mean\", "
      "Tensor? "
      "node_counts=None, SymInt? nodes=None) -> Tensor",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeImplicitAutograd, m) {
  m.impl("equivariant_linear", TORCH_FN(flat));
}

int64_t count_classes(const TensorKind& input, const TensorKind& output, ClassSet set) {
  return static_cast<int64_t>(equivariant_classes(input, output, set).size());
}

}  // namespace

c10::SymInt nodes_of(const DenseCall& call) {
  if (call.input.order > 0) return call.x.sym_size(1);
  return call.nodes.value_or(0);
}

void check(const DenseCall& call) {
  const at::Tensor &x = call.x, &weight = call.weight;
  const int64_t k = call.input.order, l = call.output.order;
  const int64_t classes = count_classes(call.input, call.output, call.classes);
  TORCH_CHECK_TYPE(x.is_floating_point(), kAt, "x: expected a floating dtype, got ",
                   x.scalar_type());
  TORCH_CHECK_VALUE(x.dim() == k + 2, kAt, "x: expected [B, ", k, " axes of nodes, C], got ",
                    x.sym_sizes());
  for (int64_t axis = 2; axis <= k; ++axis) {
    TORCH_CHECK_VALUE(x.sym_size(axis) == x.sym_size(1), kAt,
                      "x: expected equal axes of nodes, got ", x.sym_sizes());
  }
  TORCH_CHECK_VALUE(
      weight.dim() == 3 && weight.sym_size(0) == classes && weight.sym_size(1) == x.sym_size(-1),
      kAt, "weight: expected [", classes, " classes, ", x.sym_size(-1), " channels, D], got ",
      weight.sym_sizes());
  TORCH_CHECK_TYPE(weight.scalar_type() == x.scalar_type(), kAt, "weight: expected ",
                   x.scalar_type(), " as x, got ", weight.scalar_type());
  if (call.bias) {
    const int64_t biases = count_classes({.order = 0}, call.output, ClassSet::all);
    TORCH_CHECK_VALUE(call.bias->dim() == 2 && call.bias->sym_size(0) == biases &&
                          call.bias->sym_size(1) == weight.sym_size(2),
                      kAt, "bias: expected [", biases, " classes, ", weight.sym_size(2), "], got ",
                      call.bias->sym_sizes());
  }
  if (call.node_counts) {
    TORCH_CHECK_VALUE(call.node_counts->dim() == 1 &&
                          call.node_counts->sym_size(0) == x.sym_size(0) &&
                          at::isIntegralType(call.node_counts->scalar_type(), false),
                      kAt, "node_counts: expected integers [", x.sym_size(0), "], got ",
                      call.node_counts->scalar_type(), " ", call.node_counts->sym_sizes());
  }
  TORCH_CHECK_VALUE(k > 0 || l == 0 || call.nodes, kAt,
                    "nodes: expected how many, since an input of order 0 does not tell");
  TORCH_CHECK_VALUE(!call.nodes || *call.nodes >= 0, kAt, "nodes: expected >= 0, got ",
                    *call.nodes);
  TORCH_CHECK_VALUE(k == 0 || !call.nodes || *call.nodes == x.sym_size(1), kAt, "nodes: expected ",
                    x.sym_size(1), ", the axis of x, got ", *call.nodes);
}

}  // namespace equivariant

at::Tensor equivariant_linear(const at::Tensor& x, const at::Tensor& weight,
                              const std::optional<at::Tensor>& bias,
                              const EquivariantOptions& options) {
  using equivariant::to_string;
  static const auto op = find_operator<decltype(equivariant::flat)>("nsimplex::equivariant_linear");
  std::optional<c10::SymInt> nodes;
  if (options.nodes) nodes = *options.nodes;
  const auto& [input, output] = std::tie(options.input, options.output);
  return op.call(x, weight, bias, input.order, output.order, to_string(input.symmetry),
                 to_string(output.symmetry), input.loops, output.loops, to_string(options.classes),
                 to_string(options.pooling), options.node_counts, nodes);
}

}  // namespace nsimplex
