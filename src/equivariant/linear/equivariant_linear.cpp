// The dense equivariant linear layer: schema, checks and public function. It is computed by
// diagonals, sums, products and broadcasts in the diagram basis.

#include "equivariant/linear/equivariant_linear.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <algorithm>
#include <map>

#include "equivariant/classes/equivariant_classes.h"
#include "equivariant/classes/partitions.h"
#include "equivariant/linear/diagram_weights.h"
#include "support/operator.h"
#include "support/plain_tensor.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;

// The entries of x [B, n, .., n, d] at which all axes of a block have one index: [B, n (per block),
// .., d]. It is a view, so writing to it writes to x.
Tensor diagonal(Tensor x, const Partition& pattern) {
  // The remaining axes of x, by their blocks, in the order of the tensor.
  std::vector<int8_t> axes(pattern);
  for (int8_t block = 0; block < block_count(pattern); ++block) {
    for (;;) {
      const auto first = std::find(axes.begin(), axes.end(), block);
      const auto second = std::find(first + 1, axes.end(), block);
      if (second == axes.end()) break;
      // diagonal() puts the joined axis last. It is moved to the place of the first of the two.
      x = x.diagonal(0, 1 + (first - axes.begin()), 1 + (second - axes.begin()))
              .movedim(-1, 1 + (first - axes.begin()));
      axes.erase(second);
    }
  }
  return x;  // blocks are numbered in the order of their first axes
}

// The entries [B or 1, n, .., n] of an order-r tensor that exist: indices within the graph, and
// distinct if there are no loops. Undefined if all exist.
Tensor existing(const TensorKind& kind, const c10::SymInt& nodes,
                const std::optional<Tensor>& node_counts, const at::TensorOptions& options) {
  Tensor mask;
  const auto require = [&](const Tensor& condition) {
    mask = mask.defined() ? at::logical_and(mask, condition) : condition;
  };
  const Tensor index = at::arange(c10::Scalar(nodes), options.dtype(at::kLong));
  const auto along = [&](const Tensor& vector, int64_t axis) {  // [.., n] -> [.., 1, n, 1, ..]
    Tensor view = vector;
    for (int64_t a = 0; a < kind.order - 1; ++a) view = view.unsqueeze(a < axis ? -2 : -1);
    return view;
  };
  for (int64_t a = 0; a < kind.order; ++a) {
    if (node_counts) require(along(index < node_counts->to(at::kLong).unsqueeze(1), a));
    for (int64_t b = 0; b < a && !kind.has_loops(); ++b) {
      require(along(index, a) != along(index, b).unsqueeze(0));
    }
  }
  return mask;
}

Tensor only_existing(const Tensor& x, const Tensor& mask) {
  return mask.defined() ? at::where(mask.unsqueeze(-1), x, at::zeros({}, x.options())) : x;
}

// Collects, for every output pattern, the terms that are constant along all blocks but some.
class OutputParts {
 public:
  // part [B, n (per kept block), .., D], whose axes are these blocks of the output.
  void add(const Partition& output, const std::vector<int8_t>& images, const Tensor& part) {
    std::vector<int64_t> order(images.size() + 2, 0);
    std::vector<int8_t> sorted(images);
    std::sort(sorted.begin(), sorted.end());
    for (size_t a = 0; a < sorted.size(); ++a) {
      order[a + 1] = 1 + (std::find(images.begin(), images.end(), sorted[a]) - images.begin());
    }
    order.back() = static_cast<int64_t>(images.size()) + 1;
    Tensor& sum = parts_[output][sorted];
    const Tensor own = part.permute(order);
    sum = sum.defined() ? sum + own : own;
  }

  // Adds all parts to out [B, n, .., n, D]. Every part is broadcast along the blocks that it lacks,
  // onto the diagonal of its pattern.
  void add_to(const Tensor& out) const {
    for (const auto& [pattern, by_blocks] : parts_) {
      const Tensor target = diagonal(out, pattern);
      for (const auto& [blocks, part] : by_blocks) {
        Tensor wide = part;
        for (int8_t block = 0; block < block_count(pattern); ++block) {
          const bool has = std::find(blocks.begin(), blocks.end(), block) != blocks.end();
          if (!has) wide = wide.unsqueeze(1 + block);
        }
        target.add_(wide);
      }
    }
  }

 private:
  std::map<Partition, std::map<std::vector<int8_t>, Tensor>> parts_;
};

// Multiplies rows [B, .., C] by one matrix [C, D], or by one per graph [B, C, D].
Tensor rows_times(const Tensor& rows, const Tensor& matrix) {
  if (matrix.dim() == 2) return at::matmul(rows, matrix);
  if (rows.dim() == 2) return at::matmul(rows.unsqueeze(1), matrix).squeeze(1);
  std::vector<c10::SymInt> inner = rows.sym_sizes().slice(1, rows.dim() - 2).vec();
  return at::matmul(rows.flatten(1, -2), matrix).unflatten_symint(1, inner);
}

void add_bias(OutputParts& parts, const Tensor& bias, const DenseCall& call) {
  const DiagramBasis& basis = diagram_basis({.order = 0}, call.output, ClassSet::all);
  const Tensor weights =
      at::matmul(as_constant(basis.moebius, bias.device()), bias.to(at::kDouble));
  for (size_t d = 0; d < basis.diagrams.size(); ++d) {
    const Tensor row = weights.select(0, static_cast<int64_t>(d)).to(call.x.scalar_type());
    parts.add(basis.diagrams[d], {}, row.unsqueeze(0));
  }
}

}  // namespace

