"""Slots and pages of fixed size: batches whose sequences differ in length, compiled steps."""

import copy
import pickle

import pytest
import torch
import torch._dynamo.testing

import nsimplex
from nsimplex import (
    KeyValueCache,
    LayerCaches,
    PagedCache,
    SeparableCache,
    StaticCache,
    _fixed_cache,
)

HEADS, KV, DIM, VALUE = 4, 2, 8, 5
WINDOWS = [[-1], [6], [-1, 4], [9, 3], [7, -1, 3]]


def sequences(order, lengths, dtype=torch.float64):
    """(query, keys, values) of each sequence, [1, heads, T, channels]."""
    generator = torch.Generator().manual_seed(5)

    def draw(heads, length, channels):
        return torch.randn(1, heads, length, channels, generator=generator, dtype=torch.float64)

    return [
        (
            draw(HEADS, length, DIM).to(dtype),
            [draw(KV, length, DIM).to(dtype) for _ in range(order)],
            [draw(KV, length, VALUE).to(dtype) for _ in range(order)],
        )
        for length in lengths
    ]


def alone(sequence, window):
    query, keys, values = sequence
    return nsimplex.attention(
        query, keys, values, causal=True, window=[(w, 0) if w > 0 else -1 for w in window]
    )


def chunk(all_sequences, firsts, counts, order):
    """The tokens [first, first + count) of each sequence, padded at the right with what must not
    matter."""
    most = max(counts)

    def cut(tensor, first, count):
        part = tensor[:, :, first : first + count]
        return torch.nn.functional.pad(part, (0, 0, 0, most - count), value=3e3)

    entries = [*zip(all_sequences, firsts, counts)]
    return (
        torch.cat([cut(query, f, c) for (query, _, _), f, c in entries]),
        [torch.cat([cut(keys[m], f, c) for (_, keys, _), f, c in entries]) for m in range(order)],
        [
            torch.cat([cut(values[m], f, c) for (_, _, values), f, c in entries])
            for m in range(order)
        ],
    )


def static(window, batch=1, slots=32, dtype=torch.float64):
    sizes = dict(kv_heads=KV, head_dim=DIM, value_dim=VALUE, dtype=dtype)
    return StaticCache(window, batch=batch, slots=slots, **sizes)


class Pages:
    """A paged cache behind the interface of the static one, its pages handed out in disorder."""

    def __init__(self, window, batch, dtype=torch.float64):
        sizes = dict(kv_heads=KV, head_dim=DIM, value_dim=VALUE, dtype=dtype)
        self.cache = PagedCache(window, pages=8 * batch, page=4, **sizes)
        shuffled = torch.randperm(8 * batch, generator=torch.Generator().manual_seed(0))
        self.table, self.lengths = shuffled.view(batch, 8), torch.zeros(batch, dtype=torch.int64)

    def attend(self, query, keys, values, counts=None, **options):
        out = self.cache.attend(query, keys, values, self.table, self.lengths, counts, **options)
        self.lengths = self.lengths + (query.size(2) if counts is None else counts)
        return out


@pytest.mark.parametrize("kind", [static, Pages])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_ragged_prompts_then_tokens(kind, window):
    """Prompts of different lengths, a second chunk, an entry that pauses, then single tokens."""
    order, lengths = len(window), [17, 9, 24, 12]
    given = sequences(order, lengths)
    expected = [alone(each, window) for each in given]
    cache, done = kind(window, batch=4), [0] * 4
    for counts in ([5, 1, 8, 3], [3, 4, 1, 2], [0, 1, 3, 0], *[[1] * 4] * 3, [6, 0, 9, 4]):
        out = cache.attend(*chunk(given, done, counts, order), counts=torch.tensor(counts))
        for b, count in enumerate(counts):
            torch.testing.assert_close(
                out[b : b + 1, :, :count], expected[b][:, :, done[b] : done[b] + count]
            )
            done[b] += count
    assert done == lengths


@pytest.mark.parametrize("kind", [static, Pages])
def test_64_sequences_decode_as_each_alone(kind):
    order, window = 2, [-1, 6]
    lengths = torch.randint(2, 31, (64,), generator=torch.Generator().manual_seed(1)).tolist()
    given = sequences(order, lengths, torch.float32)
    cache = kind(window, batch=64, dtype=torch.float32)
    prompts = [length - 1 for length in lengths]
    cache.attend(*chunk(given, [0] * 64, prompts, order), counts=torch.tensor(prompts))
    out = cache.attend(*chunk(given, prompts, [1] * 64, order))
    for b, each in enumerate(given):
        torch.testing.assert_close(out[b : b + 1], alone(each, window)[:, :, -1:])


