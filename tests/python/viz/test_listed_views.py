"""Views of layers of chosen tuples, and of attention between complex numbers."""

import itertools

import pytest
import torch

import nsimplex
from nsimplex import viz
from nsimplex.nn import Path, SimplicialAttention, TopK, Union, Window

T, HEADS = 6, 4


class Listed(torch.nn.Module):
    """Attention over tuples that are given."""

    def __init__(self, indices, offsets=None, pattern="list", order=2):
        super().__init__()
        self.linear = torch.nn.Linear(
            3, 3, dtype=torch.float64
        )  # a module of attention has weights
        self.given = indices, offsets
        self.pattern, self.order = pattern, order

    def forward(self, x):
        q = self.linear(x).unflatten(1, (HEADS, T))
        keys = [(axis + 1) * q[:, :2].sin() for axis in range(self.order)]
        self.seen = q, keys
        return nsimplex.sparse_attention(q, keys, keys, *self.given, pattern=self.pattern).sum(1)


def tuples_of(pattern, sets, query, order):
    """The tuples of a query by the definition, from sets [T, k]."""
    own = [[j for j in row if j >= 0] for row in sets.tolist()]
    if pattern == "product":
        return list(itertools.product(own[query], repeat=order))
    found = [(j,) for j in own[query]]
    for _ in range(order - 1):
        found = [(*each, j) for each in found for j in own[each[-1]]]
    return found


def check(made, model, tuples):
    """Every weight of the view, against a softmax over the listed tuples."""
    query, keys = model.seen
    for head in range(HEADS):
        for i in range(T):
            listed = tuples(head, i)
            logits = [
                sum(
                    query[0, head, i]
                    * torch.stack([k[0, head // 2, j] for k, j in zip(keys, each)]).prod(0)
                )
                * 3**-0.5
                for each in listed
            ]
            weights = {}
            for each, weight in zip(listed, torch.tensor(logits).softmax(0).tolist()):
                weights[each] = weights.get(each, 0) + weight
            found = dict(made.rows(head=head, query=i))
            assert found == pytest.approx(weights, abs=1e-6)
            for axis, marginal in enumerate(made.marginals):
                expected = torch.zeros(T)
                for each, weight in weights.items():
                    expected[each[axis]] += weight
                torch.testing.assert_close(marginal[head, i], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("pattern", ["product", "path"])
def test_sets_and_paths(pattern, order):
    torch.manual_seed(order)
    sets = torch.rand(1, 2, T, T).argsort(-1)[..., :3]
    sets[:, :, ::2, 2] = -1
    model = Listed(sets, pattern=pattern, order=order)
    x = torch.randn(2, HEADS * T, 3, dtype=torch.float64)
    (made,) = viz.views(model, x, queries=range(T), count=30)
    check(made, model, lambda head, i: tuples_of(pattern, sets[0, head // 2], i, order))


def test_lists_with_a_tuple_twice_and_a_query_without():
    indices = torch.tensor([[0, 1], [5, 5], [0, 1], [2, 3], [4, 0]])
    offsets = torch.tensor([[[0, 3, 3, 5, 5, 5, 5]]])
    model = Listed(indices, offsets)
    (made,) = viz.views(model, torch.randn(1, HEADS * T, 3).double(), queries=range(T))
    listed = {0: [(0, 1), (5, 5), (0, 1)], 2: [(2, 3), (4, 0)]}
    check(made, model, lambda head, i: listed.get(i, []))


@pytest.mark.parametrize("select", [TopK(3), Path(3), Union([Window(2), TopK(2)])])
def test_layers_that_choose_their_tuples(select):
    torch.manual_seed(4)
    layer = SimplicialAttention(16, heads=2, order=2, causal=True, select=select)
    made = viz.views(layer, torch.randn(1, 9, 16), queries=range(9), count=100)[-1]
    sums = made.tuples.weights.sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-5, rtol=0)
    for query in range(9):
        assert all(max(keys) <= query for keys, _ in made.rows(query=query))


class Complex(torch.nn.Module):
    """Ordinary attention with rotary positions as products of complex numbers."""

    def __init__(self):
        super().__init__()
        self.q, self.k = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        turn = torch.polar(torch.ones(x.size(1), 4), torch.arange(x.size(1))[:, None] * 0.3)
        q, k = (
            torch.view_as_complex(own(x).unflatten(-1, (4, 2))) * turn for own in (self.q, self.k)
        )
        scores = torch.matmul(q[:, None], k[:, None].conj().transpose(-1, -2)).real / 8**0.5
        self.seen = scores.softmax(-1)
        return torch.matmul(self.seen, x[:, None])[:, 0]


def test_complex_queries_and_keys():
    torch.manual_seed(5)
    model = Complex()
    (made,) = viz.views(model, torch.randn(1, 7, 8), queries=range(7))
    torch.testing.assert_close(made.marginals[0], model.seen[0], atol=1e-5, rtol=1e-4)
