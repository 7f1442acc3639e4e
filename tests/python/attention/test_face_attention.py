"""Attention with one softmax per face, against ordinary calls and against weights of tuples."""

import pytest
import torch
from problems import naive
from test_attention_weights import make, weighted

import nsimplex


def faces(query, keys, values, *, reduce="product", scale=(0.7, 1.3), **options):
    """The definition, from all logits: one ordinary call a tuple of the first N-1 keys."""
    order = len(keys)
    reached, means, lses = [], [], []
    for flat in range(int(torch.tensor([key.size(2) for key in keys[:-1]] or [1]).prod())):
        rows, row_values, index = [], [], flat
        for key, value in zip(reversed(keys[:-1]), reversed(values[:-1])):
            j = index % key.size(2)
            index //= key.size(2)
            rows.insert(0, key[:, :, j : j + 1])
            row_values.insert(0, value[:, :, j : j + 1])
        out, lse = naive(
            query, [*rows, keys[-1]], [*row_values, values[-1]], reduce=reduce, scale=scale
        )
        means.append(out)
        lses.append(lse)
        reached.append(~lse.isneginf())
    count = torch.stack(reached).sum(0).clamp(min=1)
    out = torch.stack(means).sum(0) / count[..., None]
    lse = torch.stack(lses, -1).unflatten(-1, [key.size(2) for key in keys[:-1]] or [1])
    return out, lse.squeeze(-1) if order == 1 else lse


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("reduce", ["product", "sum", "mean"])
def test_faces_are_ordinary_calls(order, reduce):
    _, query, keys, values, _ = make(order)
    ours = nsimplex.face_attention(
        query, keys, values, reduce=reduce, scale=(0.7, 1.3), return_lse=True
    )
    for a, b in zip(ours, faces(query, keys, values, reduce=reduce)):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("form", ["product", "determinant"])
def test_faces_from_weights(form):
    """Under any mask: weights divided by what their face has together."""
    _, query, keys, values, _ = make(2, queries=40, lengths=[40, 40], batch=1)
    options = dict(causal=True, window=[7, 12], form=form, distinct="axes")
    weights = nsimplex.attention_weights(query, keys, **options)
    total = weights.sum(-1, keepdim=True)
    count = (total > 0).sum((-1, -2))
    exact = weighted(weights / total.clamp(min=1e-300), values, 2) / count.clamp(min=1)[..., None]
    out, lse = nsimplex.face_attention(query, keys, values, return_lse=True, **options)
    torch.testing.assert_close(out, exact)
    _, whole = nsimplex.attention(query, keys, values, return_lse=True, **options)
    torch.testing.assert_close(lse.logsumexp(-1), whole)
    assert (count == 0).any() and not out[count == 0].any()  # the first query has no distinct pair


def test_errors():
    x = torch.zeros(1, 1, 3, 2)
    with pytest.raises(ValueError, match="normalizer: expected its default"):
        nsimplex.face_attention(x, [x], [x], normalizer="relu")
    with pytest.raises(ValueError, match="augment: expected its default"):
        nsimplex.face_attention(x, [x], [x], augment=[0])