def test_shared_pages_serve_both_sequences():
    """Two sequences with the same beginning, whose full pages are stored once."""
    (first,) = sequences(1, [10])
    (second,) = sequences(1, [2])
    query, keys, values = first
    sizes = dict(kv_heads=KV, head_dim=DIM, value_dim=VALUE, dtype=torch.float64)
    cache = PagedCache([-1], pages=4, page=4, **sizes)
    cache.attend(
        query[:, :, :8],
        [keys[0][:, :, :8]],
        [values[0][:, :, :8]],
        torch.tensor([[2, 0]]),
        torch.tensor([0]),
    )
    table, lengths = torch.tensor([[2, 0, 1], [2, 0, 3]]), torch.tensor([8, 8])
    both = [
        torch.cat(pair)
        for pair in zip(
            (query[:, :, 8:], keys[0][:, :, 8:], values[0][:, :, 8:]),
            (second[0], second[1][0], second[2][0]),
        )
    ]
    out = cache.attend(both[0], [both[1]], [both[2]], table, lengths)
    torch.testing.assert_close(out[:1], alone(first, [-1])[:, :, 8:])
    other = [
        torch.cat([a[:, :, :8], b], 2)
        for a, b in zip((query, keys[0], values[0]), (second[0], second[1][0], second[2][0]))
    ]
    torch.testing.assert_close(out[1:], alone((other[0], [other[1]], [other[2]]), [-1])[:, :, 8:])


def test_a_compiled_step_serves_all_lengths():
    order, window = 2, [-1, 5]
    given = sequences(order, [12, 12], torch.float32)
    cache = static(window, batch=2, dtype=torch.float32)
    cache.attend(*chunk(given, [0, 0], [4, 2], order), counts=torch.tensor([4, 2]))
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    step = torch.compile(
        lambda query, keys, values: cache.attend(query, keys, values),
        fullgraph=True,
        backend=counter,
    )
    done = [4, 2]
    for _ in range(6):
        out = step(*chunk(given, done, [1, 1], order))
        for b, each in enumerate(given):
            torch.testing.assert_close(
                out[b : b + 1], alone(each, window)[:, :, done[b] : done[b] + 1]
            )
        done = [each + 1 for each in done]
    assert counter.frame_count == 1


def test_cropped_and_reordered():
    order, window = 2, [-1, 4]
    given = sequences(order, [14, 14])
    cache = static(window, batch=2)
    cache.attend(*chunk(given, [0, 0], [9, 9], order))
    cache.crop(torch.tensor([6, 20]))
    assert cache.lengths.tolist() == [6, 9]
    cache.reorder(torch.tensor([1, 0]))
    assert cache.lengths.tolist() == [9, 6]
    out = cache.attend(*chunk([given[1], given[0]], [9, 6], [2, 2], order))
    torch.testing.assert_close(out[:1], alone(given[1], window)[:, :, 9:11])
    torch.testing.assert_close(out[1:], alone(given[0], window)[:, :, 6:8])
    cache.crop(3)
    assert cache.lengths.tolist() == [3, 3]
    cache.reset()
    out = cache.attend(*chunk(given, [0, 0], [2, 2], order))
    torch.testing.assert_close(out[:1], alone(given[0], window)[:, :, :2])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))])
def test_copies_go_on_by_themselves(copied):
    order, window = 2, [-1, 4]
    given = sequences(order, [9])
    kept = [static(window), KeyValueCache(window), SeparableCache([-1, 4]), KeyValueCache(window)]
    for cache in kept[:3]:
        cache.attend(*chunk(given, [0], [6], order))
    kept.append(LayerCaches(kept[1:3]))
    for cache in kept[:3]:
        twin = copied(cache)
        ours = twin.attend(*chunk(given, [6], [3], order))
        torch.testing.assert_close(ours, cache.attend(*chunk(given, [6], [3], order)))
    assert copied(kept[3]).position == 0  # an empty one
    assert copied(kept[4]).position == 9 and len(copied(kept[4])) == 2


