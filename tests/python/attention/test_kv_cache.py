"""Decoding with cached keys and values equals the one-shot causal call, however it is cut."""

import itertools

import pytest
import torch

import nsimplex
from nsimplex import KeyValueCache, LayerCaches


def problem(
    order, tokens, *, batch=2, heads=4, kv_heads=2, dim=8, value_dim=8, dtype=torch.float64
):
    generator = torch.Generator().manual_seed(tokens * 10 + order)

    def draw(h, d):
        return torch.randn(batch, h, tokens, d, generator=generator, dtype=dtype)

    keys = [draw(kv_heads, dim) for _ in range(order)]
    return draw(heads, dim), keys, [draw(kv_heads, value_dim) for _ in range(order)]


def one_shot(query, keys, values, window, **options):
    return nsimplex.attention(
        query, keys, values, causal=True, window=window, return_lse=True, **options
    )


def piece(tensors, first, last):
    return [t[:, :, first:last] for t in tensors]


def decode(cache, query, keys, values, cuts, **options):
    """(out, lse) of the chunks that the cuts leave, side by side."""
    parts = [
        cache.attend(
            query[:, :, a:b], piece(keys, a, b), piece(values, a, b), return_lse=True, **options
        )
        for a, b in itertools.pairwise(cuts)
    ]
    return [torch.cat(each, 2) for each in zip(*parts)]


def compositions(total):
    """Every way to cut [0, total]."""
    for inner in itertools.product((False, True), repeat=total - 1):
        yield [0, *(i + 1 for i, cut in enumerate(inner) if cut), total]


@pytest.mark.parametrize("window", [(3,), (-1,), (2, 4), (5, 1), (-1, 2), (2, 3, 4)])
def test_every_cut_of_a_short_sequence(window):
    tokens = 7 if len(window) < 3 else 6
    query, keys, values = problem(len(window), tokens)
    expected = one_shot(query, keys, values, window)
    for cuts in compositions(tokens):
        actual = decode(KeyValueCache(window), query, keys, values, cuts)
        torch.testing.assert_close(actual, list(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("window", [(16,), (-1,), (4, 24), (3, 5, 9)])
@pytest.mark.parametrize("heads, kv_heads, value_dim", [(4, 4, 8), (6, 2, 5)])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.float32, 2e-5)])
def test_prefill_then_tokens_far_past_the_windows(
    window, heads, kv_heads, value_dim, dtype, tolerance
):
    query, keys, values = problem(
        len(window), 90, heads=heads, kv_heads=kv_heads, value_dim=value_dim, dtype=dtype
    )
    expected = one_shot(query, keys, values, window)
    for prefill in ([0, 40], [0, 1, 18, 40], [0, 7, 30, 31, 40]):
        cuts = prefill + list(range(41, 91))
        actual = decode(KeyValueCache(window), query, keys, values, cuts)
        torch.testing.assert_close(actual, list(expected), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "options",
    [
        dict(reduce="sum"),
        dict(reduce="mean", scale=(0.3, 2.0)),
        dict(scale="unit"),
        dict(form="determinant"),
        dict(normalizer="sigmoid"),
        dict(normalizer="relu"),
        dict(normalizer="softmax_sink", sink=torch.tensor([0.5, -1.0, 2.0, 0.0]).double()),
        dict(augment=[1]),
        dict(augment=True, reduce="sum"),
    ],
)
def test_options_of_the_operator_pass_through(options):
    query, keys, values = problem(2, 20, dim=9, value_dim=5)
    expected = one_shot(query, keys, values, (3, 6), **options)
    actual = decode(KeyValueCache((3, 6)), query, keys, values, [0, 8, *range(9, 21)], **options)
    torch.testing.assert_close(actual, list(expected), rtol=1e-12, atol=1e-12)


def test_append_then_attend_with_the_last_queries():
    query, keys, values = problem(2, 12)
    cache = KeyValueCache((12, 20))
    cache.append(piece(keys, 0, 12), piece(values, 0, 12))
    out, _ = one_shot(query, keys, values, (12, 20))
    torch.testing.assert_close(cache.attend(query[:, :, 7:]), out[:, :, 7:])
    torch.testing.assert_close(cache.attend(query[:, :, 11:]), out[:, :, 11:])


def test_a_chunk_longer_than_the_window_leaves_its_end():
    query, keys, values = problem(1, 30)
    cache = KeyValueCache((4,))
    cache.append(keys, values)
    assert cache.position == 30
    out, _ = one_shot(query, keys, values, (4,))
    torch.testing.assert_close(cache.attend(query[:, :, 29:]), out[:, :, 29:])


def test_memory_stops_growing_at_the_windows():
    query, keys, values = problem(2, 300, batch=1, kv_heads=1, heads=1)
    cache = KeyValueCache((70, 200))
    assert cache.nbytes == 0
    decode(cache, query, keys, values, range(301))
    assert cache.nbytes == (70 + 200) * (8 + 8) * 8
    cache.reset()
    assert (cache.nbytes, cache.position) == (0, 0)


