// Plans from tensors: the C++ function, and the operator for callers that are not C++.

#include <ATen/ATen.h>
#include <nsimplex/equivariant_plan.h>
#include <torch/library.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "equivariant/classes/kinds.h"
#include "equivariant/classes/partitions.h"
#include "equivariant/sparse/plan_tensors.h"
#include "graph/view.h"

namespace nsimplex {
namespace equivariant {

using at::Tensor;

void check_same_nodes(const TupleBatch& input, const TupleBatch& output, const char* name) {
  TORCH_CHECK_VALUE(at::equal(input.node_offsets, output.node_offsets), "[", name,
                    "] output: expected the nodes of the input, got other node_offsets");
}

// loop_free lists have been checked for repeated nodes; an undirected tuple ascends.
void check_loops(const graph::TupleView& tuples, const TensorKind& kind, const char* list,
                 const char* name) {
  if (kind.has_loops()) return;
  for (int64_t row = 0; row < tuples.tuples.count; ++row) {
    const auto tuple = tuples.tuples[row];
    TORCH_CHECK_VALUE(std::adjacent_find(tuple.begin(), tuple.end()) == tuple.end() ||
                          kind.symmetry != Symmetry::undirected,
                      "[", name, "] ", list,
                      ": expected no hyperedge with a repeated node, got one in row ", row);
  }
}

std::vector<Tensor> tensors_of(const SumPlan& plan) {
  std::vector<int64_t> places(plan.output_rows.size()), classes;
  for (size_t place = 0; place < places.size(); ++place) {
    places[plan.output_rows[place]] = static_cast<int64_t>(place);
  }
  for (const PatternPart& part : plan.parts) {
    classes.insert(classes.end(), part.classes.begin(), part.classes.end());
  }
  std::vector<Tensor> tensors(kPlanTensors);
  tensors[kGroupOffsets] = to_tensor(plan.group_offsets);
  tensors[kGroupRows] = to_tensor(plan.group_rows);
  tensors[kRowOffsets] = to_tensor(plan.row_offsets);
  tensors[kRowSources] = to_tensor(plan.row_sources);
  tensors[kLookups] = to_tensor(plan.lookups);
  tensors[kCounts] = to_tensor(plan.counts);
  tensors[kSourceOffsets] = to_tensor(plan.source_offsets);
  tensors[kSourceLookups] = to_tensor(plan.source_lookups);
  tensors[kTerms] = to_tensor(plan.terms).view({-1, 3});
  tensors[kOutputPlaces] = to_tensor(places);
  tensors[kWeightClasses] = to_tensor(classes);
  return tensors;
}

namespace {

constexpr char kPlan[] = "equivariant_plan";

SumPlan sum_plan(TupleJoin& join, EquivariantPlan& plan) {
  const auto classes = equivariant_classes(plan.input, plan.output, plan.classes);
  const auto bias_classes = equivariant_classes({.order = 0}, plan.output);
  plan.class_count = std::ssize(classes);
  plan.bias_class_count = std::ssize(bias_classes);
  try {
    return make_sum_plan(join, plan.input_rows, plan.input, classes, bias_classes);
  } catch (const std::length_error& error) {
    TORCH_CHECK_VALUE(false, "[equivariant_plan] ", error.what());
  }
}

std::tuple<std::vector<Tensor>, std::vector<int64_t>> flat_sum_plan(
    const Tensor& input_tuples, const Tensor& input_offsets, const Tensor& output_tuples,
    const Tensor& output_offsets, const Tensor& node_offsets, c10::string_view input_symmetry,
    c10::string_view output_symmetry, bool input_loops, bool output_loops,
    c10::string_view classes) {
  EquivariantPlan plan = equivariant_plan(
      {input_tuples, input_offsets, node_offsets, parse_symmetry(input_symmetry, kPlan)},
      {output_tuples, output_offsets, node_offsets, parse_symmetry(output_symmetry, kPlan)},
      {parse_class_set(classes, kPlan), input_loops, output_loops});
  return {std::move(plan.tensors), std::move(plan.parts)};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "equivariant_plan(Tensor input_tuples, Tensor input_offsets, Tensor output_tuples, Tensor "
      "output_offsets, Tensor node_offsets, str input_symmetry=\"ordered\", str "
      "output_symmetry=\"ordered\", bool input_loops=True, bool output_loops=True, str "
      "classes=\"all\") -> (Tensor[] tensors, int[] parts)");
}

TORCH_LIBRARY_IMPL(nsimplex, CPU, m) { m.impl("equivariant_plan", TORCH_FN(flat_sum_plan)); }

}  // namespace
}  // namespace equivariant

EquivariantPlan equivariant_plan(const TupleBatch& input, const TupleBatch& output,
                                 const EquivariantPlanOptions& options) {
  using namespace equivariant;
  const graph::CheckedBatch own_input(input, kPlan), own_output(output, kPlan);
  check_same_nodes(input, output, kPlan);
  EquivariantPlan plan{{input.order(), input.symmetry, options.input_loops},
                       {output.order(), output.symmetry, options.output_loops},
                       options.classes,
                       input.size(),
                       output.size()};
  TupleJoin join(own_input.view(), own_output.view());
  check_loops(own_input.view(), plan.input, "input", kPlan);
  check_loops(own_output.view(), plan.output, "output", kPlan);
  const SumPlan sums = sum_plan(join, plan);
  plan.tensors = tensors_of(sums);
  plan.parts = flatten(sums.parts);
  return plan;
}

EquivariantPlan EquivariantPlan::to(at::Device device) const {
  EquivariantPlan moved = *this;
  for (at::Tensor& tensor : moved.tensors) tensor = tensor.to(device);
  return moved;
}

}  // namespace nsimplex