@pytest.mark.parametrize("window", [[-1, -1], [-1, 8], [8, 8]])
def test_a_ring_is_cropped_as_far_as_it_holds(window):
    """Rejected tokens of speculative decoding, before and after an axis drops keys."""
    order = 2
    given = sequences(order, [12])
    cache = KeyValueCache(window)
    cache.attend(*chunk(given, [0], [7], order))
    cache.crop(5)
    assert cache.position == 5
    out = cache.attend(*chunk(given, [5], [7], order))
    torch.testing.assert_close(out, alone(given[0], window)[:, :, 5:])
    if min(window) > 0:
        with pytest.raises(ValueError, match=r"length: expected at least 12, got 9: axis 0 has dr"):
            cache.crop(9)
        assert cache.position == 12
    cache.crop(12)
    cache.crop(0)
    assert cache.position == 0
    for wrong in (-1, 1):
        with pytest.raises(ValueError, match=r"\[KeyValueCache\] length: expected 0 to the pos"):
            cache.crop(wrong)
    with pytest.raises(TypeError, match=r"\[KeyValueCache\] length: expected an integer, got 2.0"):
        cache.crop(2.0)


def test_select_is_reorder():
    given = sequences(1, [5])
    cache = KeyValueCache([-1])
    cache.attend(*chunk(given, [0], [3], 1))
    cache.reorder(torch.tensor([0, 0]))
    assert cache.state_dict()["keys.0"].size(0) == 2


def bad(cache, tokens=1, **changes):
    given = sequences(2, [tokens])
    query, keys, values = chunk(given, [0], [tokens], 2)
    return lambda: cache.attend(**(dict(query=query, keys=keys, values=values) | changes))


TABLE, START = torch.tensor([[1, 0]]), torch.tensor([0])


def paged():
    return PagedCache(
        [-1, 2], pages=3, page=2, kv_heads=KV, head_dim=DIM, value_dim=VALUE, dtype=torch.float64
    )


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: static([]), r"\[StaticCache\] window: expected one int per axis, got none$"),
        (lambda: static([0]), r"\[StaticCache\] window: expected widths of at least 1.*, got 0$"),
        (lambda: static([3], slots=0), r"\[StaticCache\] slots: expected at least 1, got 0$"),
        (bad(static([-1, 2]), causal=True), r"\[StaticCache\] causal: belongs to the cache$"),
        (bad(static([-1, 2], slots=2), 3), r"slots: expected room for 3 tokens, got 2 slots$"),
        (bad(static([-1])), r"\[StaticCache\] keys and values: expected 1 of each, got 2 and 2$"),
        (
            bad(static([-1, 2], batch=2)),
            r"\[StaticCache\] query: expected shape \[2, heads, tokens, channels\], got \[1, 4",
        ),
        (
            bad(static([-1, 2]), counts=torch.tensor([1, 1])),
            r"\[StaticCache\] counts: expected int64 of shape \[1\], got .*\[2\]$",
        ),
        (
            bad(paged(), table=TABLE[0], lengths=START),
            r"\[PagedCache\] table: expected int64 of shape \[1, pages\], got .*\[2\]$",
        ),
        (
            bad(paged(), table=TABLE + 2, lengths=START),
            r"\[PagedCache\] table: expected pages 0 to 2, got 3$",
        ),
        (
            bad(paged(), 5, table=TABLE, lengths=START),
            r"\[PagedCache\] table: expected pages for 5 tokens, got 2 pages of 2$",
        ),
        (
            bad(paged(), table=TABLE, lengths=START.float()),
            r"\[PagedCache\] lengths: expected int64 of shape \[1\], got torch.float32",
        ),
        (
            bad(paged(), table=TABLE, lengths=START - 1),
            r"\[PagedCache\] lengths: expected 0 or more, got -1$",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def ring():
    cache = KeyValueCache([-1, 2])
    cache.attend(*chunk(sequences(2, [3]), [0], [3], 2))
    return cache


ONE = torch.tensor([1])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda c: c.crop(torch.tensor([1])), "length: expected int64 of shape [2], got "),
        (lambda c: c.crop(torch.tensor([1, 1, 1])), "length: expected int64 of shape [2], got "),
        (lambda c: c.crop(torch.tensor(1)), "length: expected int64 of shape [2], got "),
        (lambda c: c.crop(torch.ones(2)), "length: expected int64 of shape [2], got torch.float32"),
        (lambda c: c.crop(torch.tensor([1, -2])), "length: expected 0 or more, got -2"),
        (lambda c: c.crop(-1), "length: expected an integer of at least 0, got -1"),
        (lambda c: c.crop(True), "length: expected an integer or a tensor, got True"),
        (lambda c: c.select(ONE), "entries: expected int64 of shape [2], got "),
        (lambda c: c.reorder(torch.tensor([0, 2])), "entries: expected 0 to 1, got 2"),
        (lambda c: c.positions(-1), "tokens: expected an integer of at least 0, got -1"),
        (lambda c: c.positions(2, ONE), "counts: expected int64 of shape [2], got "),
        (lambda c: c.positions(2, torch.tensor([1, 3])), "counts: expected 0 to 2, got 3"),
        (lambda c: c.append([], []), "keys and values: expected 2 of each, got 0 and 0"),
        (
            lambda c: bad(c, query=torch.zeros(2, 3))(),
            "query: expected shape [2, heads, tokens, channels], got [2, 3]",
        ),
    ],
)
def test_static_slots_name_the_argument(call, message):
    cache = static([-1, 2], batch=2)
    cache.attend(*chunk(sequences(2, [3, 3]), [0, 0], [3, 2], 2))
    with pytest.raises((ValueError, TypeError)) as error:
        call(cache)
    assert str(error.value).startswith(f"[StaticCache] {message}")
    assert "\n" not in str(error.value) and cache.lengths.tolist() == [3, 3]


