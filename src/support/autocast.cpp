// The dtype in which every operator computes under torch.autocast. One kernel above all operators
// casts the arguments, and autocast is off below it. Without a line here, an operator would be
// computed by products that autocast narrows one by one, and would meet tensors of two dtypes.

#include "support/autocast.h"

#include <torch/library.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace nsimplex {
namespace {

using at::Tensor;

enum class Rule {
  narrow,    // multiplied in autocast's dtype, like torch's own products
  wide,      // in float32: sums over many terms, losses, and choices, which 16 bits would change
  as_given,  // in the dtype of the arguments
};

constexpr std::string_view kMultiplied[] = {"query", "keys", "values", "reducer_weights"};

constexpr const char* kNarrow[] = {
    "attention",      "attention_reference", "attention_weights",
    "face_attention", "sparse_attention",    "sparse_attention_reference",
};

constexpr const char* kWide[] = {
    "collapse_bound",
    "composite_norm",
    "depth_bound",
    "dirichlet_energy",
    "effective_rank",
    "elu_features",
    "equivariant_attention",
    "equivariant_attention_reference",
    "equivariant_linear",
    "equivariant_linear_sparse",
    "equivariant_sums",
    "feature_map",
    "indexer_loss",
    "indexer_loss_gradients",
    "mean_cosine",
    "mean_residual",
    "minimal_residual",
    "retained_mass",
    "separable_attention",
    "separable_attention_reference",
    "topk_keys",
    "topk_keys_reference",
    "topk_tuples",
};

constexpr const char* kAsGiven[] = {
    "attention_backward",
    "attention_workspace",
    "ball_points",
    "ball_tangents",
    "causal_angles",
    "causal_baselines",
    "causal_edge_curves",
    "causal_edge_samples",
    "causal_embed",
    "causal_embedding_warning",
    "causal_few_rows",
    "causal_fit",
    "causal_fit_rows",
    "causal_limits",
    "causal_linear_model",
    "causal_metrics",
    "causal_orient_by_noise",
    "causal_pipeline_write",
    "causal_ranking",
    "causal_screen_columns",
    "causal_simulate",
    "causal_sortability",
    "causal_usable_table",
    "causal_variance_order",
    "equivariant_attention_backward",
    "equivariant_attention_plan",
    "equivariant_linear_sparse_backward",
    "equivariant_plan",
    "equivariant_sums_backward",
    "graph_adjacency",
    "graph_all_orders",
    "graph_chains",
    "graph_check",
    "graph_check_features",
    "graph_complete",
    "graph_component_cliques",
    "graph_components",
    "graph_concatenate",
    "graph_delaunay",
    "graph_derived_features",
    "graph_edge_curvatures",
    "graph_edges",
    "graph_label_cliques",
    "graph_laplacian",
    "graph_line",
    "graph_node_and_edge_features",
    "graph_project",
    "graph_simplices",
    "graph_split",
    "graph_with_loops",
    "hyperbolic_distances",
    "hyperboloid_points",
    "hyperedge_list",
    "mask_distances",
    "mask_extent",
    "merge_attention",
    "neighbours",
    "neighbours_csr",
    "path_list",
    "product_list",
    "random_directions",
    "rotary",
    "separable_attention_backward",
    "sparse_attention_backward",
    "sparse_attention_reference_backward",
};

// Float64 stays unchanged, and so do tensors that are not floating.
c10::IValue cast(const c10::IValue& value, at::ScalarType type, c10::DeviceType device) {
  if (value.isTensor()) return at::autocast::cached_cast(type, value.toTensor(), device);
  if (!value.isTensorList()) return value;
  const std::vector<Tensor> list = value.toTensorVector();
  return at::autocast::cached_cast(type, at::TensorList(list), device);
}

template <Rule rule, c10::DeviceType device>
void cast_and_call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const NoAutocast below(device);
  const auto& arguments = op.schema().arguments();
  const size_t first = stack->size() - arguments.size();
  for (size_t i = 0; rule != Rule::as_given && i < arguments.size(); ++i) {
    const bool multiplied =
        std::ranges::find(kMultiplied, arguments[i].name()) != std::ranges::end(kMultiplied);
    if (rule == Rule::narrow && !multiplied) continue;
    c10::IValue& value = (*stack)[first + i];
    value =
        cast(value, rule == Rule::narrow ? at::autocast::get_autocast_dtype(device) : at::kFloat,
             device);
  }
  op.callBoxed(stack);
}

template <c10::DeviceType device>
void register_rules(torch::Library& library) {
  const auto add = [&]<Rule rule>(std::integral_constant<Rule, rule>, const auto& names) {
    for (const char* name : names) {
      library.impl(name, torch::CppFunction::makeFromBoxedFunction<&cast_and_call<rule, device>>());
    }
  };
  add(std::integral_constant<Rule, Rule::narrow>(), kNarrow);
  add(std::integral_constant<Rule, Rule::wide>(), kWide);
  add(std::integral_constant<Rule, Rule::as_given>(), kAsGiven);
}

TORCH_LIBRARY_IMPL(nsimplex, AutocastCPU, m) { register_rules<c10::DeviceType::CPU>(m); }
TORCH_LIBRARY_IMPL(nsimplex, AutocastCUDA, m) { register_rules<c10::DeviceType::CUDA>(m); }

}  // namespace
}  // namespace nsimplex
