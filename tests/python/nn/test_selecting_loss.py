"""What an indexer learns from and measures under masks: only tokens of the same text count."""

import pytest
import torch

from nsimplex import nn
from nsimplex.nn import Path, Sinks, TopK, Window

DIM, T = 16, 9
SELECTIONS = {
    "topk": lambda index: TopK(3, index, loss=1.0),
    "topk per axis": lambda index: TopK((2, 3), index, loss=1.0),
    "path": lambda index: Path(2, index, loss=1.0),
    "union": lambda index: Window(2, 1) | Sinks(1) | TopK(2, index, loss=1.0),
}
# An adjacency does not change which token is the first of a sequence.
WITHOUT_SINKS = SELECTIONS | {"union": lambda index: Window(2, 1) | TopK(2, index, loss=1.0)}
every_layer = [
    pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"]),
    pytest.mark.parametrize("warms_up", [False, True], ids=["chosen", "warm-up"]),
    pytest.mark.parametrize("scores", ["relu", "softmax"]),
    pytest.mark.parametrize("name", SELECTIONS),
]


def for_every_layer(test):
    for mark in every_layer:
        test = mark(test)
    return test


def made(name, scores, warms_up, causal, selections=SELECTIONS):
    torch.manual_seed(3)
    select = selections[name](dict(scores=scores, heads=2, index_dim=4))
    layer = nn.SimplicialAttention(DIM, 2, order=2, causal=causal, select=select).double()
    layer.warms_up, layer.measures_mass = warms_up, True
    return layer


def tokens(batch):
    generator = torch.Generator().manual_seed(4)
    return torch.randn(batch, T, DIM, generator=generator, dtype=torch.float64)


def learned(layer, loss):
    return torch.autograd.grad(loss, [*layer.indexer.parameters()])


def results(layer, x, **places):
    """[loss, its gradients .., retained mass], each a mean over the tokens that attend."""
    layer(x, **places)
    masses = [] if layer.warms_up else [layer.retained_mass]
    return [layer.auxiliary_loss, *learned(layer, layer.auxiliary_loss), *masses]


def mean_of(parts, counts):
    """The mean over texts, each weighted by its number of tokens."""
    total = sum(counts)
    return [sum(n * part for n, part in zip(counts, of)) / total for of in zip(*parts)]


@for_every_layer
@pytest.mark.parametrize("kind", ["key_lengths", "key_masks"])
def test_padding_changes_neither_loss_nor_mass(name, scores, warms_up, causal, kind):
    layer, x, lengths = made(name, scores, warms_up, causal), tokens(3), torch.tensor([T, 4, 7])
    real = torch.arange(T) < lengths[:, None]
    expected = mean_of(
        [results(layer, x[b : b + 1, :n]) for b, n in enumerate(lengths.tolist())],
        lengths.tolist(),
    )
    given = dict(key_lengths=lengths) if kind == "key_lengths" else dict(key_masks=real)
    got = results(layer, x.masked_fill(~real[..., None], 9.0), **given)
    torch.testing.assert_close(got, expected)


@for_every_layer
def test_packed_documents_learn_alone(name, scores, warms_up, causal):
    layer, x = made(name, scores, warms_up, causal), tokens(1)
    expected = mean_of([results(layer, x[:, :4]), results(layer, x[:, 4:])], [4, T - 4])
    torch.testing.assert_close(results(layer, x, cu_seqlens=torch.tensor([0, 4, T])), expected)


@for_every_layer
@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_an_adjacency_of_two_parts_learns_them_alone(name, scores, warms_up, causal):
    layer, x = made(name, scores, warms_up, causal, WITHOUT_SINKS), tokens(1)
    parts = torch.block_diag(torch.ones(4, 4), torch.ones(T - 4, T - 4)).bool()
    expected = mean_of([results(layer, x[:, :4]), results(layer, x[:, 4:])], [4, T - 4])
    torch.testing.assert_close(results(layer, x, adjacency=parts), expected)
    if name != "union" and not warms_up:
        layer.measures_mass = False
        layer(x, adjacency=parts.to_sparse_csr())
        torch.testing.assert_close(layer.auxiliary_loss, expected[0])
        torch.testing.assert_close(
            [*learned(layer, layer.auxiliary_loss)],
            expected[1 : 1 + len([*layer.indexer.parameters()])],
        )


def test_a_token_without_a_key_gives_no_nan():
    layer, x = made("topk", "softmax", False, False), tokens(2)
    masks = torch.ones(2, T, dtype=torch.bool)
    masks[0] = False
    got = results(layer, x, key_masks=masks)
    assert all(each.isfinite().all() for each in got)
