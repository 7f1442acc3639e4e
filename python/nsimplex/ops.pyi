"""The operators under their registered names, written by tools/operator_stubs.py."""

from collections.abc import Sequence

import torch
from torch import Tensor

def attention(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], *, causal: bool = False,
    window: Sequence[int] | None = None, form: str = 'product', reduce: str = 'product',
    normalizer: str = 'softmax', logit_scale: float | None = None,
    output_scale: float | None = None, key_lengths: Tensor | None = None,
    key_masks: Sequence[Tensor] | None = None, cu_seqlens: Tensor | None = None,
    mask: Tensor | None = None, sink: Tensor | None = None, distinct: str = 'none',
    augment: Sequence[int] | None = None, dropout_p: float = 0.0, seed: int | None = None,
    query_positions: Tensor | None = None, order_bias: Tensor | None = None,
    softcap: float | None = None, alibi_slopes: Tensor | None = None,
    pair_masks: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...

def attention_backward(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], out: Tensor, lse: Tensor,
    grad_out: Tensor, grad_lse: Tensor | None, output_mask: Sequence[bool], *, causal: bool = False,
    window: Sequence[int] | None = None, form: str = 'product', reduce: str = 'product',
    normalizer: str = 'softmax', logit_scale: float | None = None,
    output_scale: float | None = None, key_lengths: Tensor | None = None,
    key_masks: Sequence[Tensor] | None = None, cu_seqlens: Tensor | None = None,
    mask: Tensor | None = None, sink: Tensor | None = None, distinct: str = 'none',
    augment: Sequence[int] | None = None, dropout_p: float = 0.0, seed: int | None = None,
    query_positions: Tensor | None = None, order_bias: Tensor | None = None,
    softcap: float | None = None, alibi_slopes: Tensor | None = None,
    pair_masks: Sequence[Tensor] | None = None,
) -> tuple[Tensor, list[Tensor], list[Tensor], Tensor, Tensor]: ...

def attention_pair_masks_backward(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], out: Tensor, lse: Tensor,
    grad_out: Tensor, grad_lse: Tensor | None, output_mask: Sequence[bool], *, causal: bool = False,
    window: Sequence[int] | None = None, form: str = 'product', reduce: str = 'product',
    normalizer: str = 'softmax', logit_scale: float | None = None,
    output_scale: float | None = None, key_lengths: Tensor | None = None,
    key_masks: Sequence[Tensor] | None = None, cu_seqlens: Tensor | None = None,
    mask: Tensor | None = None, sink: Tensor | None = None, distinct: str = 'none',
    augment: Sequence[int] | None = None, dropout_p: float = 0.0, seed: int | None = None,
    query_positions: Tensor | None = None, order_bias: Tensor | None = None,
    softcap: float | None = None, alibi_slopes: Tensor | None = None,
    pair_masks: Sequence[Tensor] | None = None,
) -> list[Tensor]: ...

def attention_reference(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], *, causal: bool = False,
    window: Sequence[int] | None = None, form: str = 'product', reduce: str = 'product',
    normalizer: str = 'softmax', logit_scale: float | None = None,
    output_scale: float | None = None, key_lengths: Tensor | None = None,
    key_masks: Sequence[Tensor] | None = None, cu_seqlens: Tensor | None = None,
    mask: Tensor | None = None, sink: Tensor | None = None, distinct: str = 'none',
    augment: Sequence[int] | None = None, dropout_p: float = 0.0, seed: int | None = None,
    query_positions: Tensor | None = None, order_bias: Tensor | None = None,
    softcap: float | None = None, alibi_slopes: Tensor | None = None,
    pair_masks: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...

def attention_tuples(
    queries: int, lengths: Sequence[int], *, causal: bool = False,
    window: Sequence[int] | None = None,
) -> float: ...

def attention_weights(
    query: Tensor, keys: Sequence[Tensor], *, causal: bool = False,
    window: Sequence[int] | None = None, form: str = 'product', reduce: str = 'product',
    normalizer: str = 'softmax', logit_scale: float | None = None,
    output_scale: float | None = None, key_lengths: Tensor | None = None,
    key_masks: Sequence[Tensor] | None = None, cu_seqlens: Tensor | None = None,
    mask: Tensor | None = None, sink: Tensor | None = None, distinct: str = 'none',
    augment: Sequence[int] | None = None, dropout_p: float = 0.0, seed: int | None = None,
    query_positions: Tensor | None = None, order_bias: Tensor | None = None,
    softcap: float | None = None, alibi_slopes: Tensor | None = None,
    pair_masks: Sequence[Tensor] | None = None,
) -> Tensor: ...