@pytest.mark.parametrize("wrong", [torch.zeros(9, 9), torch.tensor([1, 2]), True, "3", None])
def test_a_ring_names_the_length(wrong):
    cache = ring()
    with pytest.raises((ValueError, TypeError), match=r"^\[KeyValueCache\] length: ex") as error:
        cache.crop(wrong)
    assert "\n" not in str(error.value) and "tensor([" not in str(error.value)
    assert cache.position == 3


def test_pages_name_the_query_and_the_counts():
    with pytest.raises(
        ValueError, match=r"^\[PagedCache\] query: expected shape .*, got \[1, 8\]$"
    ):
        bad(paged(), query=torch.zeros(1, 8), table=TABLE, lengths=START)()
    with pytest.raises(ValueError, match=r"^\[PagedCache\] counts: expected 0 to 1, got 2$"):
        bad(paged(), table=TABLE, lengths=START, counts=torch.tensor([2]))()


def test_a_call_that_the_operator_refuses_appends_nothing():
    cache, given = static([-1, 2]), sequences(2, [5])
    cache.attend(*chunk(given, [0], [3], 2))
    with pytest.raises(ValueError, match="normalizer"):
        cache.attend(*chunk(given, [3], [1], 2), normalizer="none such")
    assert cache.lengths.tolist() == [3]
    out = cache.attend(*chunk(given, [3], [2], 2))
    torch.testing.assert_close(out, alone(given[0], [-1, 2])[:, :, 3:])


def test_what_is_refused_changes_nothing():
    cache = static([-1, 2], slots=4)
    given = sequences(2, [9])
    cache.attend(*chunk(given, [0], [3], 2))
    before = copy.deepcopy(cache)
    with pytest.raises(ValueError, match="slots"):
        cache.attend(*chunk(given, [3], [2], 2))
    with pytest.raises(TypeError, match=r"keys\[0\]: expected torch.float64, got torch.float32"):
        query, keys, values = chunk(given, [3], [1], 2)
        cache.attend(query, [key.float() for key in keys], values)
    assert torch.equal(cache.lengths, before.lengths)
    for one, other in zip(cache.keys + cache.values, before.keys + before.values):
        assert torch.equal(one, other)


