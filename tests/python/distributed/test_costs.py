"""The cost model, compared with what is computed and sent."""

from __future__ import annotations

import pytest
import torch
from ranks import run_on_ranks
from torch.utils.flop_counter import FlopCounterMode

WINDOWS = {
    "short": (True, [3, 9]),
    "longer than a shard": (True, [2, 30]),
    "both sides": (False, [(3, 2), (7, 5)]),
    "one unbounded": (True, [4, -1]),
    "left unbounded": (False, [(-1, 2), 4]),
    "everything": (False, None),
}


def received(rank, ranks, unbounded):
    """By window: the bytes that this rank sent, and those that the model expects it to receive."""
    from torch.distributed.device_mesh import init_device_mesh

    import nsimplex.distributed
    from nsimplex.distributed.costs import LayerShape, context_parallel_bytes

    mesh, found = init_device_mesh("cpu", (ranks,)), {}
    for name, (causal, window) in WINDOWS.items():
        shape = LayerShape(48, 0, 4, 2, 8, 2, window, batch=3, causal=causal, width=4)
        with nsimplex.distributed.context_parallel(mesh, unbounded=unbounded) as context:
            query = torch.zeros(3, 4, 48 // ranks, 8)
            tensors = [torch.zeros(3, 2, 48 // ranks, 8) for _ in range(4)]
            context.attention(query, tensors[:2], tensors[2:], causal=causal, window=window)
            expected = context_parallel_bytes(shape, ranks, rank, unbounded)
            found[name] = (context.traffic[0].sent, expected)
    return found


@pytest.mark.parametrize("ranks", [2, 4])
def test_bytes_of_context_parallel_are_those_that_are_counted(ranks):
    found = run_on_ranks(ranks, received, "gather")
    for name in WINDOWS:
        sent = sum(each[name][0] for each in found)
        assert sent == sum(each[name][1] for each in found) > 0, name


def test_bytes_of_the_ring_are_those_that_are_counted():
    sent, expected = run_on_ranks(4, received, "ring")[1]["one unbounded"]
    assert sent == expected


def sums(rank, ranks):
    """Sums over the ranks in a forward and in a backward pass of a block."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.debug import CommDebugMode

    import nsimplex.distributed
    from nsimplex import nn

    attention = nn.SimplicialAttention(8, 4, causal=True)
    block = nn.TransformerBlock(attention, nn.FeedForward(8, 12))
    nsimplex.distributed.tensor_parallel(block, init_device_mesh("cpu", (ranks,)))
    x, counts = torch.randn(2, 6, 8, requires_grad=True), []
    with CommDebugMode() as mode:
        loss = block(x).sum()
    counts.append(mode.get_total_counts())
    with CommDebugMode() as mode:
        loss.backward()
    counts.append(mode.get_total_counts())
    return counts


def test_tensor_parallel_sums_twice_per_pass():
    from nsimplex.distributed.costs import LayerShape, tensor_parallel_bytes

    assert run_on_ranks(2, sums) == [[2, 2]] * 2
    shape = LayerShape(6, 8, 4, 4, 2, hidden=12, batch=2, width=4)
    assert tensor_parallel_bytes(shape, 2) == 2 * 2 * 0.5 * (2 * 6 * 8 * 4)


def test_flops_are_those_of_the_flop_counter():
    from nsimplex import nn
    from nsimplex.distributed.costs import LayerShape, layer_flops

    attention = nn.SimplicialAttention(12, 6, kv_heads=2, head_dim=4, causal=True, window=[3, 9])
    block = nn.TransformerBlock(attention, nn.FeedForward(12, 16))
    shape = LayerShape(20, 12, 6, 2, 4, 2, [3, 9], 16, 2)
    assert shape.weights == sum(p.numel() for p in block.parameters()) - 2 * 12  # norms
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        block(torch.randn(2, 20, 12))
    assert counter.get_total_flops() == layer_flops(shape)


def test_imbalance():
    from nsimplex.distributed.costs import LayerShape, context_parallel_imbalance

    whole = LayerShape(1 << 16, 64, 4, 4, 16, 1)
    assert abs(context_parallel_imbalance(whole, 4) - (2 - 1 / 4)) < 1e-4
    windows = LayerShape(1 << 16, 64, 4, 4, 16, 2, [32, 512])
    assert 1 <= context_parallel_imbalance(windows, 4) < 1.02
