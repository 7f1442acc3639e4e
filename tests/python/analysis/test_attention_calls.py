"""Entropy, marginal weights and parts of recorded attention calls."""

import pytest
import torch

from nsimplex.analysis.attention_calls import AttentionCall

CASES = {
    "causal": dict(causal=True),
    "window": dict(window=[3, -1, 2, 1], causal=True),
    "lengths": dict(key_lengths=torch.tensor([5])),
    "masks": dict(key_masks=[torch.tensor([[True, False, True, True, False, True]])] * 2),
    "documents": dict(cu_seqlens=torch.tensor([0, 2, 6])),
    "bias": dict(mask=torch.linspace(-1, 1, 216).view(6, 6, 6).sin()),
    "one row": dict(mask=torch.linspace(-1, 1, 36).view(1, 1, 1, 6, 6).cos()),
    "forbidden": dict(mask=torch.arange(216).view(6, 6, 6) % 3 > 0),
    "distinct": dict(distinct="with_query"),
    "positions": dict(causal=True, query_positions=torch.tensor([[0, 0, 1, 3, 4, 5]])),
    "sigmoid": dict(normalizer="sigmoid"),
}


def weights_of(call):
    """All weights of a call of order 2, by one-hot values."""
    return torch.stack(
        [
            torch.stack(
                [
                    call.run(
                        call.query,
                        call.keys,
                        [
                            torch.eye(6, dtype=torch.float64)[j].view(1, 1, 6, 1).expand(1, 2, 6, 1)
                            for j in (first, second)
                        ],
                    )[0][..., 0]
                    for second in range(6)
                ],
                -1,
            )
            for first in range(6)
        ],
        -2,
    )


@pytest.mark.parametrize("name", CASES)
def test_entropy_marginals_and_rows_are_those_of_the_weights(name, double):
    options = CASES[name]
    mask = options.get("mask")
    if mask is not None and mask.is_floating_point():
        options = options | dict(mask=mask.double())
    tensors = [torch.randn(1, 2, 6, 4) for _ in range(5)]
    call = AttentionCall(tensors[0], tensors[1:3], tensors[3:], options)
    weights = weights_of(call)
    for axis in range(2):
        torch.testing.assert_close(call.marginals(axis), weights.sum(4 - axis))
    chosen = torch.tensor([1, 4, 5])
    torch.testing.assert_close(weights_of(call.rows(chosen)), weights[:, :, chosen])
    if name != "sigmoid":
        entropy, uniform = call.entropy()
        expected = torch.special.entr(weights).sum((3, 4))
        empty = weights.sum((3, 4)) == 0
        torch.testing.assert_close(entropy, expected.masked_fill(empty, torch.nan), equal_nan=True)
        counts = (weights > 0).sum((3, 4)).double().log().masked_fill(empty, torch.nan)
        torch.testing.assert_close(uniform, counts, equal_nan=True)


def test_an_entry_of_a_batch_has_its_own_options():
    query, key = torch.randn(2, 2, 2, 4, 3)
    call = AttentionCall(query, [key], [key], dict(key_lengths=torch.tensor([2, 4])))
    out = call.run(query, [key], [key])[0]
    for batch in range(2):
        one = call.entry(batch)
        torch.testing.assert_close(one.run(one.query, one.keys, one.values)[0], out[batch, None])
