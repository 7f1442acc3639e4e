"""A call that works of every public function: (positional arguments, keyword arguments) by name."""

from __future__ import annotations

import os
import tempfile

import torch
from public_graph_calls import GRAPH_CALLS, absent, derived_tuples, graph_data

import nsimplex
from nsimplex import analysis, causal, graph, text, viz

MODULES = {
    "nsimplex": nsimplex,
    "graph": graph,
    "causal": causal,
    "analysis": analysis,
    "text": text,
    "viz": viz,
}


def public_functions() -> dict[str, object]:
    """By "module.name"; classes, modules and strings are left out."""
    found = {}
    for prefix, module in MODULES.items():
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not isinstance(value, type):
                found[f"{prefix}.{name}"] = value
    return found


def _attention() -> tuple[list, dict]:
    query, key = torch.randn(2, 4, 5, 6), torch.randn(2, 2, 5, 6)
    options = dict(
        causal=True,
        window=[3, (2, 0)],
        form="product",
        reduce="product",
        normalizer="softmax",
        scale=(0.5, 1.0),
        key_lengths=torch.tensor([5, 4]),
        key_masks=[torch.ones(2, 5, dtype=torch.bool)] * 2,
        cu_seqlens=torch.tensor([0, 2, 5]),
        mask=torch.zeros(5, 5, 5),
        sink=None,
        distinct="none",
        augment=None,
        dropout_p=0.1,
        seed=7,
        query_positions=None,
        order_bias=None,
        softcap=1.5,
        alibi_slopes=None,
        pair_masks=None,
    )
    return [query, [key, key]], options


def _with_values(**more) -> tuple[list, dict]:
    arguments, options = _attention()
    return [*arguments, arguments[1]], options | more


def _lists() -> tuple[list, dict]:
    (query, keys, values), _ = _with_values()
    sets = torch.zeros(1, 1, 5, 2, dtype=torch.int64)
    return [query, keys, values, sets, None], dict(
        pattern="product",
        form="product",
        reduce="product",
        reducer_weights=None,
        scale="standard",
        return_lse=True,
        layout="bhtd",
    )


def _topk() -> tuple[list, dict]:
    query, key = torch.randn(2, 4, 5, 6), torch.randn(2, 2, 5, 6)
    return [query, key, 3], dict(
        weights=torch.rand(2, 4, 5),
        scores="relu",
        causal=True,
        scale=0.5,
        lse=None,
        key_lengths=torch.tensor([5, 4]),
        adjacency=torch.ones(5, 5, dtype=torch.bool),
        candidates=None,
        return_scores=True,
    )


def _separable() -> tuple[list, dict]:
    (query, keys, values), _ = _with_values()
    options = dict(features="elu", causal=True, window=3, return_normalizer=True, layout="bhtd")
    return [query, keys, values], options


def _view() -> viz.TupleView:
    return viz.view(torch.randn(1, 1, 3, 4), [torch.randn(1, 1, 3, 4)])


def _plan_options() -> dict:
    return dict(input_loops=True, output_loops=True)


def _equivariant_attention() -> tuple[list, dict]:
    batch = derived_tuples().batch
    layer = nsimplex.nn.EquivariantAttention(2, 2, 3, 4)
    weights = nsimplex.EquivariantAttentionWeights(
        layer.query_weight,
        layer.query_bias,
        layer.key_weight,
        layer.key_bias,
        layer.value_weight,
        layer.output_weight,
    )
    plan = nsimplex.equivariant_attention_plan(batch, batch)
    options = dict(heads=1, form="softmax", normalise=True, directions=None, features="relu")
    return [torch.randn(len(batch), 3), weights, plan], options