@pytest.mark.parametrize("position", [2, 5, 11, 17])
@pytest.mark.parametrize("way", ["state", "torch", "file"])
def test_continues_from_a_saved_state(tmp_path, position, way):
    query, keys, values = problem(2, 24)
    expected, _ = one_shot(query, keys, values, (3, 7))
    first, second = KeyValueCache((3, 7)), KeyValueCache((3, 7))
    decode(first, query, keys, values, range(position + 1))
    if way == "state":
        second.load_state_dict(first.state_dict())
    elif way == "torch":
        torch.save(first.state_dict(), tmp_path / "cache.pt")
        second.load_state_dict(torch.load(tmp_path / "cache.pt", weights_only=True))
    else:
        LayerCaches([first]).save(tmp_path / "cache.safetensors")
        LayerCaches([second]).load(tmp_path / "cache.safetensors")
    first.reset()  # the state is a copy
    assert second.position == position
    rest = decode(second, query, keys, values, [position, *range(position + 2, 25)])[0]
    torch.testing.assert_close(rest, expected[:, :, position:])


def test_a_state_of_other_windows_is_refused_and_changes_nothing(tmp_path):
    _query, keys, values = problem(2, 9)
    saved, other = KeyValueCache((3, 7)), KeyValueCache((3, 5))
    saved.append(keys, values)
    other.append(piece(keys, 0, 2), piece(values, 0, 2))
    with pytest.raises(ValueError, match=r"expected keys.1 \[B, Hk, 5, channels\] for window 5"):
        other.load_state_dict(saved.state_dict())
    path = tmp_path / "cache.safetensors"
    LayerCaches([saved]).save(path)
    with pytest.raises(
        ValueError, match=r"^cannot use .*: \[KeyValueCache\] state: expected keys.1"
    ):
        LayerCaches([other]).load(path)
    with pytest.raises(ValueError, match="tensors belong to none of 1 layers"):
        LayerCaches([saved, saved]).save(path)
        LayerCaches([other]).load(path)
    assert other.position == 2


def test_select_reorders_and_repeats_batch_entries():
    query, keys, values = problem(2, 14, batch=3)
    entries = torch.tensor([2, 0, 2, 1])
    cache = KeyValueCache((3, 6))
    decode(cache, query, keys, values, range(11))
    cache.select(entries)
    query, keys, values = query[entries], [k[entries] for k in keys], [v[entries] for v in values]
    rest = decode(cache, query, keys, values, [10, 11, 14])[0]
    expected, _ = one_shot(query, keys, values, (3, 6))
    torch.testing.assert_close(rest, expected[:, :, 10:])


def test_works_across_inference_mode():
    query, keys, values = problem(1, 6)
    cache = KeyValueCache((4,))
    with torch.inference_mode():
        decode(cache, query, keys, values, [0, 2, 3])
    with torch.no_grad():
        rest = decode(cache, query, keys, values, [3, 4, 6])[0]
    torch.testing.assert_close(rest, one_shot(query, keys, values, (4,))[0][:, :, 3:])


def test_gradients_are_refused_while_they_are_recorded():
    query, keys, values = problem(1, 3)
    cache = KeyValueCache((4,))
    keys[0].requires_grad_()
    with pytest.raises(ValueError, match=r"keys\[0\]: requires a gradient.*inference only"):
        cache.attend(query, keys, values)
    assert cache.position == 0
    with torch.no_grad():
        assert not cache.attend(query, keys, values).requires_grad