def attention_workspace(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], *, causal: bool = False,
    window: Sequence[int] | None = None, form: str = 'product', reduce: str = 'product',
    normalizer: str = 'softmax', logit_scale: float | None = None,
    output_scale: float | None = None, key_lengths: Tensor | None = None,
    key_masks: Sequence[Tensor] | None = None, cu_seqlens: Tensor | None = None,
    mask: Tensor | None = None, sink: Tensor | None = None, distinct: str = 'none',
    augment: Sequence[int] | None = None, dropout_p: float = 0.0, seed: int | None = None,
    query_positions: Tensor | None = None, order_bias: Tensor | None = None,
    softcap: float | None = None, alibi_slopes: Tensor | None = None,
    pair_masks: Sequence[Tensor] | None = None,
) -> tuple[int, int]: ...

def ball_points(tangents: Tensor) -> Tensor: ...

def ball_tangents(ball: Tensor) -> Tensor: ...

def causal_angles(
    ball: Tensor, heads: int, scale: float, by_dimension: bool, head_scale: Tensor | None,
    leading: int,
) -> Tensor: ...

def causal_baselines(table: Tensor) -> list[Tensor]: ...

def causal_check_graph(
    table: Tensor, graph: Tensor, learned: Tensor | None, names: Sequence[str], level: float,
    permutations: int, seed: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, list[int], list[float], Tensor, Tensor, list[str]]: ...

def causal_counterfactual(
    coefficients: Tensor, intercepts: Tensor, table: Tensor, columns: Sequence[int],
    values: Sequence[float],
) -> Tensor: ...

def causal_edge_curves(scores: Tensor, truth: Tensor) -> tuple[float, float]: ...

