"""One call of every operator: small tensors, float32 where they are floating."""

from __future__ import annotations

import torch

import nsimplex
from nsimplex.causal.structure import FitOptions, fit_arguments
from nsimplex.graph import edge_tuples, project_tuples

operators = torch.ops.nsimplex


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def heads(length=6, count=5, width=8, seed=0):
    """As many tensors [1, 2, length, width], one batch entry with two heads."""
    return list(draw(count, 1, 2, length, width, seed=seed))


# A path of four nodes and a triangle, with the loops of their nodes; pairs, nodes, and plans
# between them.
EDGES = edge_tuples(torch.tensor([[0, 1], [1, 2], [2, 3], [0, 2]]), 4, loops=True)
PAIRS, NODES = EDGES.batch, project_tuples(EDGES.batch, 1)
UNDIRECTED = edge_tuples(
    torch.tensor([[0, 1], [1, 2], [0, 2], [2, 3]]), 4, symmetry="undirected", loops=False
).batch
PLAN = nsimplex.equivariant_plan(PAIRS, NODES)
ATTENTION_PLAN = nsimplex.equivariant_attention_plan(PAIRS, NODES, form="kernel")
CLASSES = nsimplex.equivariant_attention_classes(2, 1)
TABLE = torch.tensor([[0, 1, 2], [1, 0, -1], [2, 3, 4], [3, 5, -1], [4, 5, 0], [5, 1, 2]])[None]
TRUTH = torch.tensor([[0.0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
WINDOW = {"causal": True, "window": [4, 0, 3, 0]}


def attention(**options):
    q, k1, k2, v1, v2 = heads()
    return (q, [k1, k2], [v1, v2]), options


def weights_of_pairs(**options):
    q, k1, k2, _, _ = heads()
    return (q, [k1, k2]), options


def attention_backward():
    (q, keys, values), options = attention(**WINDOW)
    out, lse = operators.attention(q, keys, values, **options)
    return (
        q,
        keys,
        values,
        out,
        lse,
        draw(*out.shape, seed=3),
        None,
        [True] * 5 + [False] * 2,
    ), options


def pair_masks_backward():
    (q, keys, values), options = attention(**WINDOW)
    masks = [draw(q.size(2), key.size(2), seed=m) for m, key in enumerate(keys)]
    options["pair_masks"] = masks
    out, lse = operators.attention(q, keys, values, **options)
    return (q, keys, values, out, lse, draw(*out.shape, seed=3), None, [True] * 2), options


def separable(**options):
    q, k1, k2, v1, v2 = heads()
    return (q.exp(), [k1.exp(), k2.exp()], [v1, v2]), options


def separable_backward():
    (q, keys, values), options = separable(**WINDOW)
    out, normalizer = operators.separable_attention(q, keys, values, **options)
    return (q, keys, values, out, normalizer, draw(*out.shape, seed=3), None), options


def sparse(**options):
    q, k1, k2, v1, v2 = heads()
    return (q, [k1, k2], [v1, v2], TABLE[:, None]), {"pattern": "product", **options}


def sparse_backward():
    (q, keys, values, table), options = sparse()
    out, lse = operators.sparse_attention(q, keys, values, table, **options)
    return (
        q,
        keys,
        values,
        table,
        None,
        out,
        lse,
        draw(*out.shape, seed=3),
        None,
        [True] * 5,
    ), options


def topk(**options):
    q, k, *_ = heads(width=6)
    return (q, k, 3), {
        "weights": draw(1, 2, 6, seed=5).abs(),
        "scores": "softmax",
        "causal": True,
        **options,
    }


def indexer_loss(**options):
    qi, ki, q, k1, k2 = heads()
    return (qi, ki, q, [k1, k2]), {
        "causal": True,
        "indices": TABLE,
        "weights": draw(1, 2, 6, seed=5).abs(),
        **options,
    }


def equivariant_attention(**options):
    count = len(CLASSES)
    x = draw(len(PAIRS), 3, seed=1)
    query = 0.3 * draw(sum(c.query_weights for c in CLASSES), 3, 4, seed=2)
    key = 0.3 * draw(sum(c.key_weights for c in CLASSES), 3, 4, seed=3)
    bias, value, output = (
        draw(2, count, 4, seed=4),
        draw(count, 3, 4, seed=5),
        draw(count, 4, 5, seed=6),
    )
    weights = x, query, bias[0], key, bias[1], value, output
    return (
        *weights,
        draw(2, 6, seed=7),
        ATTENTION_PLAN.tensors,
        ATTENTION_PLAN.parts,
        2,
        "kernel",
    ), options


def equivariant_attention_backward():
    arguments, options = equivariant_attention()
    return (draw(len(NODES), 5, seed=9), *arguments), options


def sparse_linear():
    return (
        draw(len(PAIRS), 3),
        draw(len(nsimplex.equivariant_classes(2, 1)), 3, 4, seed=1),
        draw(1, 4, seed=2),
    )


def plain(*arguments, **options):
    return lambda: (arguments, options)


def linear_backward():
    return (
        draw(len(NODES), 4, seed=8),
        *sparse_linear(),
        PLAN.tensors,
        PLAN.parts,
        "mean",
        [True] * 3,
    ), {}


def sums(backward=False):
    (x, *_), shape = (
        sparse_linear(),
        operators.equivariant_sums(sparse_linear()[0], PLAN.tensors, PLAN.parts, True).shape,
    )
    return (draw(*shape, seed=2) if backward else x, PLAN.tensors, PLAN.parts, True), {}


def parts(batch):
    return (*batch._parts(),)


#: What belongs into graphs of torch.compile and takes 16-bit numbers.
CASES = {
    "attention": lambda: attention(**WINDOW),
    "attention_backward": attention_backward,
    "attention_pair_masks_backward": pair_masks_backward,
    "attention_reference": lambda: attention(**WINDOW),
    "attention_weights": lambda: weights_of_pairs(causal=True),
    "ball_points": plain(draw(4, 3)),
    "ball_tangents": plain(0.3 * draw(4, 3)),
    "causal_angles": plain(0.3 * draw(4, 6), 2, 0.7, True, draw(2), 1),
    "composite_norm": plain(draw(2, 5, 4)),
    "dirichlet_energy": plain(draw(2, 5, 4)),
    "elu_features": plain(draw(4, 9), 0.5),
    "equivariant_attention": equivariant_attention,
    "equivariant_attention_backward": equivariant_attention_backward,
    "equivariant_linear": plain(
        draw(2, 4, 4, 3), draw(15, 3, 5, seed=1), draw(2, 5, seed=2), input_order=2, output_order=2
    ),
    "equivariant_linear_sparse": lambda: ((*sparse_linear(), PLAN.tensors, PLAN.parts), {}),
    "equivariant_linear_sparse_backward": linear_backward,
    "equivariant_sums": sums,
    "equivariant_sums_backward": lambda: sums(backward=True),
    "face_attention": lambda: attention(causal=True),
    "feature_map": plain(draw(2, 5, 8), "random", features=12, seed=3, orthogonal=True),
    "graph_derived_features": plain(draw(4, 3), torch.tensor([0, 2, -1, 3])),
    "graph_node_and_edge_features": plain(*parts(PAIRS)[:3], EDGES.origin, draw(4, 2), draw(4, 2)),
    "hyperbolic_distances": plain(draw(4, 3)),
    "hyperboloid_points": plain(draw(4, 3)),
    "indexer_loss": indexer_loss,
    "indexer_loss_gradients": lambda: (
        indexer_loss()[0],
        indexer_loss()[1] | {"output_mask": [True, True, True, False]},
    ),
    "mean_cosine": plain(draw(2, 5, 4)),
    "mean_residual": plain(draw(2, 5, 4)),
    "merge_attention": lambda: ((heads(count=2), [draw(1, 2, 6, seed=s) for s in (1, 2)]), {}),
    "random_directions": plain(draw(4, 8), 12, 3, False),
    "retained_mass": plain(draw(1, 2, 6), draw(1, 2, 6).abs() + 3),
    "rotary": plain(draw(1, 2, 6, 8), angles=draw(6, 4, seed=1)),
    "separable_attention": lambda: separable(**WINDOW),
    "separable_attention_backward": separable_backward,
    "separable_attention_reference": lambda: separable(**WINDOW),
    "sparse_attention": sparse,
    "sparse_attention_backward": sparse_backward,
    "sparse_attention_reference": sparse,
    "sparse_attention_reference_backward": sparse_backward,
    "topk_keys": topk,
    "topk_keys_reference": topk,
}


#: Arguments of the operators that fit a causal graph.
FIT_OF_ROWS = (
    draw(60, 4).double(),
    *fit_arguments(
        FitOptions(standardise=True),
        groups=[row % 3 for row in range(60)],
        targets=[[1], *[[]] * 6, [2], *[[]] * 52],
    ).values(),
)

#: What looks at numbers to know the shape of its result, or answers in numbers, names and files:
#: outside of graphs.
ON_THE_HOST = {
    "attention_tuples": plain(4, [4, 4], causal=True),
    "attention_workspace": lambda: attention(**WINDOW),
    "causal_baselines": plain(draw(40, 4).double()),
    "causal_check_graph": plain(draw(60, 4).double(), TRUTH.double(), None, [], 0.05, 3, 0),
    "causal_counterfactual": plain(
        TRUTH.double(), draw(4).double(), draw(6, 4).double(), [1], [2.0]
    ),
    "causal_edge_curves": plain(draw(4, 4).double(), TRUTH.double()),
    "causal_effect": plain(draw(60, 4).double(), TRUTH.double(), 0, 1, 0.9, []),
    "causal_embed": plain(
        TRUTH, 2, "tangent", 3, None, None, None, "paths", 0.5, None, 0.7, True, 0.15, "uniform", 0
    ),
    "causal_embedding_warning": plain(draw(4, 2), TRUTH),
    "causal_few_rows": plain(draw(20, 4).double(), []),
    "causal_edge_samples": plain(
        *FIT_OF_ROWS, (TRUTH != 0).double() * draw(4, 4).double(), "halves", 0, 2, []
    ),
    "causal_fit_rows": plain(*FIT_OF_ROWS),
    "causal_graph_text": plain(TRUTH.double(), None, list("abcd"), "dot"),
    "causal_limits": plain(draw(60, 4).double(), TRUTH.double(), [], 0.05),
    "causal_linear_model": plain(draw(60, 4).double(), TRUTH.double(), [], None),
    "causal_orient_by_noise": plain(
        draw(60, 4).double(),
        TRUTH.double(),
        0.05,
        torch.zeros(0, 2, dtype=torch.int64),
        torch.zeros(0, 2, dtype=torch.int64),
        [],
        [],
        [],
        torch.zeros(0, 2, dtype=torch.int64),
    ),
    "causal_metrics": plain(TRUTH.double(), TRUTH.double()),
    # a file of causal_pipeline_write, which its own tests read and write
    "causal_pipeline_read": None,
    "causal_pipeline_write": None,
    "causal_read_columns": None,  # of a file
    "causal_refused_by_noise": plain(False, False, True, False, False),
    "causal_ranking": plain(draw(4, 2), TRUTH),
    "causal_sample_model": plain(
        TRUTH.double(), draw(4).double(), draw(4).double().square(), 5, [0], [1.0], 1
    ),
    "causal_screen_columns": plain(draw(20, 4).double(), 2, "correlation"),
    "causal_simulate": plain(
        TRUTH.double(), "er", 4, 1, 20, "linear", "gaussian", False, 0.5, 2.0, 0, 0, [], []
    ),
    "causal_sortability": plain(draw(40, 4).double(), TRUTH.double()),
    "causal_usable_table": plain(draw(20, 4).double(), [], "rows", True),
    "causal_variance_order": plain(draw(40, 4).double(), TRUTH.double()),
    "causal_warnings": plain(*FIT_OF_ROWS, TRUTH.double(), "free variances", []),
    "collapse_bound": plain([draw(3, 3), draw(3, 3)], [draw(3, 3)], draw(4, 3)),
    "depth_bound": plain([draw(3, 3), draw(3, 3)], [draw(3, 3)], [None], draw(4, 3), [1], [2], [1]),
    "effective_rank": plain(draw(2, 5, 4)),
    "equivariant_attention_classes": plain(2, 1),
    "equivariant_attention_plan": lambda: (
        (*parts(PAIRS)[:2], *parts(NODES)[:2], parts(NODES)[2]),
        {},
    ),
    "equivariant_attention_reference": equivariant_attention,
    "equivariant_class_names": plain(2, 1),
    "equivariant_classes": plain(2, 1),
    "equivariant_plan": lambda: ((*parts(PAIRS)[:2], *parts(NODES)[:2], parts(NODES)[2]), {}),
    "graph_adjacency": plain(*parts(UNDIRECTED)),
    "graph_all_orders": plain(*parts(UNDIRECTED)),
    "graph_barabasi_albert": plain(9, 2, 0),
    "graph_chains": plain(torch.tensor([3, 4])),
    "graph_check": plain(*parts(PAIRS)),
    "graph_check_features": plain(PAIRS.tuples, draw(len(PAIRS), 2), "features"),
    "graph_complete": plain(torch.tensor([3]), 2, "ordered", True),
    "graph_component_cliques": plain(*parts(UNDIRECTED)),
    "graph_components": plain(*parts(UNDIRECTED)),
    "graph_concatenate": plain([*parts(PAIRS)[:3]] * 2, "ordered"),
    "graph_delaunay": plain(draw(8, 2).double(), None),
    "graph_edge_curvatures": plain(*parts(UNDIRECTED)),
    "graph_edges": plain(torch.tensor([[0, 1], [1, 2]]), 3, "ordered", True, True),
    "graph_label_cliques": plain(torch.tensor([0, 0, 1]), torch.tensor([0, 3])),
    "graph_laplacian": plain(*parts(UNDIRECTED), 2),
    "graph_line": plain(*parts(UNDIRECTED)),
    "graph_point_sets": plain(2, 5, 8, 0),
    "graph_project": plain(*parts(PAIRS), 1, "ordered"),
    "graph_simplices": plain(*parts(UNDIRECTED), 3),
    "graph_split": plain(*parts(PAIRS)),
    "graph_with_loops": plain(*parts(UNDIRECTED)),
    "hyperedge_list": plain(torch.tensor([[0, 1, 2]]), 4),
    "lipschitz_bound": plain(2, 3, 4, 0.5, 1.0, 1.0, "proof", 1.0),
    "mask_distances": plain(*parts(UNDIRECTED)),
    "mask_extent": plain(*parts(UNDIRECTED)),
    "minimal_residual": plain(draw(2, 5, 4), 1e-6),
    "neighbours": plain(torch.eye(4, dtype=torch.bool)),
    "neighbours_csr": plain(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), 2),
    "orthogonal_directions": None,  # drawn anew in every call
    "pair_lipschitz_bound": plain(3, 0.5, 1.0, 1.0),
    "path_list": plain(TABLE, 2),
    "product_list": plain(TABLE, 2),
    "read_edges": None,  # readers of files, which have no floating tensor to cast
    "read_graphs": None,
    "read_table": None,
    "read_tuples": None,
    "sensitivity_bounds": plain(2, 4, 4, 0.5, 1.0, []),
    "sharpness_bounds": plain(2, 4, 4, 0.5, 1.0, []),
    "topk_tuples": lambda: (weights_of_pairs()[0] + (4,), {"causal": True}),
    "weight_bounds": plain(2, 9, 0.5, 1.0, 0.5),
}

#: Computed in autocast's dtype; all others give what they give without autocast.
NARROW = {
    "attention",
    "attention_reference",
    "attention_weights",
    "face_attention",
    "sparse_attention",
    "sparse_attention_reference",
}

#: Tensors that a layer hands over in the dtypes that autocast has left them in.
MIXED = NARROW | {
    "elu_features",
    "equivariant_attention",
    "equivariant_attention_reference",
    "equivariant_linear",
    "equivariant_linear_sparse",
    "feature_map",
    "indexer_loss",
    "indexer_loss_gradients",
    "retained_mass",
    "separable_attention",
    "separable_attention_reference",
    "topk_keys",
    "topk_keys_reference",
    "topk_tuples",
}
