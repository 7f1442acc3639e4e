"""Context parallel attention equals that of one process, forward and backward."""

from __future__ import annotations

import pytest
import torch
from ranks import run_on_ranks
from sharding_cases import draw

from nsimplex.distributed import ContextParallel, context_parallel

LENGTH = 24


def tuples(order, heads=4, kv_heads=2, width=6, batch=2, length=LENGTH):
    names = [heads, *[kv_heads] * (2 * order)]
    return [draw(batch, each, length, width, seed=m) for m, each in enumerate(names)]


#: name: (order, options); key masks are drawn from their shape.
CASES = {
    "order 1, window": (1, dict(causal=True, window=[5])),
    "order 1, causal": (1, dict(causal=True)),
    "order 1, everything": (1, {}),
    "order 2, windows": (2, dict(causal=True, window=[3, 10])),
    "order 2, window longer than two shards": (2, dict(causal=True, window=[2, 20])),
    "order 2, both sides": (2, dict(window=[(3, 2), (4, 9)])),
    "order 2, one unbounded": (2, dict(causal=True, window=[3, -1])),
    "order 2, left or right": (2, dict(window=[(-1, 3), (4, -1)])),
    "order 2, sum, sink": (
        2,
        dict(
            causal=True,
            window=[4, 7],
            reduce="sum",
            normalizer="softmax_sink",
            sink=draw(4, seed=50),
        ),
    ),
    "order 2, augment": (2, dict(causal=True, window=[3, 6], augment=[1])),
    "order 2, distinct": (2, dict(window=[(3, 2), (6, 1)], distinct="with_query")),
    "order 2, determinant": (2, dict(causal=True, window=[4, 7], form="determinant")),
    "order 2, lengths": (2, dict(window=[(4, 3), 7], key_lengths=torch.tensor([13, 22]))),
    "order 2, masks": (2, dict(causal=True, window=[4, 7], key_masks=True)),
    "order 2, documents": (
        2,
        dict(causal=True, window=[4, 9], cu_seqlens=torch.tensor([0, 5, 5, 7, 15, LENGTH])),
    ),
    "order 2, documents, both sides": (
        2,
        dict(window=[(4, 3), (-1, 2)], cu_seqlens=torch.tensor([0, 10, LENGTH])),
    ),
    "order 2, documents, distinct": (
        2,
        dict(window=[(4, 3), 5], distinct="axes", cu_seqlens=torch.tensor([0, 10, LENGTH])),
    ),
    "order 2, face": (2, dict(causal=True, window=[3, 5], face=True)),
    "order 3, windows": (3, dict(causal=True, window=[2, 3, 9])),
}

#: Those that go round the ring.
RING = {
    "order 1, causal": CASES["order 1, causal"],
    "order 1, everything": CASES["order 1, everything"],
    "order 1, sink": (1, dict(causal=True, normalizer="softmax_sink", sink=draw(4, seed=50))),
    "order 2, one unbounded": CASES["order 2, one unbounded"],
    "order 2, first unbounded, both sides": (2, dict(window=[(-1, -1), (3, 4)])),
    "order 2, first without later keys": (2, dict(window=[(-1, 0), (3, 4)])),
    "order 3, one unbounded": (3, dict(causal=True, window=[2, -1, 4])),
}


def difference(a, b):
    same = a == b
    size = 1 + b.masked_fill(same, 0).abs().max()
    return ((a - b).masked_fill(same, 0).abs().max() / size).item()


