"""Options that name keys by their index, in caches of fixed size: they count a sequence's tokens,
whichever slots or pages hold them."""

import pytest
import torch
from test_static_cache import HEADS, KV, Pages, chunk, sequences, static

import nsimplex
from nsimplex import PagedCache

ROOM = 32  # tokens that slots and block tables of these tests have room for
LENGTHS = [17, 9, 24]


def lengths_of_sequences(order):
    return dict(key_lengths=torch.tensor([11, 7, 20], dtype=torch.int32))


def lengths_per_axis(order):
    return dict(key_lengths=torch.tensor([11, 7, 20]) - torch.arange(order)[:, None])


def masks_per_axis(order):
    generator = torch.Generator().manual_seed(2)
    return dict(key_masks=[torch.rand(3, ROOM, generator=generator) < 0.6 for _ in range(order)])


def mask_of_all_axes(order):
    generator = torch.Generator().manual_seed(3)
    return dict(mask=torch.rand(3, HEADS, 1, *[ROOM] * order, generator=generator) < 0.6)


def mask_of_the_last_axis(order):
    generator = torch.Generator().manual_seed(4)
    shape = 1, *[1] * (order - 1), ROOM
    return dict(mask=torch.randn(shape, generator=generator, dtype=torch.float64))


def mask_of_the_first_axis(order):
    generator = torch.Generator().manual_seed(4)
    shape = ROOM, *[1] * (order - 1)
    return dict(mask=(torch.rand(shape, generator=generator) < 0.6)[None])


OPTIONS = [
    lengths_of_sequences,
    lengths_per_axis,
    masks_per_axis,
    mask_of_all_axes,
    mask_of_the_last_axis,
    mask_of_the_first_axis,
]


def of_whole_pass(options, b, length, order):
    """The options of sequence b alone."""
    cut = {}
    if "key_lengths" in options:
        given = options["key_lengths"][..., b : b + 1]
        cut["key_lengths"] = given.clamp(max=length)
    if "key_masks" in options:
        cut["key_masks"] = [each[b : b + 1, :length] for each in options["key_masks"]]
    if "mask" in options:
        mask = options["mask"]
        if mask.dim() == order + 3:
            mask = mask[b : b + 1]
        places = tuple(slice(length) if size == ROOM else slice(1) for size in mask.shape[-order:])
        cut["mask"] = mask[(..., *places)]
    return cut


@pytest.mark.parametrize("kind", [static, Pages])
@pytest.mark.parametrize("window", [[6], [9, 3], [-1, 4], [2, 5, 3]], ids=str)
@pytest.mark.parametrize("of_order", OPTIONS, ids=lambda each: each.__name__)
def test_masks_count_the_tokens_of_a_sequence(kind, window, of_order):
    """Windows shorter than the sequences, so that a call reads only some pages."""
    order = len(window)
    given, options = sequences(order, LENGTHS), of_order(order)
    expected = [
        nsimplex.attention(
            *each,
            causal=True,
            window=[(w, 0) if w > 0 else -1 for w in window],
            **of_whole_pass(options, b, length, order),
        )
        for b, (each, length) in enumerate(zip(given, LENGTHS))
    ]
    cache, done = kind(window, batch=3), [0] * 3
    for counts in ([5, 1, 8], [3, 4, 1], [0, 1, 3], *[[1] * 3] * 3, [6, 0, 9]):
        parts = chunk(given, done, counts, order)
        out = cache.attend(*parts, counts=torch.tensor(counts), **options)
        for b, count in enumerate(counts):
            torch.testing.assert_close(
                out[b : b + 1, :, :count], expected[b][:, :, done[b] : done[b] + count]
            )
            done[b] += count
    assert done == LENGTHS


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(key_lengths=torch.tensor([3, 33])), r"key_lengths: expected 0 to 32, got 33"),
        (dict(key_lengths=torch.tensor([3, -1])), r"key_lengths: expected 0 to 32, got -1"),
        (dict(key_lengths=torch.tensor([3, 4, 5])), r"key_lengths: expected"),
        (
            dict(key_masks=[torch.ones(2, 8, dtype=torch.bool)]),
            r"key_masks\[0\]: expected shape \[2, 32\]",
        ),
        (dict(mask=torch.ones(1, 9, dtype=torch.bool)), r"\[2, 4, 1, 32\], got \[1, 9\]"),
    ],
)
def test_pages_name_masks_of_another_size(options, message):
    cache = PagedCache([3], pages=16, page=4, kv_heads=KV, head_dim=2, dtype=torch.float64)
    query = torch.ones(2, HEADS, 1, 2, dtype=torch.float64)
    key = torch.ones(2, KV, 1, 2, dtype=torch.float64)
    table = torch.arange(16).view(2, 8)
    with pytest.raises(ValueError, match=message):
        cache.attend(query, [key], [key], table, torch.tensor([20, 9]), **options)