def causal_edge_samples(
    table: Tensor, estimator: str, nonlinear: bool, standardise: bool, threshold: float | None,
    sparsity: float | None, rank: int, sample: bool, seed: int, forbidden: Tensor, required: Tensor,
    tiers: Sequence[int], exogenous: Sequence[int], sinks: Sequence[int], paths: Tensor,
    groups: Sequence[int], targets: Tensor | None, soft: bool, kinds: Sequence[str], missing: str,
    orient_by_noise: bool, graph: Tensor, resampling: str, first: int, count: int,
    blocks: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...

def causal_effect(
    table: Tensor, graph: Tensor, cause: int, effect: int, level: float, samples: Sequence[Tensor],
) -> tuple[list[float], Tensor, Tensor, Tensor]: ...

def causal_embed(
    adjacency: Tensor, dimension: int, optimiser: str, steps: int, learning_rate: float | None,
    hops: int | None, side: str | None, weight: str, decay: float, negatives: int | None,
    generality: float, relative: bool, restart: float, dangling: str, seed: int,
    balanced: bool = True,
) -> tuple[Tensor, Tensor, float, int, str, int, float]: ...

def causal_embedding_warning(tangents: Tensor, adjacency: Tensor | None = None) -> str: ...

def causal_few_rows(table: Tensor, names: Sequence[str]) -> str: ...

def causal_fit_rows(
    table: Tensor, estimator: str, nonlinear: bool, standardise: bool, threshold: float | None,
    sparsity: float | None, rank: int, sample: bool, seed: int, forbidden: Tensor, required: Tensor,
    tiers: Sequence[int], exogenous: Sequence[int], sinks: Sequence[int], paths: Tensor,
    groups: Sequence[int], targets: Tensor | None, soft: bool, kinds: Sequence[str], missing: str,
    orient_by_noise: bool, watch: Tensor | None = None, names: Sequence[str] | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, str, Tensor, Tensor, float, float, str, bool, bool, bool, list[str], list[str], float]: ...

def causal_graph_text(
    weights: Tensor, open: Tensor | None, names: Sequence[str], format: str,
) -> str: ...

def causal_limits(
    table: Tensor, graph: Tensor, names: Sequence[str], level: float,
) -> tuple[float, Tensor, Tensor, float, list[int], Tensor, Tensor, list[str]]: ...

def causal_linear_model(
    table: Tensor, graph: Tensor, groups: Sequence[int], targets: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]: ...

def causal_metrics(graph: Tensor, truth: Tensor) -> tuple[list[int], list[float]]: ...

def causal_orient_by_noise(
    table: Tensor, graph: Tensor, level: float, forbidden: Tensor, required: Tensor,
    tiers: Sequence[int], exogenous: Sequence[int], sinks: Sequence[int], paths: Tensor,
) -> tuple[Tensor, Tensor, float, float, str, bool]: ...

def causal_pipeline_read(path: str) -> tuple[str, list[str], list[Tensor]]: ...

def causal_pipeline_write(
    path: str, text: str, names: Sequence[str], tensors: Sequence[Tensor],
) -> None: ...

def causal_ranking(tangents: Tensor, adjacency: Tensor) -> tuple[float, float, int]: ...

def causal_read_columns(
    path: str, beside: Sequence[str], skip: Sequence[str], words: Sequence[str],
    numbers: Sequence[int], only: Sequence[str],
) -> tuple[Tensor, list[str], list[str], list[int], list[str], list[str], str]: ...

def causal_refused_by_noise(
    nonlinear: bool, groups: bool, targets: bool, kinds: bool, likelihood: bool,
) -> tuple[str, str, str]: ...

def causal_sample_model(
    coefficients: Tensor, intercepts: Tensor, variances: Tensor, rows: int, columns: Sequence[int],
    values: Sequence[float], seed: int,
) -> Tensor: ...

def causal_screen_columns(table: Tensor, screen: int, by: str) -> Tensor: ...

def causal_simulate(
    dag: Tensor | None, graph: str, nodes: int, degree: int, observations: int, mechanism: str,
    noise: str, equal_variances: bool, weight_low: float, weight_high: float, seed: int,
    sample_seed: int, features: Sequence[int], values: Sequence[float],
) -> tuple[Tensor, Tensor]: ...

def causal_sortability(table: Tensor, graph: Tensor) -> tuple[float, float]: ...

def causal_usable_table(
    table: Tensor, names: Sequence[str], missing: str, drop: bool,
) -> tuple[Tensor, list[int], list[str], list[int]]: ...

def causal_variance_order(table: Tensor, graph: Tensor) -> tuple[float, int, int, str]: ...

def causal_warnings(
    table: Tensor, estimator: str, nonlinear: bool, standardise: bool, threshold: float | None,
    sparsity: float | None, rank: int, sample: bool, seed: int, forbidden: Tensor, required: Tensor,
    tiers: Sequence[int], exogenous: Sequence[int], sinks: Sequence[int], paths: Tensor,
    groups: Sequence[int], targets: Tensor | None, soft: bool, kinds: Sequence[str], missing: str,
    orient_by_noise: bool, graph: Tensor, model: str, names: Sequence[str],
) -> list[str]: ...

def collapse_bound(
    keys: Sequence[Tensor], values: Sequence[Tensor], tokens: Tensor, output: Tensor | None = None,
) -> tuple[float, float, float, float, float, float, float]: ...

def composite_norm(tokens: Tensor) -> Tensor: ...

def depth_bound(
    keys: Sequence[Tensor], values: Sequence[Tensor], outputs: Sequence[Tensor | None],
    tokens: Tensor, heads: Sequence[int], key_counts: Sequence[int], value_counts: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, float, float, float]: ...

def dirichlet_energy(tokens: Tensor) -> Tensor: ...

def effective_rank(tokens: Tensor) -> Tensor: ...

def elu_features(x: Tensor, scale: float = 1.0) -> Tensor: ...

def equivariant_attention(
    x: Tensor, query: Tensor, query_bias: Tensor, key: Tensor, key_bias: Tensor, value: Tensor,
    output: Tensor, directions: Tensor | None, plan: Sequence[Tensor], parts: Sequence[int],
    heads: int, form: str = 'softmax', normalise: bool = True, features: str = 'relu',
) -> Tensor: ...

def equivariant_attention_backward(
    grad_out: Tensor, x: Tensor, query: Tensor, query_bias: Tensor, key: Tensor, key_bias: Tensor,
    value: Tensor, output: Tensor, directions: Tensor | None, plan: Sequence[Tensor],
    parts: Sequence[int], heads: int, form: str = 'softmax', normalise: bool = True,
    features: str = 'relu',
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]: ...

def equivariant_attention_classes(
    input_order: int, output_order: int, input_symmetry: str = 'ordered',
    output_symmetry: str = 'ordered', input_loops: bool = True, output_loops: bool = True,
    keys: str = 'paper', global_classes: bool = True,
) -> tuple[Tensor, list[int], list[int]]: ...

def equivariant_attention_plan(
    input_tuples: Tensor, input_offsets: Tensor, output_tuples: Tensor, output_offsets: Tensor,
    node_offsets: Tensor, input_symmetry: str = 'ordered', output_symmetry: str = 'ordered',
    input_loops: bool = True, output_loops: bool = True, form: str = 'softmax', keys: str = 'paper',
    global_classes: bool = True,
) -> tuple[list[Tensor], list[int]]: ...

def equivariant_attention_reference(
    x: Tensor, query: Tensor, query_bias: Tensor, key: Tensor, key_bias: Tensor, value: Tensor,
    output: Tensor, directions: Tensor | None, plan: Sequence[Tensor], parts: Sequence[int],
    heads: int, form: str = 'softmax', normalise: bool = True, features: str = 'relu',
) -> Tensor: ...

def equivariant_class_names(
    input_order: int, output_order: int, input_symmetry: str = 'ordered',
    output_symmetry: str = 'ordered', input_loops: bool = True, output_loops: bool = True,
    classes: str = 'all',
) -> list[str]: ...

def equivariant_classes(
    input_order: int, output_order: int, input_symmetry: str = 'ordered',
    output_symmetry: str = 'ordered', input_loops: bool = True, output_loops: bool = True,
    classes: str = 'all',
) -> Tensor: ...

def equivariant_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, input_order: int, output_order: int,
    input_symmetry: str = 'ordered', output_symmetry: str = 'ordered', input_loops: bool = True,
    output_loops: bool = True, classes: str = 'all', pooling: str = 'mean',
    node_counts: Tensor | None = None, nodes: int | None = None,
) -> Tensor: ...

