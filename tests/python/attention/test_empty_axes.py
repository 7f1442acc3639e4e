"""Every operator of attention with each of its axes empty: results of the right shapes and
gradients, or one line that names the argument."""

import dataclasses
import re

import pytest
import torch

import nsimplex


@dataclasses.dataclass
class Sizes:
    batch: int = 2
    heads: int = 2
    queries: int = 3
    keys: int = 4
    dim: int = 4
    value_dim: int = 5
    k: int = 2
    tuples: int = 6
    channels: int = 3
    graphs: int = 2

    def query(self):
        return torch.randn(self.batch, self.heads, self.queries, self.dim, requires_grad=True)

    def key(self):
        return torch.randn(self.batch, self.heads, self.keys, self.dim, requires_grad=True)

    def value(self):
        return torch.randn(self.batch, self.heads, self.keys, self.value_dim, requires_grad=True)

    def row(self):
        return torch.randn(self.batch, self.heads, self.queries, requires_grad=True)

    def index(self, *shape):
        return torch.full(shape, 0 if self.keys else -1)

    def pairs(self):
        return [self.query(), [self.key()] * 2, [self.value()] * 2]


def listed(s):
    offsets = torch.zeros(s.batch or 1, 1, s.queries + 1, dtype=torch.int64)
    offsets[..., 1:] = s.tuples
    indices = torch.zeros(s.tuples, 2, dtype=torch.int64)
    return nsimplex.sparse_attention(*s.pairs(), indices, offsets, return_lse=True)


def sets(pattern):
    def call(s):
        rows = s.queries if pattern == "product" else s.keys
        query, keys, values = s.pairs()
        indices = s.index(s.batch, rows, s.k)
        return nsimplex.sparse_attention(
            query, keys, values, indices, pattern=pattern, return_lse=True
        )

    return call


def loss_of_indexer(s, scores):
    return nsimplex.indexer_loss(
        s.query(), s.key(), s.query(), [s.key()] * 2, indices=None, scores=scores, causal=False
    )


def linear(s):
    weight = torch.randn(5, s.channels, s.value_dim, requires_grad=True)
    bias = torch.randn(1, s.value_dim, requires_grad=True)
    x = torch.randn(s.batch, s.keys, s.keys, s.channels, requires_grad=True)
    return nsimplex.equivariant_linear(x, weight, bias, input=2, output=1)


def graphs(s):
    """Complete graphs with loops as tuples of order 2."""
    return nsimplex.graph.complete_tuples(torch.full((s.graphs,), s.keys), 2)


def linear_sparse(s):
    plan = nsimplex.equivariant_plan(graphs(s), graphs(s))
    shapes = (s.channels, s.value_dim), (s.value_dim,)
    weights = [torch.randn(n, *more) for n, more in zip(plan.class_counts, shapes)]
    x = torch.randn(len(graphs(s)), s.channels, requires_grad=True)
    return nsimplex.equivariant_linear_sparse(x, *(w.requires_grad_() for w in weights), plan)


def attention_of_tuples(s):
    layer = nsimplex.nn.EquivariantAttention(2, 2, max(s.channels, 1), 4)
    weights = nsimplex.EquivariantAttentionWeights(
        layer.query_weight,
        layer.query_bias,
        layer.key_weight,
        layer.key_bias,
        layer.value_weight,
        layer.output_weight,
    )
    x = torch.randn(len(graphs(s)), s.channels, requires_grad=True)
    plan = nsimplex.equivariant_attention_plan(graphs(s), graphs(s))
    return nsimplex.equivariant_attention(x, weights, plan, heads=1)


