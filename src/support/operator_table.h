// One row per operator: its dtype under autocast, and how autograd and vmap treat it.

#pragma once

// What every operator that takes tensors does above its computation. A new operator has a line
// here; the tests fail without one.

namespace nsimplex {

/// The dtype in which an operator computes under torch.autocast (autocast.cpp).
enum class Cast {
  narrow,    ///< multiplied in autocast's dtype, like torch's own products
  wide,      ///< in float32: sums over many terms, losses, and choices, which 16 bits would change
  as_given,  ///< in the dtype of the arguments
};

/// How an operator is differentiated (operator_rules.cpp).
enum class Recorded {
  own,        ///< by its own autograd kernel
  composite,  ///< it consists of ATen calls, which are recorded
  whole,      ///< as composite where a derivative is asked for, and otherwise one call in a graph
  host,       ///< it reads numbers, and its results have no gradient
  constant,   ///< not at all: its results do not depend on the numbers of its arguments
};

/// How vmap maps an operator (operator_rules.cpp).
enum class Mapped {
  own,   ///< by its own kernel
  loop,  ///< one call after the other
};

struct OperatorRow {
  const char* name;
  Cast cast;
  Recorded recorded;
  Mapped mapped;
  bool takes_sparse = false;
};

// clang-format off
inline constexpr OperatorRow kOperators[] = {
    {"attention", Cast::narrow, Recorded::own, Mapped::own},
    {"attention_backward", Cast::as_given, Recorded::own, Mapped::own},
    {"attention_pair_masks_backward", Cast::as_given, Recorded::own, Mapped::own},
    {"attention_reference", Cast::narrow, Recorded::own, Mapped::own},
    {"attention_weights", Cast::narrow, Recorded::whole, Mapped::own},
    {"attention_workspace", Cast::as_given, Recorded::host, Mapped::loop},
    {"ball_points", Cast::as_given, Recorded::composite, Mapped::loop},
    {"ball_tangents", Cast::as_given, Recorded::composite, Mapped::loop},
    {"causal_angles", Cast::as_given, Recorded::composite, Mapped::loop},
    {"causal_baselines", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_check_graph", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_counterfactual", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_edge_curves", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_edge_samples", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_effect", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_embed", Cast::as_given, Recorded::host, Mapped::loop, true},
    {"causal_embedding_warning", Cast::as_given, Recorded::host, Mapped::loop, true},
    {"causal_few_rows", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_fit_rows", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_graph_text", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_limits", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_linear_model", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_metrics", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_orient_by_noise", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_pipeline_write", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_ranking", Cast::as_given, Recorded::host, Mapped::loop, true},
    {"causal_sample_model", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_screen_columns", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_simulate", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_sortability", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_usable_table", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_variance_order", Cast::as_given, Recorded::host, Mapped::loop},
    {"causal_warnings", Cast::as_given, Recorded::host, Mapped::loop},
    {"collapse_bound", Cast::wide, Recorded::host, Mapped::loop},
    {"composite_norm", Cast::wide, Recorded::composite, Mapped::loop},
    {"depth_bound", Cast::wide, Recorded::host, Mapped::loop},
    {"dirichlet_energy", Cast::wide, Recorded::composite, Mapped::loop},
    {"effective_rank", Cast::wide, Recorded::composite, Mapped::loop},
    {"elu_features", Cast::wide, Recorded::own, Mapped::own},
    {"equivariant_attention", Cast::wide, Recorded::own, Mapped::own},
    {"equivariant_attention_backward", Cast::as_given, Recorded::own, Mapped::own},
    {"equivariant_attention_plan", Cast::as_given, Recorded::host, Mapped::loop},
    {"equivariant_attention_reference", Cast::wide, Recorded::composite, Mapped::loop},
    {"equivariant_linear", Cast::wide, Recorded::composite, Mapped::loop},
    {"equivariant_linear_sparse", Cast::wide, Recorded::own, Mapped::own},
    {"equivariant_linear_sparse_backward", Cast::as_given, Recorded::own, Mapped::own},
    {"equivariant_plan", Cast::as_given, Recorded::host, Mapped::loop},
    {"equivariant_sums", Cast::wide, Recorded::own, Mapped::own},
    {"equivariant_sums_backward", Cast::as_given, Recorded::own, Mapped::own},
    {"face_attention", Cast::narrow, Recorded::whole, Mapped::own},
    {"feature_map", Cast::wide, Recorded::composite, Mapped::own},
    {"graph_adjacency", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_all_orders", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_chains", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_check", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_check_features", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_complete", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_component_cliques", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_components", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_concatenate", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_delaunay", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_derived_features", Cast::as_given, Recorded::composite, Mapped::loop},
    {"graph_edge_curvatures", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_edges", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_label_cliques", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_laplacian", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_line", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_node_and_edge_features", Cast::as_given, Recorded::composite, Mapped::loop},
    {"graph_project", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_simplices", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_split", Cast::as_given, Recorded::host, Mapped::loop},
    {"graph_with_loops", Cast::as_given, Recorded::host, Mapped::loop},
    {"hyperbolic_distances", Cast::as_given, Recorded::composite, Mapped::loop},
    {"hyperboloid_points", Cast::as_given, Recorded::composite, Mapped::loop},
    {"hyperedge_list", Cast::as_given, Recorded::host, Mapped::loop},
    {"indexer_loss", Cast::wide, Recorded::own, Mapped::loop},
    {"indexer_loss_gradients", Cast::wide, Recorded::own, Mapped::loop},
    {"mask_distances", Cast::as_given, Recorded::host, Mapped::loop},
    {"mask_extent", Cast::as_given, Recorded::host, Mapped::loop},
    {"mean_cosine", Cast::wide, Recorded::composite, Mapped::loop},
    {"mean_residual", Cast::wide, Recorded::composite, Mapped::loop},
    {"merge_attention", Cast::as_given, Recorded::composite, Mapped::own},
    {"minimal_residual", Cast::wide, Recorded::host, Mapped::loop},
    {"neighbours", Cast::as_given, Recorded::host, Mapped::loop},
    {"neighbours_csr", Cast::as_given, Recorded::host, Mapped::loop},
    {"path_list", Cast::as_given, Recorded::host, Mapped::loop},
    {"product_list", Cast::as_given, Recorded::host, Mapped::loop},
    {"random_directions", Cast::as_given, Recorded::constant, Mapped::loop},
    {"retained_mass", Cast::wide, Recorded::composite, Mapped::loop},
    {"rotary", Cast::as_given, Recorded::own, Mapped::own},
    {"separable_attention", Cast::wide, Recorded::own, Mapped::own},
    {"separable_attention_backward", Cast::as_given, Recorded::own, Mapped::own},
    {"separable_attention_reference", Cast::wide, Recorded::own, Mapped::own},
    {"sparse_attention", Cast::narrow, Recorded::own, Mapped::own},
    {"sparse_attention_backward", Cast::as_given, Recorded::own, Mapped::own},
    {"sparse_attention_reference", Cast::narrow, Recorded::own, Mapped::own},
    {"sparse_attention_reference_backward", Cast::as_given, Recorded::own, Mapped::own},
    {"topk_keys", Cast::wide, Recorded::own, Mapped::loop},
    {"topk_keys_reference", Cast::wide, Recorded::own, Mapped::loop},
    {"topk_tuples", Cast::wide, Recorded::host, Mapped::loop},
};
// clang-format on

}  // namespace nsimplex