def _table() -> torch.Tensor:
    return torch.randn(30, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _chain() -> torch.Tensor:
    return torch.tensor([[0.0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=torch.float64)


def _double(x: torch.Tensor) -> torch.Tensor:
    return x * x


def _square_sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.sum(-1, keepdim=True) * y.sum(-1, keepdim=True)


def _loss() -> tuple[list, dict]:
    query, key = torch.randn(2, 4, 5, 6), torch.randn(2, 2, 5, 6)
    return [torch.randn(2, 4, 5, 3), torch.randn(2, 1, 5, 3), query, [key, key]], dict(
        weights=torch.rand(2, 4, 5),
        scores="relu",
        causal=True,
        scale=0.5,
        lse=None,
        indices=torch.zeros(2, 5, 2, dtype=torch.int64),
        pattern="product",
        form="product",
        logit_scale=0.3,
    )


def _linear_sparse() -> tuple[list, dict]:
    batch = derived_tuples().batch
    plan = nsimplex.equivariant_plan(batch, batch)
    weight, bias = (
        torch.randn(count, *more) for count, more in zip(plan.class_counts, ((3, 4), (4,)))
    )
    return [torch.randn(len(batch), 3), weight, bias, plan], dict(pooling="mean")


_ASCENT = analysis.Ascent(steps=2)

#: Made anew for every call.
CALLS = {
    "nsimplex.attention": lambda: _with_values(return_lse=True, layout="bhtd"),
    "nsimplex.reference": lambda: _with_values(return_lse=True, layout="bhtd"),
    "nsimplex.face_attention": lambda: _with_values(return_lse=True, layout="bhtd"),
    "nsimplex.attention_weights": _attention,
    "nsimplex.attention_workspace": lambda: _with_values(layout="bhtd"),
    "nsimplex.attention_marginals": lambda: (_attention()[0], _attention()[1] | dict(axis=0)),
    "nsimplex.attention_received": lambda: (_attention()[0], _attention()[1] | dict(axis=0)),
    "nsimplex.sparse_attention": _lists,
    "nsimplex.sparse_reference": _lists,
    "nsimplex.separable_attention": _separable,
    "nsimplex.separable_reference": _separable,
    "nsimplex.feature_map": lambda: (
        [torch.randn(2, 3, 4), "random"],
        dict(features=5, seed=1, orthogonal=True, scale=0.5),
    ),
    "nsimplex.rotary": lambda: (
        [torch.randn(2, 3, 5, 4)],
        dict(chunk=2, base=100.0, offset=0, positions=torch.arange(5), angles=None, inverse=False),
    ),
    "nsimplex.merge": lambda: ([[torch.randn(2, 3, 4)] * 2, [torch.randn(2, 3)] * 2], {}),
    "nsimplex.continuous_order": lambda: (
        [[torch.randn(1, 2, 3, 4)] * 2, [torch.randn(1, 2, 3, 4)] * 2, 1.5],
        {},
    ),
    "nsimplex.topk_keys": _topk,
    "nsimplex.topk_keys_reference": _topk,
    "nsimplex.topk_tuples": lambda: (
        [*_attention()[0], 3],
        _attention()[1] | dict(weights=torch.rand(2, 4, 5)),
    ),
    "nsimplex.indexer_loss": _loss,
    "nsimplex.retained_mass": lambda: ([torch.randn(2, 3, 4), torch.randn(2, 3, 4)], {}),
    "nsimplex.product_list": lambda: ([torch.zeros(1, 4, 2, dtype=torch.int64), 2], {}),
    "nsimplex.path_list": lambda: ([torch.zeros(1, 4, 2, dtype=torch.int64), 2], dict(queries=3)),
    "nsimplex.neighbours": lambda: ([torch.ones(4, 4, dtype=torch.bool)], dict(self_loops=True)),
    "nsimplex.hyperedge_list": lambda: ([torch.tensor([[0, 1, 2]]), 4], dict(permute=True)),
    "nsimplex.equivariant_classes": lambda: ([1, nsimplex.TensorKind(2), "all"], {}),
    "nsimplex.equivariant_linear": lambda: (
        [torch.randn(2, 3, 3, 4), torch.randn(5, 4, 6), torch.randn(1, 6)],
        dict(
            input=2,
            output=1,
            classes="all",
            pooling="mean",
            node_counts=torch.tensor([3, 2]),
            nodes=None,
        ),
    ),
    "nsimplex.equivariant_plan": lambda: (
        [derived_tuples().batch, derived_tuples().batch],
        dict(classes="all", **_plan_options()),
    ),
    "nsimplex.equivariant_linear_sparse": _linear_sparse,
    "nsimplex.equivariant_attention_classes": lambda: (
        [1, 2],
        dict(keys="paper", global_classes=True),
    ),
    "nsimplex.equivariant_attention_plan": lambda: (
        [derived_tuples().batch, derived_tuples().batch],
        dict(form="softmax", keys="paper", global_classes=True, **_plan_options()),
    ),
    "nsimplex.equivariant_attention": _equivariant_attention,
    "nsimplex.equivariant_attention_coefficients": _equivariant_attention,
    "nsimplex.equivariant_encoder_plan": lambda: (
        [derived_tuples().batch, derived_tuples().batch],
        dict(form="softmax", keys="paper", global_classes=True, mlp="automatic", **_plan_options()),
    ),
    "nsimplex.orthogonal_directions": lambda: ([4, 6], dict(generator=None, dtype=torch.float32)),
    "nsimplex.read_edges": lambda: ([absent("edges")], {}),
    "nsimplex.read_graphs": lambda: ([absent("graphs")], {}),
    "nsimplex.read_table": lambda: (
        [absent("table"), ""],
        dict(header=None, allow_missing=True),
    ),
    "nsimplex.read_tuples": lambda: ([absent("tuples"), ""], dict(width=3)),
    "causal.causal_fit": lambda: (
        [_table()],
        dict(
            estimator="order",
            nonlinear=False,
            standardise=False,
            threshold=0.1,
            sparsity=None,
            rank=40,
            sample=False,
            seed=1,
            forbidden=[(0, 1)],
            required=[],
            tiers=[0, 1, 2],
            exogenous=[0],
            sinks=[2],
            paths=[(0, 2)],
            groups=[row % 2 for row in range(30)],
            targets=[None, 1] * 15,
            soft=False,
            kinds=["continuous"] * 3,
            missing="refuse",
        ),
    ),
    "causal.causal_embed": lambda: (
        [_chain()],
        dict(
            dimension=2,
            optimiser="tangent",
            steps=3,
            learning_rate=0.1,
            hops=1,
            side="both",
            weight="paths",
            decay=0.5,
            negatives=0,
            generality=1.0,
            relative=True,
            restart=0.1,
            dangling="uniform",
            seed=1,
            balanced=True,
        ),
    ),
    "causal.draw_graph": lambda: (
        [_chain(), ["a", "b", "c"]],
        dict(
            columns=["a"],
            most=60,
            scores=_chain(),
            frequencies=_chain(),
            low=_chain(),
            high=_chain(),
            reversible=[(0, 1)],
            truth=_chain(),
        ),
    ),
    "causal.causal_effect": lambda: (
        [_table(), _chain(), 0, 2],
        dict(
            names=["a", "b", "c"],
            level=0.9,
            samples=[_chain()],
            groups=[row % 2 for row in range(30)],
            targets=[None, 1] * 15,
        ),
    ),
    "causal.check_causal_graph": lambda: (
        [_table(), _chain()],
        dict(
            learned=_chain(),
            names=["a", "b", "c"],
            level=0.1,
            permutations=3,
            seed=1,
            groups=[row % 2 for row in range(30)],
            targets=[None, 1] * 15,
        ),
    ),
    "causal.graph_text": lambda: ([_chain(), ["a", "b", "c"]], dict(format="gml")),
    "causal.to_causal_learn": lambda: ([_chain(), ["a", "b", "c"]], {}),
    "causal.to_pgmpy": lambda: ([_chain(), ["a", "b", "c"]], {}),
    "causal.to_networkx": lambda: ([_chain(), ["a", "b", "c"]], {}),
    "causal.to_igraph": lambda: ([_chain(), ["a", "b", "c"]], {}),
    "causal.edge_confidence": lambda: (
        [_table()],
        dict(
            replicates=2,
            resampling="halves",
            level=0.9,
            n_jobs=None,
            estimator="order",
            nonlinear=False,
            standardise=False,
            threshold=0.1,
            seed=1,
            forbidden=[(0, 1)],
            required=[],
            tiers=[0, 1, 2],
            exogenous=[0],
            sinks=[2],
            paths=[(0, 2)],
            groups=[row % 2 for row in range(30)],
            targets=[None, 1] * 15,
            soft=False,
            kinds=["continuous"] * 3,
            missing="refuse",
        ),
    ),
    "causal.causal_ranking": lambda: ([torch.randn(3, 2, dtype=torch.float64), _chain()], {}),
    "causal.hyperbolic_distances": lambda: ([torch.randn(3, 2, dtype=torch.float64)], {}),
    "causal.hyperboloid_points": lambda: ([torch.randn(3, 2)], {}),
    "causal.ball_points": lambda: ([torch.randn(3, 2)], {}),
    "causal.ball_tangents": lambda: ([torch.rand(3, 2) / 2], {}),
    "causal.causal_angles": lambda: (
        [torch.rand(3, 4)],
        dict(heads=2, scale=0.5, by_dimension=True, head_scale=torch.ones(2), leading=1),
    ),
    "causal.causal_limits": lambda: (
        [_table(), _chain()],
        dict(names=["a", "b", "c"], level=0.05),
    ),
    "causal.orient_by_noise": lambda: (
        [_table(), _chain()],
        dict(
            level=0.05,
            forbidden=[(2, 0)],
            required=[],
            tiers=[0, 1, 2],
            exogenous=[0],
            sinks=[2],
            paths=[(0, 2)],
        ),
    ),
    "causal.causal_metrics": lambda: ([_chain(), _chain()], {}),
    "causal.edge_curves": lambda: ([_chain(), _chain()], {}),
    "causal.causal_sortability": lambda: ([_table(), _chain()], {}),
    "causal.causal_baselines": lambda: ([_table()], {}),
    "causal.simulate": lambda: (
        [_chain()],
        dict(
            graph="er",
            nodes=3,
            degree=1,
            observations=5,
            mechanism="linear",
            noise="gaussian",
            equal_variances=True,
            weights=(0.5, 2.0),
            seed=1,
            sample_seed=2,
            interventions={0: 1.0},
        ),
    ),
    "causal.usable_table": lambda: (
        [_table(), ["a", "b", "c"]],
        dict(missing="refuse", drop=False),
    ),
    "causal.screen_columns": lambda: ([_table(), 2], dict(by="variance")),
    "causal.read_h5ad": lambda: ([absent("cells.h5ad")], {}),
    "analysis.jacobian_norm": lambda: ([_double, torch.randn(2, 3), _ASCENT], {}),
    "analysis.lipschitz_constant": lambda: ([_double, torch.randn(2, 3), 1.0, _ASCENT], {}),
    "analysis.lipschitz_bound": lambda: (
        [2, 3, 4, 1.0, 1.0, 1.0],
        dict(form="printed", output_scale=1.0),
    ),
    "analysis.pair_lipschitz_bound": lambda: ([3, 1.0, 1.0, 1.0], {}),
    "analysis.weight_bounds": lambda: ([2, 9, 0.5, 1.0, 0.5], {}),
    "analysis.mask_extent": lambda: ([derived_tuples().batch], {}),
    "analysis.mask_distances": lambda: ([derived_tuples().batch], {}),
    "viz.heaviest_tuples": lambda: (
        [torch.randn(1, 2, 3, 4), [torch.randn(1, 2, 3, 4)] * 2, 2],
        dict(queries=[0, 2], causal=True),
    ),
    "viz.heaviest_graph_tuples": lambda: (
        [
            nsimplex.nn.GraphTransformer(width=4, layers=1, node_channels=2, edge_channels=3),
            graph_data(),
            2,
        ],
        dict(rows=[0]),
    ),
    "viz.view": lambda: (
        [torch.randn(1, 2, 3, 4), [torch.randn(1, 2, 3, 4)] * 2],
        dict(labels=["a", "b", "c"], queries=[0, 2], count=2, name="x", causal=True),
    ),
    "viz.head_distances": lambda: ([[_view()]], {}),
    "viz.heads_svg": lambda: ([[_view()]], {}),
    "viz.views": lambda: (
        [nsimplex.nn.SimplicialAttention(4, 1), torch.randn(1, 3, 4)],
        dict(labels=["a", "b", "c"], queries=[0, 2], count=2),
    ),
    "viz.save_page": lambda: (
        [[_view()], os.path.join(tempfile.gettempdir(), "viz-page.html")],
        dict(title="x"),
    ),
    "analysis.token_influence": lambda: ([_double, torch.randn(1, 3, 2)], dict(rows=[0, 2])),
    "analysis.report": lambda: (
        [nsimplex.nn.SimplicialAttention(4, 1), torch.randn(1, 3, 4)],
        dict(derivatives=False, queries=2, steps=1),
    ),
    "analysis.inf_rms": lambda: ([torch.randn(3, 4)], {}),
    "analysis.inf_op": lambda: ([torch.randn(2, 3, 4), 1], {}),
    "analysis.sensitivity": lambda: (
        [_square_sum, [torch.randn(2, 3), torch.randn(2, 3)]],
        dict(input_rms=[1.0, 1.0], starts=1, options=_ASCENT),
    ),
    "analysis.sharpness": lambda: (
        [_square_sum, [torch.randn(2, 3), torch.randn(2, 3)]],
        dict(input_rms=[1.0, 1.0], starts=1, options=_ASCENT),
    ),
    "analysis.sensitivity_bounds": lambda: ([1, 4, 4, (0.5, 1.0), [1.0, 1.0, 1.0]], {}),
    "analysis.sharpness_bounds": lambda: ([1, 4, 4, (0.5, 1.0), [1.0, 1.0, 1.0]], {}),
    "analysis.collapse_bound": lambda: (
        [[torch.randn(4, 3)] * 3, [torch.randn(4, 2)] * 2, torch.randn(5, 4), torch.randn(2, 4)],
        {},
    ),
    "analysis.depth_bound": lambda: (
        [[[([torch.randn(4, 3)] * 2, [torch.randn(4, 4)])]], torch.randn(5, 4)],
        {},
    ),
    "analysis.attention_flow": lambda: ([_double, torch.randn(1, 3, 2), 1.0], dict(steps=2)),
    "analysis.composite_norm": lambda: ([torch.randn(3, 4)], {}),
    "analysis.mean_residual": lambda: ([torch.randn(3, 4)], {}),
    "analysis.minimal_residual": lambda: ([torch.randn(3, 4), 1e-5], {}),
    "analysis.effective_rank": lambda: ([torch.randn(3, 4)], {}),
    "analysis.mean_cosine": lambda: ([torch.randn(3, 4)], {}),
    "analysis.dirichlet_energy": lambda: ([torch.randn(3, 4)], {}),
    "text.encode_file": lambda: ([text.ByteTokenizer(), absent("text.txt")], {}),
    "text.load_tokenizer": lambda: ([absent("tokenizer.json")], {}),
} | GRAPH_CALLS
