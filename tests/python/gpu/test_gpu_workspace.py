"""The workspace that attention_workspace states is what the launches allocate."""

from __future__ import annotations

from unittest import mock

import pytest
import torch

import nsimplex

pytestmark = pytest.mark.interpreted

#: name: lengths of the axes, and options
CALLS = {
    "windows": ((10, 10), dict(causal=True, window=[4, 9])),
    "several boxes of tuples": ((10, 10, 10), dict(causal=True, window=[6, 6, 9])),
    "lengths": ((10, 10), dict(key_lengths=torch.tensor([5, 9]))),
    "positions": ((30, 7), dict(query_positions=torch.tensor([3, 20]), causal=True)),
}


@pytest.fixture(autouse=True)
def on_cpu(bench):
    from kernels_on_cpu import put_under_cpu

    put_under_cpu()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CALLS)
def test_states_what_is_allocated(name, dtype):
    lengths, options = CALLS[name]

    def draw(*sizes):
        return torch.randn(*sizes, dtype=dtype, requires_grad=True)

    query = draw(2, 2, 10, 16)
    keys, values = ([draw(2, 1, length, 16) for length in lengths] for _ in "kv")
    stated = nsimplex.attention_workspace(query, keys, values, **options)
    allocated = [0]

    def counted(function):
        def call(*args, **named):
            result = function(*args, **named)
            # A tensor of one number stands for one that is not used.
            if result.numel() > 1:
                allocated[0] += result.numel() * result.element_size()
            return result

        return call

    with (
        mock.patch("torch.empty", counted(torch.empty)),
        mock.patch("torch.zeros", counted(torch.zeros)),
    ):
        out, lse = nsimplex.attention(query, keys, values, return_lse=True, **options)
        forward, allocated[0] = allocated[0], 0
        (out.float().sum() + lse.clamp(-9, 9).sum()).backward()
    assert stated.forward_bytes == forward - lse.numel() * 4
    assert stated.backward_bytes == pytest.approx(allocated[0], abs=4)


def test_numbers_follow_from_sizes():
    """A call larger than any memory here is planned all the same; the parts stay bounded."""
    from nsimplex.gpu.attention_backward_plan import MOST_PART_BYTES

    def view(*sizes):
        return torch.zeros(1, dtype=torch.bfloat16).expand(*sizes)

    query, key = view(4, 128, 8192, 128), view(4, 1, 8192, 128)
    plain = nsimplex.attention_workspace(query, [key] * 2, [key] * 2, causal=True, window=[32, 512])
    statistics = 4 * 4 * 4 * 128 * 8192
    assert statistics < plain.backward_bytes < statistics + MOST_PART_BYTES
    assert plain.forward_bytes == 0
    whole = nsimplex.attention_workspace(query, [key] * 2, [key] * 2, causal=True)
    assert whole.backward_bytes > plain.backward_bytes
