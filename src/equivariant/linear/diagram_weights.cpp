// Converts weights of equality classes to weights of diagrams.

#include "equivariant/linear/diagram_weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <compare>
#include <iterator>
#include <map>
#include <mutex>

#include "equivariant/linear/equivariant_linear.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;

// Visits every coarsening of a partition: the partitions of its blocks, applied to its positions.
template <class Visit>
void for_each_coarsening(const Partition& fine, Visit&& visit) {
  for (const Partition& joined : all_partitions(block_count(fine))) {
    Partition coarse;
    for (const int8_t block : fine) coarse.push_back(joined[block]);
    visit(coarse);
  }
}

DiagramBasis make_basis(const TensorKind& input, const TensorKind& output, ClassSet set) {
  DiagramBasis basis;
  basis.classes = equivariant_classes(input, output, set);
  std::vector<std::map<Partition, int64_t>> columns;
  std::vector<double> members_per_output;
  std::map<Partition, int64_t> rows;
  for (const EquivariantClass& each : basis.classes) {
    std::map<Partition, int64_t>& column = columns.emplace_back();
    std::map<Partition, int64_t> ends;  // members by the pattern of their output
    for (const Partition& member : each.members) {
      ++ends[split(member, input.order).output];
      for_each_coarsening(member, [&](const Partition& c) { column[c] += moebius(member, c); });
    }
    members_per_output.push_back(static_cast<double>(ends.begin()->second));
    for (const auto& [diagram, value] : column) {
      if (value != 0) rows.emplace(diagram, 0);
    }
  }
  for (auto& [diagram, row] : rows) {
    row = std::ssize(basis.diagrams);
    basis.diagrams.push_back(diagram);
  }
  std::vector<double> entries(rows.size() * columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    for (const auto& [diagram, value] : columns[c]) {
      if (value != 0) entries[rows[diagram] * columns.size() + c] = static_cast<double>(value);
    }
  }
  basis.moebius = untraced_tensor(std::move(entries), {std::ssize(rows), std::ssize(columns)});
  basis.members_per_output = untraced_tensor(std::move(members_per_output), {std::ssize(columns)});
  return basis;
}

// 1 / ((n - v)(n - v - 1) ..) over the key-only blocks, where v is the number of blocks of the
// output. It is the reciprocal of the number of tuples of a class per output of n nodes, or 0 if
// there is none. counts [graphs] -> [graphs, classes].
Tensor reciprocal_counts(const DiagramBasis& basis, const Tensor& counts) {
  const int64_t classes = std::ssize(basis.classes);
  int64_t most = 0;
  for (const EquivariantClass& each : basis.classes) most = std::max(most, each.key_only);
  // A factor is used * n - taken. The padding of a class to `most` factors is 1.
  std::vector<double> used(classes * most, 0.), taken(classes * most, -1.);
  for (int64_t c = 0; c < classes; ++c) {
    const EquivariantClass& each = basis.classes[c];
    for (int64_t t = 0; t < each.key_only; ++t) {
      used[c * most + t] = 1;
      taken[c * most + t] = static_cast<double>(each.shared + each.query_only + t);
    }
  }
  const auto table = [&](std::vector<double>& values) {
    return as_constant(untraced_tensor(std::move(values), {classes, most}), counts.device());
  };
  const Tensor factors = table(used) * counts.to(at::kDouble).view({-1, 1, 1}) - table(taken);
  const Tensor tuples = factors.clamp_min(0).prod(-1);
  return at::where(tuples > 0, tuples.reciprocal(), 0.);
}

struct BasisKey {
  int64_t input_order, output_order;
  Symmetry input_symmetry, output_symmetry;
  bool input_loops, output_loops;
  ClassSet set;
  auto operator<=>(const BasisKey&) const = default;
};

}  // namespace

const DiagramBasis& diagram_basis(const TensorKind& input, const TensorKind& output, ClassSet set) {
  static std::mutex mutex;
  static std::map<BasisKey, DiagramBasis> bases;  // its elements never move
  const BasisKey key{
      input.order,        output.order, input.symmetry, output.symmetry, input.has_loops(),
      output.has_loops(), set};
  const std::lock_guard lock(mutex);
  if (const auto found = bases.find(key); found != bases.end()) return found->second;
  return bases.emplace(key, make_basis(input, output, set)).first->second;
}

Tensor diagram_weights(const DiagramBasis& basis, const Tensor& weight, Pooling pooling,
                       const c10::SymInt& nodes, const std::optional<Tensor>& node_counts) {
  const at::TensorOptions options = weight.options();
  Tensor transform = as_constant(basis.moebius, options.device());
  if (pooling == Pooling::mean) {
    const Tensor counts =
        node_counts.value_or(at::full({1}, c10::Scalar(nodes), options.dtype(at::kDouble)));
    const Tensor members = as_constant(basis.members_per_output, options.device());
    transform = transform * (reciprocal_counts(basis, counts) / members).unsqueeze(1);
    if (!node_counts) transform = transform.squeeze(0);
  } else if (node_counts) {
    transform = transform.unsqueeze(0).expand_symint({node_counts->sym_size(0), -1, -1});
  }
  // In float64, because entries of the transform reach 6! and their sums cancel.
  return at::matmul(transform, weight.to(at::kDouble).flatten(1))
      .unflatten_symint(-1, {weight.sym_size(1), weight.sym_size(2)})
      .to(weight.scalar_type());
}

}  // namespace nsimplex::equivariant