Tensor dense_linear(const DenseCall& call) {
  check(call);
  const int64_t k = call.input.order, l = call.output.order;
  const c10::SymInt nodes = nodes_of(call);
  const DiagramBasis& basis = diagram_basis(call.input, call.output, call.classes);
  const Tensor weights = diagram_weights(basis, call.weight, call.pooling, nodes, call.node_counts);
  const Tensor x =
      only_existing(call.x, existing(call.input, nodes, call.node_counts, call.x.options()));

  OutputParts parts;
  for (const auto& [contraction, uses] : contractions_of(basis.diagrams, k)) {
    Tensor sums = diagonal(x, contraction.input);
    std::vector<int64_t> summed;
    for (int8_t block = 0; block < block_count(contraction.input); ++block) {
      if (!std::binary_search(contraction.kept.begin(), contraction.kept.end(), block)) {
        summed.push_back(1 + block);
      }
    }
    if (!summed.empty()) sums = sums.sum(summed);
    // One product for all diagrams that use these sums: [B, .., C] x [C, uses D].
    std::vector<Tensor> columns;
    for (const ContractionUse& use : uses) columns.push_back(weights.select(-3, use.diagram));
    const Tensor product = rows_times(sums, at::cat(columns, -1));
    const std::vector<Tensor> pieces = product.chunk(static_cast<int64_t>(uses.size()), -1);
    for (size_t u = 0; u < uses.size(); ++u) parts.add(uses[u].output, uses[u].images, pieces[u]);
  }
  if (call.bias) add_bias(parts, *call.bias, call);

  std::vector<c10::SymInt> sizes{call.x.sym_size(0)};
  sizes.insert(sizes.end(), l, nodes);
  sizes.push_back(call.weight.sym_size(2));
  const Tensor out = x.new_zeros_symint(sizes);
  parts.add_to(out);
  return only_existing(out, existing(call.output, nodes, call.node_counts, x.options()));
}

}  // namespace nsimplex::equivariant

namespace nsimplex {
namespace equivariant {
namespace {

constexpr char kDenseLinear[] = "equivariant_linear";
constexpr char kLinearAt[] = "[equivariant_linear] ";

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
  TORCH_CHECK_TYPE(is_floating(x), kLinearAt, "x: expected a floating dtype, got ",
                   x.scalar_type());
  TORCH_CHECK_VALUE(x.dim() == k + 2, kLinearAt, "x: expected [B, ", k, " axes of nodes, C], got ",
                    x.sym_sizes());
  for (int64_t axis = 2; axis <= k; ++axis) {
    TORCH_CHECK_VALUE(x.sym_size(axis) == x.sym_size(1), kLinearAt,
                      "x: expected equal axes of nodes, got ", x.sym_sizes());
  }
  TORCH_CHECK_VALUE(
      weight.dim() == 3 && weight.sym_size(0) == classes && weight.sym_size(1) == x.sym_size(-1),
      kLinearAt, "weight: expected [", classes, " classes, ", x.sym_size(-1), " channels, D], got ",
      weight.sym_sizes());
  TORCH_CHECK_TYPE(weight.scalar_type() == x.scalar_type(), kLinearAt, "weight: expected ",
                   x.scalar_type(), " as x, got ", weight.scalar_type());
  if (call.bias) {
    const int64_t biases = count_classes({.order = 0}, call.output, ClassSet::all);
    TORCH_CHECK_VALUE(call.bias->dim() == 2 && call.bias->sym_size(0) == biases &&
                          call.bias->sym_size(1) == weight.sym_size(2),
                      kLinearAt, "bias: expected [", biases, " classes, ", weight.sym_size(2),
                      "], got ", call.bias->sym_sizes());
  }
  if (call.node_counts) {
    TORCH_CHECK_VALUE(call.node_counts->dim() == 1 &&
                          call.node_counts->sym_size(0) == x.sym_size(0) &&
                          at::isIntegralType(call.node_counts->scalar_type(), false),
                      kLinearAt, "node_counts: expected integers [", x.sym_size(0), "], got ",
                      call.node_counts->scalar_type(), " ", call.node_counts->sym_sizes());
  }
  TORCH_CHECK_VALUE(k > 0 || l == 0 || call.nodes, kLinearAt,
                    "nodes: expected how many, since an input of order 0 does not tell");
  TORCH_CHECK_VALUE(!call.nodes || *call.nodes >= 0, kLinearAt, "nodes: expected >= 0, got ",
                    *call.nodes);
  TORCH_CHECK_VALUE(k == 0 || !call.nodes || *call.nodes == x.sym_size(1), kLinearAt,
                    "nodes: expected ", x.sym_size(1), ", the axis of x, got ", *call.nodes);
}

}  // namespace equivariant

at::Tensor equivariant_linear(const at::Tensor& x, const at::Tensor& weight,
                              const std::optional<at::Tensor>& bias,
                              const EquivariantOptions& options) {
  static const auto op = find_operator<decltype(equivariant::flat)>("nsimplex::equivariant_linear");
  std::optional<c10::SymInt> nodes;
  if (options.nodes) nodes = *options.nodes;
  const auto& [input, output] = std::tie(options.input, options.output);
  return op.call(x, weight, bias, input.order, output.order, name_of(input.symmetry),
                 name_of(output.symmetry), input.loops, output.loops, name_of(options.classes),
                 name_of(options.pooling), options.node_counts, nodes);
}

}  // namespace nsimplex