def compare(context, order, options):
    """The largest difference of outputs, lse and gradients from those of one process."""
    import nsimplex

    options = dict(options)
    face = options.pop("face", False)
    masks = [draw(2, LENGTH, seed=70 + m) > -0.7 for m in range(order)]
    whole = [x.requires_grad_() for x in tuples(order)]
    sink = options.get("sink")
    own = [context.shard(x.detach(), 2).clone().requires_grad_() for x in whole]
    weight, slope = draw(*whole[0].shape, seed=90), draw(*whole[0].shape[:3], seed=91)
    results = []
    for call, x, given, w, s in (
        (nsimplex.face_attention if face else nsimplex.attention, whole, masks, weight, slope),
        (
            context.attention,
            own,
            [context.shard(mask) for mask in masks],
            context.shard(weight, 2),
            context.shard(slope, 2),
        ),
    ):
        more = dict(options)
        if sink is not None:
            more["sink"] = sink.clone().requires_grad_()
        if more.get("key_masks"):
            more["key_masks"] = given
        if call == context.attention and face:
            more["face"] = True
        if face:
            out, lse = call(x[0], x[1 : 1 + order], x[1 + order :], **more), None
        else:
            out, lse = call(x[0], x[1 : 1 + order], x[1 + order :], return_lse=True, **more)
        loss = (out * w).sum()
        if lse is not None:
            loss = loss + (lse.masked_fill(lse.isinf(), 0) * s).sum()
        inputs = [*x, more["sink"]] if sink is not None else x
        grads = torch.autograd.grad(loss, inputs)
        results.append([out.detach(), *([] if lse is None else [lse.detach()]), *grads])
    (want, got), errors = results, []
    if sink is not None:
        total = got.pop()
        torch.distributed.all_reduce(total)
        errors.append(difference(total, want.pop()))
    for a, b in zip(got, want, strict=True):
        errors.append(difference(a, context.shard(b, 2)))
    return max(errors)


def operators(rank, ranks, cases, unbounded):
    from torch.distributed.device_mesh import init_device_mesh

    import nsimplex.distributed

    mesh = init_device_mesh("cpu", (ranks,))
    with nsimplex.distributed.context_parallel(mesh, unbounded=unbounded) as context:
        return {name: compare(context, *case) for name, case in cases.items()}


@pytest.mark.parametrize("ranks", [2, 4])
def test_attention_equals_that_of_one_process(ranks):
    for found in run_on_ranks(ranks, operators, CASES, "gather"):
        assert {name: error for name, error in found.items() if not error < 1e-6} == {}


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_ring_equals_one_process(ranks):
    """The order of the sums differs more than with gathered keys."""
    for found in run_on_ranks(ranks, operators, RING, "ring"):
        assert {name: error for name, error in found.items() if not error < 4e-6} == {}


SEPARABLE = {
    "causal": (2, dict(causal=True)),
    "everything": (2, {}),
    "windows": (2, dict(causal=True, window=[3, -1])),
    "both sides": (2, dict(window=[(-1, -1), (4, 3)])),
    "signed features": (1, dict(causal=True, features=None)),
    "random features": (1, dict(causal=True, features="random")),
    "order 3": (3, dict(causal=True, features="relu")),
}


def separable_and_topk(rank, ranks):
    from torch.distributed.device_mesh import init_device_mesh

    import nsimplex
    import nsimplex.distributed

    mesh, found = init_device_mesh("cpu", (ranks,)), {}
    with nsimplex.distributed.context_parallel(mesh) as context:
        for name, (order, options) in SEPARABLE.items():
            whole = [(0.5 * x).double().requires_grad_() for x in tuples(order)]
            own = [context.shard(x.detach(), 2).clone().requires_grad_() for x in whole]
            weight, results = draw(*whole[0].shape, seed=90).double(), []
            for call, x, w in (
                (nsimplex.separable_attention, whole, weight),
                (context.separable_attention, own, context.shard(weight, 2)),
            ):
                out = call(x[0], x[1 : 1 + order], x[1 + order :], **options)
                results.append([out.detach(), *torch.autograd.grad((out * w).sum(), x)])
            found[name] = max(
                difference(got, context.shard(want, 2)) for want, got in zip(*results)
            )
        query, key, *_ = tuples(1)
        for name, options in {
            "topk": {},
            "topk causal": dict(causal=True, scores="softmax", weights=draw(2, 4, LENGTH).abs()),
            "topk lengths": dict(causal=True, key_lengths=torch.tensor([9, 20])),
        }.items():
            want = nsimplex.topk_keys(query, key, 5, **options)
            if "weights" in options:
                options["weights"] = context.shard(options["weights"], 2)
            got = context.topk_keys(context.shard(query, 2), context.shard(key, 2), 5, **options)
            found[name] = 0.0 if torch.equal(got, context.shard(want)) else float("inf")
    return found


