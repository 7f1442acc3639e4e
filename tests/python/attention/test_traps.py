"""What other libraries' callers would get wrong in silence: refused, or taken as they mean it."""

from __future__ import annotations

import re

import pytest
import torch

import nsimplex

FUNCTIONS = [nsimplex.attention, nsimplex.reference, nsimplex.face_attention]


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def decode():
    """One query after 40 keys, which lie in 64 slots."""
    query, keys = draw(2, 2, 1, 8), [draw(2, 2, 64, 8), draw(2, 2, 64, 8)]
    return query, keys, torch.tensor([40, 40])


PLACES = [
    dict(causal=True),
    dict(window=[8, 16]),
    dict(window=[-1, (3, 2)]),
    dict(distinct="with_query"),
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("places", PLACES)
def test_padded_slots_seen_by_place_are_refused(function, places):
    query, keys, lengths = decode()
    with pytest.raises(
        ValueError, match=r"key_lengths: with .* expected as many keys as queries, got 64"
    ) as error:
        function(query, keys, keys, key_lengths=lengths, **places)
    for cure in ("query_positions", "slice keys and values to their length", "key_masks"):
        assert cure in str(error.value)


@pytest.mark.parametrize("places", PLACES)
def test_what_the_message_names_works(places):
    """Sliced keys, and keys padded in front."""
    query, keys, _lengths = decode()
    sliced = [key[:, :, :40] for key in keys]
    expected = nsimplex.attention(query, sliced, sliced, **places)
    assert expected.abs().min() > 0
    front = [torch.cat([key[:, :, 40:], key[:, :, :40]], 2) for key in keys]
    real = (torch.arange(64) >= 24).expand(2, -1)
    padded = nsimplex.attention(query, front, front, key_masks=[real, real], **places)
    torch.testing.assert_close(padded, expected)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_padded_batches_and_what_sees_all_keys_stay(function):
    query, keys, lengths = decode()
    function(query, keys, keys, key_lengths=lengths)
    function(query, keys, keys, key_lengths=lengths, window=-1)
    same = draw(2, 2, 64, 8)
    out = function(same, keys, keys, key_lengths=lengths, causal=True, window=[8, 16])
    whole = function(
        same[:, :, :40],
        [k[:, :, :40] for k in keys],
        [k[:, :, :40] for k in keys],
        causal=True,
        window=[8, 16],
    )
    torch.testing.assert_close(out[:, :, :40], whole)


def test_topk_and_weights_refuse_padded_slots_too():
    query, keys, lengths = decode()
    for function in (nsimplex.topk_keys, nsimplex.topk_keys_reference):
        with pytest.raises(
            ValueError,
            match="key_lengths: with causal, expected as many keys as queries, got 64 in key ",
        ):
            function(query, keys[0], 4, causal=True, key_lengths=lengths)
        function(query, keys[0], 4, key_lengths=lengths)
    options = dict(causal=True, key_lengths=lengths)
    for call in (
        lambda: nsimplex.attention_weights(query, keys, **options),
        lambda: nsimplex.attention_marginals(query, keys, axis=0, **options),
        lambda: nsimplex.attention_received(query, keys, axis=0, **options),
        lambda: nsimplex.topk_tuples(query, keys, 4, **options),
    ):
        with pytest.raises(ValueError, match="key_lengths: with causal"):
            call()


def test_sizes_are_compared_in_compiled_and_exported_code():
    """Without looking at lengths: the number of queries is the number of keys, whatever it is."""

    def causal(query, key, lengths):
        return nsimplex.attention(
            query, [key, key], [key, key], causal=True, window=[4, 8], key_lengths=lengths
        )

    class Causal(torch.nn.Module):
        def forward(self, x, lengths):
            return causal(x, x, lengths)

    compiled = torch.compile(causal, fullgraph=True, dynamic=True, backend="aot_eager")
    for length in (12, 17):
        x, lengths = draw(2, 2, length, 8), torch.tensor([length, 5])
        torch.testing.assert_close(compiled(x, x, lengths), causal(x, x, lengths))
    with pytest.raises(Exception, match="expected as many keys as queries"):
        compiled(draw(2, 2, 1, 8), draw(2, 2, 64, 8), torch.tensor([40, 40]))

    dynamic = torch.export.Dim("T", min=2, max=64)
    x, lengths = draw(2, 2, 12, 8), torch.tensor([12, 5])
    program = torch.export.export(
        Causal(), (x, lengths), dynamic_shapes={"x": {2: dynamic}, "lengths": None}
    )
    x = draw(2, 2, 17, 8)
    torch.testing.assert_close(program.module()(x, lengths), causal(x, x, lengths))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_int32_lengths_and_boundaries(function):
    x = draw(2, 2, 12, 6).requires_grad_()
    for options in (
        dict(key_lengths=torch.tensor([12, 5])),
        dict(cu_seqlens=torch.tensor([0, 5, 12])),
    ):
        wide = function(x, [x, x], [x, x], causal=True, **options)
        narrow = function(
            x, [x, x], [x, x], causal=True, **{name: t.int() for name, t in options.items()}
        )
        assert torch.equal(wide, narrow)
        torch.testing.assert_close(
            *(torch.autograd.grad(out.sum(), x)[0] for out in (wide, narrow))
        )
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    bounds = torch.tensor([0, 5, 12], dtype=torch.int32)
    if function is not nsimplex.face_attention:
        torch.testing.assert_close(
            compiled(x, [x], [x], cu_seqlens=bounds), function(x, [x], [x], cu_seqlens=bounds)
        )
    chosen = nsimplex.topk_keys(
        x.detach(), x.detach(), 3, key_lengths=torch.tensor([12, 5], dtype=torch.int32)
    )
    assert chosen[1].max() < 5


SELF = 7


@pytest.mark.parametrize(
    "shape", [(SELF,), (SELF, SELF), (1, SELF, SELF), (1, 1, SELF, SELF), (2, 1, SELF, SELF)]
)
def test_masks_of_pairs_are_refused_at_higher_order(shape):
    x = draw(1, 2, SELF, 6)
    for function in FUNCTIONS:
        with pytest.raises(
            ValueError,
            match=r"mask: (expected 3 dimensions or more at order 2|shape .* may be of pairs)",
        ):
            function(x, [x, x], [x, x], mask=torch.ones(shape, dtype=torch.bool))
    if shape[0] == 1 or len(shape) < 3:
        nsimplex.attention(x, [x], [x], mask=torch.ones(shape, dtype=torch.bool))  # as in torch


def test_a_mask_of_pairs_with_ones_for_the_other_axes():
    x, earlier = draw(1, 2, SELF, 6), torch.ones(SELF, SELF, dtype=torch.bool).tril()
    both = earlier[:, :, None] & earlier[:, None, :]
    causal = nsimplex.attention(x, [x, x], [x, x], causal=True)
    torch.testing.assert_close(nsimplex.attention(x, [x, x], [x, x], mask=both), causal)
    for mask in (
        earlier[:, :, None],
        earlier[:, None, :],
        both[None, None],
        both.new_ones(1, 1, 1, SELF, SELF),
    ):
        nsimplex.attention(x, [x, x], [x, x], mask=mask)
    with pytest.raises(ValueError, match=r"may be of pairs or of tuples at order 3"):
        nsimplex.attention(x, [x] * 3, [x] * 3, mask=both.new_ones(1, 1, SELF, SELF))


INSIDE = dict(layout="bthd")


def swapped(*tensors):
    return [t.transpose(1, 2).contiguous() for t in tensors]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_layout_is_a_view(function):
    query, k1, k2 = draw(2, 4, 5, 6), draw(2, 2, 7, 6), draw(2, 2, 9, 6)
    options = dict(causal=True, return_lse=True)
    out, lse = function(query, [k1, k2], [k1, k2], **options)
    q, a, b = swapped(query, k1, k2)
    inside, inside_lse = function(q, [a, b], [a, b], **options, **INSIDE)
    assert inside.shape == (2, 5, 4, 6) and inside.is_contiguous()
    torch.testing.assert_close(inside, out.transpose(1, 2))
    torch.testing.assert_close(inside_lse, lse)


def test_layout_of_the_other_functions():
    query, k1 = draw(2, 4, 9, 6), draw(2, 2, 9, 6)
    k2 = 0.7 * k1.flip(2, 3)
    q, a, b = swapped(query, k1, k2)
    sets = torch.arange(9).view(-1, 1).sub(torch.arange(3)).clamp_min(-1)[None]
    for function in (nsimplex.sparse_attention, nsimplex.sparse_reference):
        torch.testing.assert_close(
            function(q, [a, b], [a, b], sets, pattern="product", **INSIDE).transpose(1, 2),
            function(query, [k1, k2], [k1, k2], sets, pattern="product"),
        )
    for function in (nsimplex.separable_attention, nsimplex.separable_reference):
        torch.testing.assert_close(
            function(q, [a, b], [a, b], causal=True, **INSIDE).transpose(1, 2),
            function(query, [k1, k2], [k1, k2], causal=True),
        )
    torch.testing.assert_close(nsimplex.rotary(q, **INSIDE).transpose(1, 2), nsimplex.rotary(query))
    for function, more in (
        (nsimplex.attention_weights, {}),
        (nsimplex.attention_marginals, dict(axis=1)),
        (nsimplex.attention_received, dict(axis=1)),
    ):
        torch.testing.assert_close(
            function(q, [a, b], **more, **INSIDE), function(query, [k1, k2], **more)
        )
    for ours, expected in zip(
        nsimplex.topk_tuples(q, [a, b], 3, **INSIDE), nsimplex.topk_tuples(query, [k1, k2], 3)
    ):
        assert torch.equal(ours, expected)
    for function in (nsimplex.topk_keys, nsimplex.topk_keys_reference):
        assert torch.equal(function(q, a, 3, **INSIDE), function(query, k1, 3))
    torch.testing.assert_close(
        nsimplex.indexer_loss(q, a, q, [a, b], causal=True, **INSIDE),
        nsimplex.indexer_loss(query, k1, query, [k1, k2], causal=True),
    )


@pytest.mark.parametrize("scale", [torch.nan, torch.inf, -torch.inf])
def test_a_scale_is_a_finite_number(scale):
    x, ball = torch.randn(1, 1, 4, 4), torch.rand(3, 4) / 4
    sets = torch.zeros(1, 1, 4, 1, dtype=torch.long)
    for name, call in (
        (
            "sparse_attention] scale",
            lambda: nsimplex.sparse_attention(x, [x], [x], sets, pattern="product", scale=scale),
        ),
        ("topk_keys] scale", lambda: nsimplex.topk_keys(x, x, 1, scale=scale)),
        ("causal_angles] scale", lambda: nsimplex.causal.causal_angles(ball, scale=scale)),
    ):
        with pytest.raises(ValueError, match=re.escape(f"[{name}: expected a finite number, got ")):
            call()


def test_layout_in_compiled_code_and_by_another_name():
    q = draw(2, 9, 4, 6)
    call = lambda q: nsimplex.attention(q, [q, q], [q, q], causal=True, **INSIDE)
    torch.testing.assert_close(torch.compile(call, fullgraph=True, backend="aot_eager")(q), call(q))
    with pytest.raises(
        ValueError, match=re.escape("[attention] layout: expected 'bhtd' or 'bthd', got 'bshd'")
    ):
        nsimplex.attention(q, [q], [q], layout="bshd")
    cache = nsimplex.KeyValueCache([4])
    with pytest.raises(ValueError, match="layout: expected 'bhtd' in a cache"), torch.no_grad():
        cache.attend(q, [q], [q], layout="bthd")
