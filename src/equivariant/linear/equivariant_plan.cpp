// Plans from tensors, as the C++ function and as the operator for Python, and the checks of the
// numbers of a plan, on which the kernels rely.

#include "equivariant/linear/equivariant_plan.h"

#include <ATen/ATen.h>
#include <nsimplex/equivariant_linear.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>

#include "equivariant/classes/equivariant_classes.h"
#include "equivariant/classes/partitions.h"
#include "equivariant/linear/class_parts.h"
#include "graph/graph_view.h"

namespace nsimplex::equivariant {
namespace {

constexpr std::array<const char*, kPlanTensors> kTensorNames = {
    "group_offsets",  "group_rows",     "row_offsets", "row_sources",   "lookups",       "counts",
    "source_offsets", "source_lookups", "terms",       "output_places", "weight_classes"};

class PlanValues {
 public:
  PlanValues(const SumsCall& call, const char* name) : call_(call), name_(name) {}

  void check() const {
    check_sizes();
    const int64_t rows = segments_of(kRowOffsets), groups = segments_of(kGroupOffsets);
    const int64_t sources = segments_of(kSourceOffsets), lookups = size(kLookups);
    require(sources == rows + groups, kSourceOffsets,
            "one segment for each input row and each group");
    check_segments(kGroupOffsets, kGroupRows);
    check_segments(kRowOffsets, kRowSources);
    check_segments(kSourceOffsets, kSourceLookups);
    check_range(kGroupRows, 0, rows);
    check_range(kRowSources, 0, sources);
    check_range(kSourceLookups, 0, lookups);
    check_range(kLookups, -1, sources);
    check_rising_lookups();
  }

 private:
  int64_t size(PlanTensor which) const { return call_.plan[which].size(0); }
  int64_t segments_of(PlanTensor which) const { return size(which) - 1; }
  std::span<const int32_t> values(PlanTensor which) const {
    return {numbers(call_, which), static_cast<size_t>(call_.plan[which].numel())};
  }

  void require(bool holds, PlanTensor which, const char* expected) const {
    TORCH_CHECK_VALUE(holds, "[", name_, "] plan: expected that of an equivariant_plan, but its ",
                      kTensorNames[which], " differ: expected ", expected);
  }

  // The arrays of all parts must have the lengths that the parts give, and terms must stay inside
  // their part.
  void check_sizes() const {
    for (size_t t = 0; t < kPlanTensors; ++t) {
      const at::Tensor& tensor = call_.plan[t];
      const bool fits = tensor.is_cpu() && (t == kTerms ? tensor.dim() == 2 && tensor.size(1) == 3
                                                        : tensor.dim() == 1);
      require(fits, static_cast<PlanTensor>(t),
              t == kTerms ? "shape [terms, 3] on the CPU" : "one dimension on the CPU");
    }
    const auto* const terms = reinterpret_cast<const kernels::ClassTerm*>(numbers(call_, kTerms));
    PartPlace place;
    for (const PatternPart& part : unflatten_parts(call_.parts)) {
      const auto classes = static_cast<int64_t>(part.classes.size());
      for (const int64_t number : {part.rows, part.lookups, part.terms}) {
        require(number >= 0 && number <= std::numeric_limits<int32_t>::max(), kTerms,
                "parts of at most 2^31 - 1 rows");
      }
      const auto fits = [&](int64_t before, int64_t own, PlanTensor which) {
        require(own <= size(which) - before, which, "as many as the parts have");
        return before + own;
      };
      const int64_t first_term = place.term;
      place.row = fits(place.row, part.rows, kOutputPlaces);
      place.lookup = fits(place.lookup, part.rows * part.lookups, kLookups);
      place.term = fits(place.term, part.terms, kTerms);
      place.sum = fits(place.sum, part.rows * classes, kCounts);
      place.weight_class = fits(place.weight_class, classes, kWeightClasses);
      for (int64_t t = first_term; t < place.term; ++t) {
        require(terms[t].to_class >= 0 && terms[t].to_class < classes && terms[t].lookup >= 0 &&
                    terms[t].lookup < part.lookups,
                kTerms, "classes and look-ups of their part");
      }
    }
    const std::pair<int64_t, PlanTensor> ends[] = {{place.row, kOutputPlaces},
                                                   {place.lookup, kLookups},
                                                   {place.term, kTerms},
                                                   {place.sum, kCounts},
                                                   {place.weight_class, kWeightClasses}};
    for (const auto& [end, which] : ends)
      require(end == size(which), which, "as many as the parts have");
  }

  void check_segments(PlanTensor offsets, PlanTensor entries) const {
    const auto bounds = values(offsets);
    require(!bounds.empty() && bounds.front() == 0 && bounds.back() == size(entries) &&
                std::ranges::is_sorted(bounds),
            offsets, "a rising row from 0 to the number of entries");
  }

  void check_range(PlanTensor which, int64_t least, int64_t end) const {
    int32_t low = 0, high = -1;  // of all values, without a branch in the loop
    for (const int32_t value : values(which)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
    require(low >= least && high < end, which, "numbers inside their range");
  }

  // Sums by blocks require the look-ups of a source in ascending order.
  void check_rising_lookups() const {
    const auto bounds = values(kSourceOffsets), lookups = values(kSourceLookups);
    for (size_t s = 0; s + 1 < bounds.size(); ++s) {
      require(std::ranges::is_sorted(lookups.subspan(bounds[s], bounds[s + 1] - bounds[s])),
              kSourceLookups, "rising numbers for each source");
    }
  }

  const SumsCall& call_;
  const char* name_;
};

}  // namespace

void check_plan_values(const SumsCall& call, const char* name) { PlanValues(call, name).check(); }

}  // namespace nsimplex::equivariant

namespace nsimplex {
namespace equivariant {

using at::Tensor;

void check_same_nodes(const TupleBatch& input, const TupleBatch& output, const char* name) {
  TORCH_CHECK_VALUE(at::equal(input.node_offsets, output.node_offsets), "[", name,
                    "] output: expected the nodes of the input, got other node_offsets");
}

// loop_free lists have been checked for repeated nodes. Undirected tuples must ascend.
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
  std::vector<int64_t> classes;
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
  tensors[kOutputPlaces] = to_tensor(plan.output_places);
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
    C10_THROW_ERROR(ValueError, c10::str("[equivariant_plan] ", error.what()));
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

// For every device, because the checks of the lists reject tensors that are not on the CPU.
TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("equivariant_plan", TORCH_FN(flat_sum_plan));
}

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
