// Classes and plans of attention from tensors: the C++ functions, and the operators for Python.

#include <ATen/ATen.h>
#include <nsimplex/equivariant_attention.h>
#include <torch/library.h>

#include <algorithm>
#include <stdexcept>

#include "equivariant/attention/equivariant_attention_call.h"
#include "equivariant/classes/equivariant_classes.h"
#include "equivariant/classes/partitions.h"
#include "equivariant/linear/equivariant_plan.h"
#include "graph/graph_view.h"
#include "support/as_function.h"
#include "support/size_limits.h"

namespace nsimplex {
namespace equivariant {
namespace {

using at::Tensor;

constexpr char kAttentionPlan[] = "equivariant_attention_plan";

// Light classes from the input to tuples of u = 0, 1, .. distinct nodes, up to the number of
// positions of either side.
std::vector<LightClasses> light_classes(const TensorKind& input, const TensorKind& output) {
  std::vector<LightClasses> light;
  for (int64_t nodes = 0; nodes <= std::max(input.order, output.order); ++nodes) {
    const TensorKind compact{nodes, Symmetry::loop_free};
    light.push_back({equivariant_classes(input, compact, ClassSet::light),
                     equivariant_classes({.order = 0}, compact)});
  }
  return light;
}

std::vector<AttentionClass> attention_classes(const TensorKind& input, const TensorKind& output,
                                              const AttentionClassOptions& options,
                                              const std::vector<LightClasses>& light) {
  std::vector<AttentionClass> classes;
  for (EquivariantClass& each : equivariant_classes(input, output)) {
    if (each.light() || (each.shared == 0 && !options.global)) continue;
    const SplitClass parts = split(each.members.front(), input.order);
    const LightClasses& to_query = light[block_count(parts.output)];
    const LightClasses& to_key = light[block_count(parts.input)];
    const bool nodes_alone = options.keys == AttentionKeys::node && each.shared > 0;
    AttentionClass result;
    result.query_maps = map_weights(to_query.maps, input, query_blocks(parts.output, output),
                                    [](const EquivariantClass&) { return true; });
    result.key_maps =
        map_weights(to_key.maps, input, key_blocks(parts.input, parts.match, input),
                    [&](const EquivariantClass& light) {
                      return !nodes_alone || sees_one_free_node(light, input, parts.match);
                    });
    result.own = std::move(each);
    classes.push_back(std::move(result));
  }
  return classes;
}

std::tuple<Tensor, std::vector<int64_t>, std::vector<int64_t>> flat_classes(
    int64_t input_order, int64_t output_order, c10::string_view input_symmetry,
    c10::string_view output_symmetry, bool input_loops, bool output_loops, c10::string_view keys,
    bool global) {
  constexpr char kClasses[] = "equivariant_attention_classes";
  const TensorKind input{input_order, parse_symmetry(input_symmetry, kClasses), input_loops};
  const TensorKind output{output_order, parse_symmetry(output_symmetry, kClasses), output_loops};
  // Numbers of equivariant_classes().
  std::vector<int64_t> numbers, queries, key_weights;
  const auto all = equivariant_classes(input, output);
  for (const auto& [own, query, key] : equivariant_attention_classes(
           input, output, {parse_attention_keys(keys, kClasses), global})) {
    const auto found = std::ranges::find(all, own.members, &EquivariantClass::members);
    numbers.push_back(found - all.begin());
    queries.push_back(query);
    key_weights.push_back(key);
  }
  return {to_tensor(numbers), std::move(queries), std::move(key_weights)};
}

std::tuple<std::vector<Tensor>, std::vector<int64_t>> flat_plan(
    const Tensor& input_tuples, const Tensor& input_offsets, const Tensor& output_tuples,
    const Tensor& output_offsets, const Tensor& node_offsets, c10::string_view input_symmetry,
    c10::string_view output_symmetry, bool input_loops, bool output_loops, c10::string_view form,
    c10::string_view keys, bool global) {
  EquivariantAttentionPlan plan = equivariant_attention_plan(
      {input_tuples, input_offsets, node_offsets, parse_symmetry(input_symmetry, kAttentionPlan)},
      {output_tuples, output_offsets, node_offsets,
       parse_symmetry(output_symmetry, kAttentionPlan)},
      {parse_attention_form(form, kAttentionPlan),
       {parse_attention_keys(keys, kAttentionPlan), global},
       input_loops,
       output_loops});
  return {std::move(plan.tensors), std::move(plan.parts)};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "equivariant_attention_classes(int input_order, int output_order, str "
      "input_symmetry=\"ordered\", str output_symmetry=\"ordered\", bool input_loops=True, bool "
      "output_loops=True, str keys=\"paper\", bool global_classes=True) -> (Tensor classes, int[] "
      "query_weights, int[] key_weights)",
      &flat_classes);
  m.def(
      "equivariant_attention_plan(Tensor input_tuples, Tensor input_offsets, Tensor output_tuples, "
      "Tensor output_offsets, Tensor node_offsets, str input_symmetry=\"ordered\", str "
      "output_symmetry=\"ordered\", bool input_loops=True, bool output_loops=True, str "
      "form=\"softmax\", str keys=\"paper\", bool global_classes=True) -> (Tensor[] tensors, int[] "
      "parts)");
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("orthogonal_directions(int dim, int features, *, Generator? generator=None) -> Tensor",
        [](int64_t dim, int64_t features, const std::optional<at::Generator>& generator) {
          return orthogonal_directions(dim, features, generator, at::kDouble);
        });
}

// For every device, because the checks of the lists reject tensors that are not on the CPU.
TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("equivariant_attention_plan", TORCH_FN(flat_plan));
}

}  // namespace
}  // namespace equivariant