def equivariant_linear_sparse(
    x: Tensor, weight: Tensor, bias: Tensor | None, plan: Sequence[Tensor], parts: Sequence[int],
    pooling: str = 'mean',
) -> Tensor: ...

def equivariant_linear_sparse_backward(
    grad: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None, plan: Sequence[Tensor],
    parts: Sequence[int], pooling: str, output_mask: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor]: ...

def equivariant_plan(
    input_tuples: Tensor, input_offsets: Tensor, output_tuples: Tensor, output_offsets: Tensor,
    node_offsets: Tensor, input_symmetry: str = 'ordered', output_symmetry: str = 'ordered',
    input_loops: bool = True, output_loops: bool = True, classes: str = 'all',
) -> tuple[list[Tensor], list[int]]: ...

def equivariant_sums(
    x: Tensor, plan: Sequence[Tensor], parts: Sequence[int], mean: bool,
) -> Tensor: ...

def equivariant_sums_backward(
    grad: Tensor, plan: Sequence[Tensor], parts: Sequence[int], mean: bool,
) -> Tensor: ...

def face_attention(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], *, causal: bool = False,
    window: Sequence[int] | None = None, form: str = 'product', reduce: str = 'product',
    normalizer: str = 'softmax', logit_scale: float | None = None,
    output_scale: float | None = None, key_lengths: Tensor | None = None,
    key_masks: Sequence[Tensor] | None = None, cu_seqlens: Tensor | None = None,
    mask: Tensor | None = None, sink: Tensor | None = None, distinct: str = 'none',
    augment: Sequence[int] | None = None, dropout_p: float = 0.0, seed: int | None = None,
    query_positions: Tensor | None = None, order_bias: Tensor | None = None,
    softcap: float | None = None, alibi_slopes: Tensor | None = None,
    pair_masks: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...

def feature_map(
    x: Tensor, kind: str = 'elu', *, features: int = 0, seed: int = 0, orthogonal: bool = False,
    scale: float | None = None,
) -> Tensor: ...

def graph_adjacency(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str,
) -> tuple[Tensor, Tensor]: ...