@pytest.mark.parametrize("ranks", [2, 4])
def test_separable_attention_carries_its_state_and_keys_are_chosen_among_all(ranks):
    for found in run_on_ranks(ranks, separable_and_topk):
        assert {name: error for name, error in found.items() if not error < 1e-9} == {}


def sent(rank, ranks, lengths, options, dtype):
    """Bytes that a layer sends in a forward and a backward pass, by length of the sequence."""
    from torch.distributed.device_mesh import init_device_mesh

    import nsimplex.distributed

    mesh, found = init_device_mesh("cpu", (ranks,)), []
    for length in lengths:
        with nsimplex.distributed.context_parallel(mesh) as context:
            x = [
                torch.zeros(1, 2, length // ranks, 4, dtype=dtype, requires_grad=True)
                for _ in range(5)
            ]
            context.attention(x[0], x[1:3], x[3:], causal=True, **options).sum().backward()
            (traffic,) = context.traffic
            assert f"sent {traffic.sent} bytes" in context.report()
            found.append((traffic.sent, traffic.returned, traffic.messages))
    return found


def test_bytes_do_not_grow_with_the_length_for_windows_of_32_and_512():
    lengths, heads, width = [2048, 4096, 8192], 2, 4
    halo = (31 + 511) * heads * 2 * width * 4  # keys and values in float32
    first, second = run_on_ranks(2, sent, lengths, dict(window=[32, 512]), torch.float32)
    assert first == [(halo, 0, 1)] * 3  # keys go to the next rank
    assert second == [(0, halo, 0)] * 3  # and their gradients come back


def test_a_window_longer_than_a_shard_reaches_several_ranks():
    found = run_on_ranks(4, sent, [64], dict(window=[1, 40]), torch.float64)
    row = 2 * 2 * 4 * 8
    # shards of 16: a rank sends 16 rows to each of the next two, and 7 to the third
    assert [each[0][0] for each in found] == [(16 + 16 + 7) * row, 32 * row, 16 * row, 0]
    assert [each[0][2] for each in found] == [3, 2, 1, 0]


def test_documents_shorten_the_halo():
    bounds = torch.tensor([0, 1000, 1030, 2048])
    first, _ = run_on_ranks(
        2, sent, [2048], dict(window=[32, 512], cu_seqlens=bounds), torch.float32
    )
    assert first[0][0] == (24 + 24) * 2 * 2 * 4 * 4  # 1000 .. 1023


def messages(rank, ranks):
    from torch.distributed.device_mesh import init_device_mesh

    import nsimplex
    import nsimplex.distributed

    q, k, v = (x[:, :, : LENGTH // ranks] for x in tuples(1, kv_heads=4))
    layer = nsimplex.nn.SimplicialAttention(8, 2, causal=True)
    chosen = nsimplex.nn.SimplicialAttention(
        8, 2, select=nsimplex.nn.Neighbours(torch.eye(12, dtype=torch.bool))
    )
    linear = nsimplex.nn.SimplicialAttention(8, 2, causal=True, select=nsimplex.nn.Linear())
    x, said = torch.zeros(2, 12, 8), []
    context_parallel = nsimplex.distributed.context_parallel
    square = init_device_mesh("cpu", (ranks, 1))
    mesh = init_device_mesh("cpu", (ranks,))
    with context_parallel(mesh) as context:
        calls = [
            lambda: context.attention(q, [k], [v], mask=torch.zeros(())),
            lambda: context.attention(q, [k[:, :, 1:]], [v]),
            lambda: context.attention(q, [k], [v], cu_seqlens=torch.tensor([0, 12])),
            lambda: context.shard(x[:, 1:]),
            lambda: layer(x, cache=layer.make_cache()),
            lambda: layer(x, positions=torch.arange(12).expand(2, -1)),
            lambda: chosen(x),
            lambda: linear(x, key_masks=torch.ones(2, 12)),
            lambda: context_parallel(square).__enter__(),
            lambda: context_parallel(mesh, unbounded="tree").__enter__(),
        ]
        for call in calls:
            with pytest.raises((TypeError, ValueError)) as caught:
                call()
            said.append(str(caught.value))
    assert layer(x).shape == x.shape  # outside, nothing is sharded
    return said


def test_errors():
    for said in run_on_ranks(2, messages):
        assert said == [
            "[attention] mask: expected None under context_parallel, got a torch.float32 tensor of "
            "shape []",
            "[attention] keys: expected shards of 12 tokens as the query under context_parallel, "
            "got shape [2, 4, 11, 6]",
            "[attention] cu_seqlens: expected 0 <= .. <= 24, the tokens of all ranks, got [0, 12]",
            "[context_parallel] x: expected a multiple of 2 tokens, got 11",
            "[SimplicialAttention] cache and contexts: expected none under context_parallel",
            "[SimplicialAttention] positions: expected None under context_parallel",
            "[SimplicialAttention] select: expected no Neighbours under context_parallel",
            "[SimplicialAttention] key_masks: expected one of bool and shape [2, 12] beside select "
            "Linear, got a torch.float32 tensor of shape [2, 12]",
            "[context_parallel] mesh: expected one dimension, got 2; take one of them by its name, "
            "mesh['name']",
            "[context_parallel] unbounded: expected gather or ring, got 'tree'",
        ]


def uneven(rank, ranks):
    """What each rank says of shards that differ, and the result of equal ones after that."""
    from torch.distributed.device_mesh import init_device_mesh

    import nsimplex.distributed

    nn, said = nsimplex.nn, []
    mesh = init_device_mesh("cpu", (ranks,))
    selections = [None, nn.TopK(2), nn.Linear()]
    layers = [nn.SimplicialAttention(8, 2, causal=True, select=each) for each in selections]
    layers.append(nn.SimplicialAttention(8, 2, order=1, causal=True))
    q, k, v = (x[:, :, : 8 + rank] for x in tuples(1, kv_heads=4))
    with nsimplex.distributed.context_parallel(mesh) as context:
        calls = [lambda layer=layer: layer(torch.ones(2, 8 + rank, 8)) for layer in layers]
        calls += [
            lambda: context.attention(q, [k], [v], window=3),
            lambda: context.unshard(torch.ones(2, 8 + rank, 8)),
            lambda: context.topk_keys(q, k[:, :1], 2),
            lambda: context.attention(q[:, :, :8], [k[:, :, :8]], [v[:, :, : 8 - rank]]),
            lambda: context.unshard(torch.ones(2, 8, 8 + rank)),
        ]
        for call in calls:
            with pytest.raises(ValueError) as caught:
                call()
            said.append(str(caught.value))
        whole = context.unshard(torch.full((1, 2, 1), rank)).flatten().tolist()
    with nsimplex.distributed.context_parallel(mesh, unbounded="ring") as context:
        with pytest.raises(ValueError) as caught:
            context.attention(q, [k], [v])
        said.append(str(caught.value))
    return said, whole


def test_shards_of_different_lengths_are_refused_on_all_ranks():
    found = run_on_ranks(2, uneven)
    for rank, (said, whole) in enumerate(found):
        names = [each.split("]")[0][1:] for each in said]
        assert names[4:7] + names[-1:] == ["attention", "unshard", "topk_keys", "attention"]
        for text in [*said[:7], said[-1]]:
            assert text.endswith(
                "expected shards of one length on all ranks under context_parallel, got 8 tokens "
                "on rank 0 and 9 on rank 1"
            )
        if rank == 0:
            assert said[7].endswith(
                "dtypes on all ranks under context_parallel, got others on rank 1"
            )
        else:
            assert said[7].endswith("of 8 tokens as the query under context_parallel, got shape "
                                    "[2, 4, 7, 6]")  # fmt: skip
        assert said[8].endswith("got others on rank 1")
        assert whole == [0, 0, 1, 1]


def test_no_process_group_is_named():
    if torch.distributed.is_initialized():
        pytest.skip("another test has one")
    for call in (ContextParallel, lambda group: context_parallel(group).__enter__()):
        with pytest.raises(ValueError, match="group: expected a process group, got none; call t"):
            call(None)