@pytest.mark.parametrize("part", ["keys", "values"])
@pytest.mark.parametrize("kind", ["static", "paged"])
def test_gradients_are_refused_while_they_are_recorded(kind, part):
    """The slots take a copy of the numbers, so a gradient would end there without a word."""
    sizes = dict(kv_heads=KV, head_dim=DIM, value_dim=VALUE, dtype=torch.float64)
    ((query, keys, values),) = sequences(1, [3])
    if kind == "static":
        cache, more = StaticCache([-1], batch=1, slots=4, **sizes), ()
    else:
        cache = PagedCache([-1], pages=1, page=4, **sizes)
        more = torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    {"keys": keys, "values": values}[part][0].requires_grad_()
    with pytest.raises(ValueError, match=rf"{part}\[0\]: requires a gradient.*inference only"):
        cache.attend(query, keys, values, *more)
    if kind == "static":
        with pytest.raises(ValueError, match="requires a gradient"):
            cache.append(keys, values)
        assert cache.lengths.tolist() == [0]
    with torch.no_grad():
        assert not cache.attend(query, keys, values, *more).requires_grad


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool, torch.float8_e4m3fn])
def test_a_dtype_that_attention_does_not_take_is_refused_when_it_is_made(dtype):
    sizes = dict(kv_heads=1, head_dim=4, dtype=dtype)
    words = "dtype: expected float32, float64, bfloat16 or float16, got torch"
    with pytest.raises(TypeError, match=rf"\[StaticCache\] {words}"):
        StaticCache([-1], batch=1, slots=4, **sizes)
    with pytest.raises(TypeError, match=rf"\[PagedCache\] {words}"):
        PagedCache([-1], pages=1, page=4, **sizes)


def slots_of(counts=None, lengths=(3, 2), tokens=1):
    """A step of a static cache of 4 slots."""

    def make():
        cache = static([-1, 2], batch=2, slots=4, dtype=torch.float32)
        cache.lengths = torch.tensor(lengths)
        given = chunk(sequences(2, [tokens] * 2, torch.float32), [0, 0], [tokens] * 2, 2)
        return cache, lambda: cache.attend(*given, counts=counts)

    return make


def pages_of(table, lengths=(0, 0), tokens=1, counts=None, dtype=torch.int64):
    """A step of a paged cache of 6 pages of 2 tokens."""

    def make():
        sizes = dict(kv_heads=KV, head_dim=DIM, value_dim=VALUE)
        cache = PagedCache([-1, 3], pages=6, page=2, **sizes)
        given = chunk(sequences(2, [tokens] * 2, torch.float32), [0, 0], [tokens] * 2, 2)
        places = torch.tensor(table, dtype=dtype), torch.tensor(lengths, dtype=dtype)
        return cache, lambda: cache.attend(*given, *places, counts)

    return make


def entries_of(entries):
    def make():
        cache = static([-1], batch=2, slots=4)
        return cache, lambda: cache.select(torch.tensor(entries))

    return make


OWN = "table: expected a page of its own for what sequence {} writes, got page {}, which"
OF_POOL = "table: expected pages of the pool"
ALONE = "table: expected pages of its own for every writer"
IN_RANGE = "expected numbers from 0 on, within their range"
REFUSED = {
    "slots": (slots_of(tokens=2), "slots: expected room for 5 tokens, got 4 slots", "slots: exp"),
    "nine tokens": (slots_of(tokens=9, lengths=(0, 0)), "slots: expected room for 9 tok", "slots:"),
    "counts": (slots_of(torch.tensor([2, 1])), "counts: expected 0 to 1, got 2", IN_RANGE),
    "lengths below 0": (slots_of(lengths=(-5, 0)), "lengths: expected 0 to 4, got -5", IN_RANGE),
    "lengths above": (slots_of(lengths=(9, 0)), "lengths: expected 0 to 4, got 9", IN_RANGE),
    "entries": (entries_of([0, 2]), "entries: expected 0 to 1, got 2", IN_RANGE),
    "pool": (pages_of([[0, 1], [6, 2]]), "table: expected pages 0 to 5, got 6", OF_POOL),
    "below": (pages_of([[0, 1], [2, -2]]), "table: expected pages 0 to 5, got -2", OF_POOL),
    "no page": (
        pages_of([[0, -1], [2, 3]], (2, 0)),
        "table: expected pages 0 to 5, got -1",
        OF_POOL,
    ),
    "table": (
        pages_of([[0, 1], [2, 3]], (4, 0)),
        "table: expected pages for 5 tokens, got 2 pages of 2",
        "table: expected pages for the tokens of every sequence",
    ),
    "two writers": (pages_of([[0, 1], [0, 2]]), OWN.format(0, 0), ALONE),
    "written twice": (pages_of([[4, 4], [2, 3]], tokens=4), OWN.format(0, 4), ALONE),
    "written and read": (pages_of([[0, 1], [0, 2]], (1, 3)), OWN.format(0, 0), ALONE),
    "a page of its own past": (pages_of([[0, 0], [2, 3]], (2, 0)), OWN.format(0, 0), ALONE),
}