std::vector<EquivariantAttentionClass> equivariant_attention_classes(
    const TensorKind& input, const TensorKind& output, const AttentionClassOptions& options) {
  std::vector<EquivariantAttentionClass> classes;
  const auto light = equivariant::light_classes(input, output);
  for (auto& each : equivariant::attention_classes(input, output, options, light)) {
    const int64_t queries = std::ssize(each.query_maps), keys = std::ssize(each.key_maps);
    classes.push_back({std::move(each.own), queries, keys});
  }
  return classes;
}

EquivariantAttentionPlan equivariant_attention_plan(
    const TupleBatch& input, const TupleBatch& output,
    const EquivariantAttentionPlanOptions& options) {
  using namespace equivariant;
  const graph::CheckedBatch own_input(input, kAttentionPlan), own_output(output, kAttentionPlan);
  check_same_nodes(input, output, kAttentionPlan);
  EquivariantAttentionPlan plan{{input.order(), input.symmetry, options.input_loops},
                                {output.order(), output.symmetry, options.output_loops},
                                options.form,
                                options.classes,
                                input.size(),
                                output.size()};
  check_loops(own_input.view(), plan.input, "input", kAttentionPlan);
  check_loops(own_output.view(), plan.output, "output", kAttentionPlan);
  const auto light = light_classes(plan.input, plan.output);
  const auto classes = attention_classes(plan.input, plan.output, options.classes, light);
  plan.class_count = std::ssize(classes);
  for (const AttentionClass& each : classes) {
    plan.query_weights += std::ssize(each.query_maps);
    plan.key_weights += std::ssize(each.key_maps);
  }
  try {
    std::tie(plan.tensors, plan.parts) = flatten(make_attention_plan(
        own_input.view(), own_output.view(), plan.input, plan.output, classes, light,
        /*tables=*/options.form == AttentionForm::kernel));
  } catch (const std::length_error& error) {
    C10_THROW_ERROR(ValueError, c10::str("[equivariant_attention_plan] ", error.what()));
  }
  return plan;
}

EquivariantAttentionPlan EquivariantAttentionPlan::to(at::Device device) const {
  EquivariantAttentionPlan moved = *this;
  for (at::Tensor& tensor : moved.tensors) tensor = tensor.to(device);
  return moved;
}

at::Tensor orthogonal_directions(int64_t dim, int64_t features,
                                 const std::optional<at::Generator>& generator,
                                 const at::TensorOptions& options) {
  as_function("orthogonal_directions", [&] {
    require_at_least("dim", 1, dim);
    require_at_least("features", 1, features);
    require_room("dim", {dim, std::max(dim, features)});
  });
  const auto wide = options.dtype(at::kDouble);
  std::vector<at::Tensor> blocks;
  for (int64_t made = 0; made < features; made += dim) {
    const auto [q, r] = at::linalg_qr(at::randn({dim, dim}, generator, wide));
    // The signs make the matrix uniformly distributed.
    const at::Tensor own = q * at::diagonal(r).sign();
    blocks.push_back(own.narrow(1, 0, std::min(dim, features - made)));
  }
  const at::Tensor lengths = at::randn({dim, features}, generator, wide).norm(2, 0);
  return (at::cat(blocks, 1) * lengths)
      .to(options.has_dtype() ? options.dtype().toScalarType() : at::kFloat);
}

}  // namespace nsimplex
