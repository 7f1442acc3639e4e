// The dense equivariant linear layer: diagonals, sums, products and broadcasts in the diagram
// basis.

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "equivariant/classes/contractions.h"
#include "equivariant/dense/constant.h"
#include "equivariant/dense/dense_call.h"
#include "equivariant/dense/diagram_weights.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;

// The entries of x [B, n, .., n, d] where all axes of a block have one index: [B, n (a block), ..,
// d]. A view; writing to it writes to x.
Tensor diagonal(Tensor x, const Partition& pattern) {
  // Axes of x that are left, by the block they stand for, in the order of the tensor.
  std::vector<int8_t> axes(pattern);
  for (int8_t block = 0; block < block_count(pattern); ++block) {
    for (;;) {
      const auto first = std::find(axes.begin(), axes.end(), block);
      const auto second = std::find(first + 1, axes.end(), block);
      if (second == axes.end()) break;
      // diagonal() puts the joined axis last; it goes where the first of the two was.
      x = x.diagonal(0, 1 + (first - axes.begin()), 1 + (second - axes.begin()))
              .movedim(-1, 1 + (first - axes.begin()));
      axes.erase(second);
    }
  }
  return x;  // blocks are numbered in the order of their first axis
}

// Entries [B or 1, n, .., n] of an order-r tensor that exist: indices within the graph, and
// distinct where there are no loops. Undefined where all do.
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

// Collects, for every output pattern, what is constant along all but some blocks of it.
class OutputParts {
 public:
  // part [B, n (a kept block), .., D], whose axes are these blocks of the output.
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

  // Adds all to out [B, n, .., n, D]: every part broadcast along the blocks it does not have, onto
  // the diagonal of its pattern.
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

// rows [B, .., C] rows_times one matrix [C, D], or one of each graph [B, C, D].
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