STEPS = [
    *((name, None) for name in REFUSED),
    *((name, "eager") for name in ("nine tokens", "counts", "entries", "no page", "two writers")),
    *((name, "aot_eager") for name in ("nine tokens", "two writers")),
]


@pytest.mark.parametrize("name, backend", STEPS)
def test_compiled_steps_refuse_what_others_do(name, backend):
    make, message, rule = REFUSED[name]
    cache, step = make()
    before, error = copy.deepcopy(cache), ValueError
    if backend is not None:
        torch._dynamo.reset()
        step, message, error = (
            torch.compile(step, backend=backend, fullgraph=True),
            rule,
            RuntimeError,
        )
    with pytest.raises(error, match=rf"^\[{type(cache).__name__}\] .*{message}") as raised:
        step()
    assert "\n" not in str(raised.value)
    for one, other in zip(cache.keys + cache.values, before.keys + before.values):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    "make, backend",
    [
        (pages_of([[0, 1], [0, 2]], (2, 2)), None),  # a prefix of whole pages
        (pages_of([[0, 1], [0, 2]], (1, 1), counts=torch.tensor([1, 0])), None),  # one pauses
        (pages_of([[0, -1], [2, -1]]), None),
        (pages_of([[0, 5, -1], [2, 3, -1]], (2, 3), dtype=torch.int32), None),
        (pages_of([[0, 5, -1], [0, 3, -1]], (2, 3), dtype=torch.int32), "aot_eager"),
        (pages_of([[0, 1], [-1, -1]], counts=torch.tensor([1, 0])), None),
    ],
)
def test_shared_prefixes_and_padded_tables_are_taken(make, backend):
    cache, step = make()
    if backend is not None:
        torch._dynamo.reset()
        step = torch.compile(step, backend=backend, fullgraph=True)
    assert step().isfinite().all()
    cache.check()


def test_tables_of_other_libraries_have_the_same_result():
    window, given = [-1, 3], sequences(2, [5, 3])
    sizes = dict(pages=8, page=2, kv_heads=KV, head_dim=DIM, value_dim=VALUE, dtype=torch.float64)
    cache, lengths = PagedCache(window, **sizes), torch.tensor([5, 3])
    table = torch.tensor([[6, 2, 4, -1], [3, 0, -1, -1]], dtype=torch.int32)
    for tensor in (*cache.keys, *cache.values):
        tensor.fill_(torch.nan)
    start = torch.zeros(2, dtype=torch.int32)
    out = cache.attend(*chunk(given, [0, 0], [5, 3], 2), table, start, lengths)
    for b, each in enumerate(given):
        torch.testing.assert_close(out[b : b + 1, :, : lengths[b]], alone(each, window))


@pytest.mark.parametrize("make", [slots_of(tokens=2), pages_of([[0, 1], [0, 2]])])
def test_a_flag_remembers_what_compiled_code_could_not_raise(make, monkeypatch):
    cache, step = make()
    cache.check()
    monkeypatch.setattr(_fixed_cache, "_assert_async", lambda *_: None)  # as if on another device
    torch._dynamo.reset()
    torch.compile(step, backend="eager", fullgraph=True)()
    assert copy.deepcopy(cache)._wrong
    name = type(cache).__name__
    says = rf"\[{name}\] check: expected compiled calls within the cache, got more tokens"
    if name == "StaticCache":
        assert cache.lengths.tolist() == [4, 4]  # the fifth token is left out
        with pytest.raises(ValueError, match=says):
            cache.append(*[[torch.zeros(2, KV, 0, w)] * 2 for w in (DIM, VALUE)])
    else:
        with pytest.raises(ValueError, match=says):
            cache.check()
    cache.check()  # once


@pytest.mark.parametrize("sizes", [dict(slots=2**50), dict(slots=2**62), dict(batch=2**40)])
def test_a_cache_that_no_memory_holds_is_refused(sizes):
    with pytest.raises(
        ValueError, match=r"\[StaticCache\] slots: expected .* fits into memory, got"
    ):
        static([-1], **sizes)