def x(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: KeyValueCache([]), ValueError, "window: expected one entry an axis, got none"),
        (
            lambda: KeyValueCache([4, 0]),
            ValueError,
            "window[1]: expected at least 1, or -1 (all keys), got 0",
        ),
        (
            lambda: KeyValueCache([4]).attend(x(1, 2, 1, 4)),
            ValueError,
            "attend: nothing has been appended yet",
        ),
        (
            lambda: KeyValueCache([4]).select(torch.tensor([0])),
            ValueError,
            "[KeyValueCache] entries: expected a cache that holds tokens to select from, got an "
            "empty one",
        ),
    ],
)
def test_a_new_cache_says_what_it_needs(call, error, words):
    with pytest.raises(error) as raised:
        call()
    assert words in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (
            lambda c, q, k: c.append([k], [k]),
            ValueError,
            "keys: expected one for each of 2 axes, got 1",
        ),
        (
            lambda c, q, k: c.append([k, k], [k]),
            ValueError,
            "values: expected one for each of 2 axes, got 1",
        ),
        (
            lambda c, q, k: c.append([k, x(2, 2, 1, 5)], [k, k]),
            ValueError,
            "keys[1]: expected shape [2, 2, 1, 4], got [2, 2, 1, 5]",
        ),
        (
            lambda c, q, k: c.append([k, x(2, 3, 1, 4)], [k, k]),
            ValueError,
            "keys[1]: expected shape [2, 2, 1, 4]",
        ),
        (
            lambda c, q, k: c.append([k, k], [k, x(2, 2, 2, 4)]),
            ValueError,
            "values[1]: expected shape [2, 2, 1, 4]",
        ),
        (
            lambda c, q, k: c.append([k[:1], k[:1]], [k, k]),
            ValueError,
            "keys[0]: expected shape [2, 2, 1, 4]",
        ),
        (lambda c, q, k: c.append([k[0], k], [k, k]), ValueError, "keys[0]: expected 4 dimensions"),
        (
            lambda c, q, k: c.append([k, k.double()], [k, k]),
            TypeError,
            "keys[1]: expected Float, got Double",
        ),
        (
            lambda c, q, k: c.attend(q[:, :3], [k, k], [k, k]),
            ValueError,
            "query: expected shape [2, a multiple of 2, t, 4]",
        ),
        (
            lambda c, q, k: c.attend(x(2, 4, 2, 4), [k, k], [k, k]),
            ValueError,
            "query: expected a query for each of the 1 keys, got 2",
        ),
        (
            lambda c, q, k: c.attend(q.double(), [k, k], [k, k]),
            TypeError,
            "query: expected Float, got Double",
        ),
        (
            lambda c, q, k: c.attend(x(2, 4, 9, 4)),
            ValueError,
            "query: expected 1 to 3 queries, one per token, got 9",
        ),
        (
            lambda c, q, k: c.attend(x(2, 4, 3, 4)),
            ValueError,
            "axis 0 has dropped keys that the first ones see",
        ),
        (lambda c, q, k: c.attend(q, [k, k]), ValueError, "expected keys and values, or neither"),
        (lambda c, q, k: c.attend(q, window=3), ValueError, "window: belongs to the cache"),
        (lambda c, q, k: c.attend(q, causal=True), ValueError, "causal: belongs to the cache"),
        (
            lambda c, q, k: c.attend(q, key_lengths=torch.tensor([1, 1])),
            ValueError,
            "[KeyValueCache] key_lengths: expected None in a cache",
        ),
        (
            lambda c, q, k: c.attend(q, distinct="axes"),
            ValueError,
            "distinct: expected 'none' in a cache",
        ),
        (
            lambda c, q, k: c.select(torch.tensor([0, 2])),
            ValueError,
            "[KeyValueCache] entries: expected 0 to 1, got 2",
        ),
        (
            lambda c, q, k: c.select(torch.tensor([0.0])),
            TypeError,
            "[KeyValueCache] entries: expected int64, got Float",
        ),
        (
            lambda c, q, k: c.select(torch.tensor([[0]])),
            ValueError,
            "[KeyValueCache] entries: expected shape [B'] with at least 1 entry, got [1, 1]",
        ),
        (lambda c, q, k: c.load_state_dict({}), ValueError, "state: position is missing"),
        (
            lambda c, q, k: c.load_state_dict({"position": torch.tensor(4)}),
            ValueError,
            "state: expected 5 tensors for 2 axes at position 4, got 1",
        ),
    ],
)
def test_what_does_not_fit_is_named_and_changes_nothing(call, error, words):
    cache = KeyValueCache([2, 8])
    key = x(2, 2, 1, 4)
    cache.append([x(2, 2, 3, 4)] * 2, [x(2, 2, 3, 4)] * 2)
    with pytest.raises(error) as raised:
        call(cache, x(2, 4, 1, 4), key)
    assert words in str(raised.value) and "\n" not in str(raised.value)
    assert cache.position == 3
    cache.append([key, key], [key, key])


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {"reduce": "other"},
        {"normalizer": "softmax_sink"},
        {"normalizer": "softmax_sink", "sink": torch.zeros(3)},
        {"scale": "other"},
        {"augment": [4]},
        {"form": "determinant"},
        {"seed": "other"},
        {"other": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("first", [0, 4])
def test_a_refused_option_does_not_append_the_chunk(options, tokens, first):
    """A caller who repeats the call with better options must not append the chunk twice."""
    query, keys, values = problem(2, 12)
    window, last = [3, -1], first + tokens
    cache = KeyValueCache(window)
    if first:
        decode(cache, query, keys, values, [0, first])
    chunk = query[:, :, first:last], piece(keys, first, last), piece(values, first, last)
    with pytest.raises((ValueError, TypeError)):
        cache.attend(*chunk, **options)
    assert cache.position == first
    out = cache.attend(*chunk)
    expected, _ = one_shot(query, keys, values, window)
    torch.testing.assert_close(out, expected[:, :, first:last])
    with pytest.raises((ValueError, TypeError)):  # also after a call that was accepted
        cache.attend(*chunk, **options)
    assert cache.position == last