def graph_all_orders(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...

def graph_barabasi_albert(nodes: int, links: int, seed: int) -> tuple[Tensor, Tensor, Tensor]: ...

def graph_chains(nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]: ...

def graph_check(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str,
) -> tuple[Tensor, Tensor, Tensor]: ...

def graph_check_features(tuples: Tensor, features: Tensor, name: str) -> None: ...

def graph_complete(
    nodes: Tensor, order: int, symmetry: str, loops: bool,
) -> tuple[Tensor, Tensor, Tensor]: ...

def graph_component_cliques(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str,
) -> tuple[Tensor, Tensor, Tensor]: ...

def graph_components(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str,
) -> Tensor: ...

def graph_concatenate(
    batches: Sequence[Tensor], symmetry: str,
) -> tuple[Tensor, Tensor, Tensor]: ...

def graph_delaunay(
    points: Tensor, node_offsets: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]: ...

def graph_derived_features(features: Tensor, origin: Tensor) -> Tensor: ...

def graph_edge_curvatures(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str,
) -> tuple[Tensor, Tensor, Tensor]: ...

def graph_edges(
    edges: Tensor, nodes: int, symmetry: str, both_directions: bool, loops: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...

def graph_label_cliques(labels: Tensor, node_offsets: Tensor) -> tuple[Tensor, Tensor, Tensor]: ...

def graph_laplacian(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str, count: int,
) -> tuple[Tensor, Tensor]: ...

def graph_line(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...

def graph_node_and_edge_features(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, origin: Tensor,
    node_features: Tensor, edge_features: Tensor,
) -> Tensor: ...

def graph_point_sets(sets: int, least: int, most: int, seed: int) -> tuple[Tensor, Tensor]: ...

def graph_project(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str, order: int, to: str,
    all_nodes: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...

def graph_simplices(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str, largest: int,
) -> list[Tensor]: ...

def graph_split(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str,
) -> list[Tensor]: ...

def graph_with_loops(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...

def hyperbolic_distances(tangents: Tensor) -> Tensor: ...

def hyperboloid_points(tangents: Tensor) -> Tensor: ...

def hyperedge_list(
    hyperedges: Tensor, nodes: int, *, permute: bool = True,
) -> tuple[Tensor, Tensor]: ...

def indexer_loss(
    query_index: Tensor, key_index: Tensor, query: Tensor, keys: Sequence[Tensor], *,
    weights: Tensor | None = None, lse: Tensor | None = None, indices: Tensor | None = None,
    scores: str = 'relu', causal: bool = False, scale: float | None = None,
    pattern: str = 'product', form: str = 'product', logit_scale: float | None = None,
) -> Tensor: ...

def indexer_loss_gradients(
    query_index: Tensor, key_index: Tensor, query: Tensor, keys: Sequence[Tensor], *,
    weights: Tensor | None = None, lse: Tensor | None = None, indices: Tensor | None = None,
    scores: str = 'relu', causal: bool = False, scale: float | None = None,
    pattern: str = 'product', form: str = 'product', logit_scale: float | None = None,
    output_mask: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...

def lipschitz_bound(
    order: int, tokens: int, head_dim: int, radius: float, key_norm: float, value_norm: float,
    form: str, output_scale: float,
) -> float: ...

def mask_distances(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str,
) -> Tensor: ...

def mask_extent(
    tuples: Tensor, tuple_offsets: Tensor, node_offsets: Tensor, symmetry: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...

def mean_cosine(tokens: Tensor) -> Tensor: ...

def mean_residual(tokens: Tensor) -> Tensor: ...

def merge_attention(outs: Sequence[Tensor], lses: Sequence[Tensor]) -> tuple[Tensor, Tensor]: ...

def minimal_residual(tokens: Tensor, tolerance: float) -> tuple[Tensor, Tensor, Tensor]: ...

def neighbours(adjacency: Tensor, *, self_loops: bool = True) -> Tensor: ...

def neighbours_csr(
    crow: Tensor, col: Tensor, columns: int, *, self_loops: bool = True,
) -> Tensor: ...

def orthogonal_directions(
    dim: int, features: int, *, generator: torch.Generator | None = None,
) -> Tensor: ...

def pair_lipschitz_bound(
    tokens: int, radius: float, form_norm: float, value_norm: float,
) -> float: ...

def path_list(table: Tensor, order: int, queries: int = -1) -> tuple[Tensor, Tensor]: ...

def product_list(table: Tensor, order: int) -> tuple[Tensor, Tensor]: ...

def random_directions(x: Tensor, features: int, seed: int, orthogonal: bool) -> Tensor: ...

def read_edges(
    path: str, header: bool | None = None, index: bool | None = None, delimiter: str = '',
    comment: str | None = None,
) -> tuple[Tensor, Tensor, list[str], int, str]: ...

def read_graphs(path: str) -> tuple[Tensor, Tensor, Tensor]: ...

def read_table(
    path: str, header: bool | None, allow_missing: bool, key: str, index: bool | None,
    delimiter: str, comment: str | None, missing_words: Sequence[str], use: Sequence[str],
    leave_out: Sequence[str],
) -> tuple[Tensor, list[str], list[str], str]: ...

def read_tuples(
    path: str, key: str, width: int, header: bool | None = None, index: bool | None = None,
    delimiter: str = '', comment: str | None = None,
) -> tuple[Tensor, int, Tensor, str]: ...

def retained_mass(sparse_lse: Tensor, dense_lse: Tensor) -> Tensor: ...

def rotary(
    x: Tensor, *, chunk: int = 2, base: float = 10000.0, offset: int = 0,
    positions: Tensor | None = None, angles: Tensor | None = None, inverse: bool = False,
) -> Tensor: ...

def sensitivity_bounds(
    order: int, head_dim: int, value_dim: int, logit_scale: float, output_scale: float,
    input_rms: Sequence[float],
) -> list[float]: ...

def separable_attention(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], *, causal: bool = False,
    window: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor]: ...

def separable_attention_backward(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], out: Tensor,
    normalizer: Tensor, grad_out: Tensor, grad_normalizer: Tensor | None, *, causal: bool = False,
    window: Sequence[int] | None = None,
) -> tuple[Tensor, list[Tensor], list[Tensor]]: ...

def separable_attention_reference(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], *, causal: bool = False,
    window: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor]: ...

def sharpness_bounds(
    order: int, head_dim: int, value_dim: int, logit_scale: float, output_scale: float,
    input_rms: Sequence[float],
) -> list[float]: ...

def sparse_attention(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], indices: Tensor,
    offsets: Tensor | None = None, *, pattern: str = 'list', form: str = 'product',
    reduce: str = 'product', reducer_weights: Sequence[Tensor] | None = None,
    logit_scale: float | None = None, output_scale: float | None = None,
) -> tuple[Tensor, Tensor]: ...

def sparse_attention_backward(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], indices: Tensor,
    offsets: Tensor | None, out: Tensor, lse: Tensor, grad_out: Tensor, grad_lse: Tensor | None,
    output_mask: Sequence[bool], *, pattern: str = 'list', form: str = 'product',
    reduce: str = 'product', reducer_weights: Sequence[Tensor] | None = None,
    logit_scale: float | None = None, output_scale: float | None = None,
) -> tuple[Tensor, list[Tensor], list[Tensor], list[Tensor]]: ...

def sparse_attention_reference(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], indices: Tensor,
    offsets: Tensor | None = None, *, pattern: str = 'list', form: str = 'product',
    reduce: str = 'product', reducer_weights: Sequence[Tensor] | None = None,
    logit_scale: float | None = None, output_scale: float | None = None,
) -> tuple[Tensor, Tensor]: ...

def sparse_attention_reference_backward(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], indices: Tensor,
    offsets: Tensor | None, out: Tensor, lse: Tensor, grad_out: Tensor, grad_lse: Tensor | None,
    output_mask: Sequence[bool], *, pattern: str = 'list', form: str = 'product',
    reduce: str = 'product', reducer_weights: Sequence[Tensor] | None = None,
    logit_scale: float | None = None, output_scale: float | None = None,
) -> tuple[Tensor, list[Tensor], list[Tensor], list[Tensor]]: ...