CALLS = {
    "attention": lambda s: nsimplex.attention(*s.pairs(), return_lse=True),
    "attention, sigmoid": lambda s: nsimplex.attention(*s.pairs(), normalizer="sigmoid"),
    "attention, causal": lambda s: nsimplex.attention(*s.pairs(), causal=True, window=2),
    "attention, augment": lambda s: nsimplex.attention(*s.pairs(), augment=[0, 1]),
    "reference": lambda s: nsimplex.reference(*s.pairs(), return_lse=True),
    "face_attention": lambda s: nsimplex.face_attention(*s.pairs()),
    "attention_weights": lambda s: nsimplex.attention_weights(*s.pairs()[:2]),
    "separable_attention": lambda s: nsimplex.separable_attention(
        s.query(), [s.key()] * 2, [s.value()] * 2, features="elu"
    ),
    "separable_attention, causal": lambda s: nsimplex.separable_attention(
        s.query(), [s.key()] * 2, [s.value()] * 2, features="relu", causal=True
    ),
    "feature_map": lambda s: [
        nsimplex.feature_map(s.query(), f) for f in ("elu", "relu", "random")
    ],
    "rotary": lambda s: nsimplex.rotary(s.query()),
    "merge": lambda s: nsimplex.merge(
        [s.value(), s.value()], [torch.randn(s.batch, s.heads, s.keys) for _ in range(2)]
    ),
    "sparse_attention, list": listed,
    "sparse_attention, product": sets("product"),
    "sparse_attention, path": sets("path"),
    "topk_keys": lambda s: nsimplex.topk_keys(
        s.query(), s.key(), s.k, weights=s.row(), causal=True, return_scores=True
    ),
    "topk_keys, softmax": lambda s: nsimplex.topk_keys(s.query(), s.key(), s.k, scores="softmax"),
    "topk_keys, candidates": lambda s: nsimplex.topk_keys(
        s.query(), s.key(), s.k, candidates=s.index(s.batch, s.queries, s.tuples)
    ),
    "topk_tuples": lambda s: nsimplex.topk_tuples(s.query(), [s.key()] * 2, s.k),
    "topk_tuples, causal": lambda s: nsimplex.topk_tuples(
        s.query(), [s.key()] * 2, s.k, weights=s.row(), causal=True
    ),
    "retained_mass": lambda s: nsimplex.retained_mass(s.row(), s.row()),
    "indexer_loss": lambda s: loss_of_indexer(s, "relu"),
    "indexer_loss, softmax": lambda s: loss_of_indexer(s, "softmax"),
    "equivariant_linear": linear,
    "equivariant_linear_sparse": linear_sparse,
    "equivariant_attention": attention_of_tuples,
    "product_list": lambda s: nsimplex.product_list(s.index(s.batch, s.queries, s.k), 2),
    "path_list": lambda s: nsimplex.path_list(s.index(s.batch, s.keys, s.k), 2),
    "neighbours": lambda s: nsimplex.neighbours(torch.ones(s.batch, s.keys, s.keys) > 0),
    "hyperedge_list": lambda s: nsimplex.hyperedge_list(
        torch.zeros(s.tuples, 3, dtype=torch.int64), s.keys
    ),
}


def tensors(out):
    return [x for x in torch.utils._pytree.tree_leaves(out) if isinstance(x, torch.Tensor)]


@pytest.mark.parametrize("axis", [None, *(field.name for field in dataclasses.fields(Sizes))])
@pytest.mark.parametrize("name", CALLS)
def test_an_empty_axis_has_an_honest_answer(name, axis):
    torch.manual_seed(0)
    sizes = Sizes() if axis is None else Sizes(**{axis: 0})
    try:
        out = CALLS[name](sizes)
    except (ValueError, TypeError) as error:
        assert axis is not None
        text = str(error)
        assert re.match(r"\[\w+\] \w+.*: expected .*, got ", text) and "\n" not in text, text
        return
    for tensor in tensors(out):
        # A mean over no queries is documented as NaN.
        assert name == "retained_mass" or not tensor.isnan().any()
    wanted = [x for x in tensors(out) if x.requires_grad]
    if wanted:
        torch.autograd.backward(wanted, [torch.ones_like(x) for x in wanted])