def topk_keys(
    query: Tensor, key: Tensor, k: int, *, weights: Tensor | None = None, scores: str = 'relu',
    causal: bool = False, scale: float | None = None, lse: Tensor | None = None,
    key_lengths: Tensor | None = None, adjacency: Tensor | None = None,
    candidates: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...

def topk_keys_reference(
    query: Tensor, key: Tensor, k: int, *, weights: Tensor | None = None, scores: str = 'relu',
    causal: bool = False, scale: float | None = None, lse: Tensor | None = None,
    key_lengths: Tensor | None = None, adjacency: Tensor | None = None,
    candidates: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...

def topk_tuples(
    query: Tensor, keys: Sequence[Tensor], count: int, *, weights: Tensor | None = None,
    causal: bool = False, window: Sequence[int] | None = None, form: str = 'product',
    reduce: str = 'product', normalizer: str = 'softmax', logit_scale: float | None = None,
    output_scale: float | None = None, key_lengths: Tensor | None = None,
    key_masks: Sequence[Tensor] | None = None, cu_seqlens: Tensor | None = None,
    mask: Tensor | None = None, sink: Tensor | None = None, distinct: str = 'none',
    augment: Sequence[int] | None = None, dropout_p: float = 0.0, seed: int | None = None,
    query_positions: Tensor | None = None, order_bias: Tensor | None = None,
    softcap: float | None = None, alibi_slopes: Tensor | None = None,
    pair_masks: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...

def weight_bounds(
    order: int, tuples: int, radius: float, key_norm: float, scale: float,
) -> tuple[float, float, float]: ...
