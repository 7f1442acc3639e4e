"""Views of layers with rows of ones, with one softmax per face, and of separable features, against
the weights of all tuples."""

import itertools
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
import torch
from test_heaviest_tuples_and_views import Largest

import nsimplex
from nsimplex import viz
from nsimplex.model_command import attended_tuples as command
from nsimplex.nn import (
    LanguageModel,
    LanguageModelOptions,
    SeparableAttention,
    SimplicialAttention,
)

T, HEADS = 6, 4
LEFT_OUT = -2


def draw(order=2, kv_heads=2, seed=1):
    torch.manual_seed(seed)
    query = torch.randn(2, HEADS, T, 6, dtype=torch.float64)
    return query, [torch.randn(2, kv_heads, T, 6, dtype=torch.float64) for _ in range(order)]


def all_logits(query, keys, scale=None):
    """[B, Hq, Tq, T_1, .., T_N] of the product form."""
    letters = "jkl"[: len(keys)]
    keys = [key.repeat_interleave(HEADS // key.size(1), 1) for key in keys]
    terms = ",".join(f"bh{letter}d" for letter in letters)
    return torch.einsum(f"bhid,{terms}->bhi{letters}", query, *keys) * (
        query.size(-1) ** -0.5 if scale is None else scale
    )


def seen_keys(causal, window):
    """[T, T] of one axis."""
    ahead = torch.arange(T) - torch.arange(T)[:, None]
    seen = ahead <= 0 if causal else torch.ones(T, T, dtype=torch.bool)
    return seen & (ahead > -window) if window > 0 else seen


def admitted(sides):
    """[T, T_1, .., T_N] from the keys that are seen on each axis."""
    found = torch.ones(T, *[1] * len(sides), dtype=torch.bool)
    for axis, seen in enumerate(sides):
        shape = [T] + [1] * len(sides)
        shape[axis + 1] = seen.size(1)
        found = found & seen.view(shape)
    return found


def ones_row(seen):
    return torch.cat([seen, torch.ones(T, 1, dtype=torch.bool)], 1)


def augmented_weights(query, keys, axes, options):
    """All weights, with the row of ones as the last key of the augmented axes."""
    windows = options.get("window", [-1] * len(keys))
    sides, longer = [], []
    for axis, key in enumerate(keys):
        seen = seen_keys(options.get("causal", False), windows[axis])
        if axis in axes:
            key = torch.cat([key, torch.ones_like(key[:, :, :1])], 2)
            seen = ones_row(seen)
        longer.append(key)
        sides.append(seen)
    logits, seen = all_logits(query, longer), admitted(sides)
    orders = torch.zeros(logits.shape[3:], dtype=torch.long)
    for place in itertools.product(*map(range, orders.shape)):
        orders[place] = sum(j < T for j in place)
    if options.get("order_bias") is not None:
        bias = torch.cat([torch.zeros(1, HEADS), options["order_bias"]]).double()
        logits = logits + bias[orders].movedim(-1, 0)[None, :, None]
    logits = logits.masked_fill(~(seen & (orders > 0)), -torch.inf)
    flat = logits.flatten(3)
    normalizer = options.get("normalizer", "softmax")
    if normalizer == "sigmoid":
        flat = flat.sigmoid()
    elif normalizer == "relu":
        flat = (flat.relu() / flat.relu().sum(-1, keepdim=True)).nan_to_num(0)
    elif normalizer == "softmax_sink":
        sink = options["sink"].double()[None, :, None, None].expand(*flat.shape[:3], 1)
        flat = torch.cat([flat, sink], -1).softmax(-1)[..., :-1]
    else:
        flat = flat.softmax(-1)
    return flat.view(logits.shape)


def compare(made, weights):
    """Tuples and marginals of a view with all weights of one entry, [Hq, T, T_1, .., T_N]."""
    for head, query in itertools.product(range(HEADS), range(T)):
        own = weights[head, query]
        expected = {
            tuple(LEFT_OUT if j == T else j for j in place): own[place].item()
            for place in itertools.product(*map(range, own.shape))
            if own[place] > 0
        }
        rows = made.rows(head=head, query=query)
        heaviest = sorted(expected.values(), reverse=True)[: len(rows)]
        assert [weight for _, weight in rows] == pytest.approx(heaviest, abs=1e-9, rel=1e-6)
        assert len(rows) == min(len(expected), made.tuples.weights.size(-1))
        for keys, weight in rows:
            assert weight == pytest.approx(expected[keys], abs=1e-9, rel=1e-6), keys
        for axis, marginal in enumerate(made.marginals):
            others = [m for m in range(len(made.marginals)) if m != axis]
            sums = (own.sum(others) if others else own)[:T].float()
            torch.testing.assert_close(marginal[head, query], sums, atol=1e-5, rtol=1e-4)


AUGMENTED = {
    "plain": (2, [1], {}),
    "causal": (2, [1], dict(causal=True)),
    "windows": (3, [1, 2], dict(causal=True, window=[4, 2, 3])),
    "all axes": (2, [0, 1], dict(causal=True)),
    "order bias": (2, [1], dict(order_bias=torch.linspace(-2, 2, 8).view(2, HEADS))),
    "sink": (2, [1], dict(normalizer="softmax_sink", sink=torch.tensor([0.0, 1.0, -1.0, 2.0]))),
    "relu": (2, [0], dict(normalizer="relu", causal=True)),
    "sigmoid": (2, [1], dict(normalizer="sigmoid")),
}


@pytest.mark.parametrize("name", AUGMENTED)
@pytest.mark.parametrize("count", [3, 400])
def test_rows_of_ones(name, count):
    order, axes, options = AUGMENTED[name]
    query, keys = draw(order)
    made = viz.view(query, keys, queries=range(T), count=count, augment=axes, **options)
    compare(made, augmented_weights(query, keys, axes, options)[0])
    best = viz.heaviest_tuples(query, keys, count, augment=axes, **options)
    torch.testing.assert_close(best.weights[0], made.tuples.weights)
    assert torch.equal(best.indices[0], made.tuples.indices)


def test_rows_of_ones_in_lengths_masks_and_documents():
    """The row of ones is seen whatever the masks of keys are."""
    query, keys = draw()
    masks = [torch.arange(2 * T).view(2, T) % 3 > 0, torch.arange(2 * T).view(2, T) % 4 > 0]
    lengths = torch.tensor([[4, 6], [5, 3]])
    for options, sides in (
        (dict(key_masks=masks), [mask[0].expand(T, T) for mask in masks]),
        (dict(key_lengths=lengths), [(torch.arange(T) < n).expand(T, T) for n in lengths[:, 0]]),
    ):
        made = viz.view(query, keys, queries=range(T), count=99, augment=True, **options)
        longer = [keys[0], torch.cat([keys[1], torch.ones_like(keys[1][:, :, :1])], 2)]
        logits = all_logits(query, longer)[0]
        logits = logits.masked_fill(~admitted([sides[0], ones_row(sides[1])]), -torch.inf)
        compare(made, logits.flatten(2).softmax(-1).view(logits.shape))
    bounds = torch.tensor([0, 2, T])
    made = viz.view(query, keys, queries=range(T), count=99, augment=True, cu_seqlens=bounds)
    for first, last in ((0, 2), (2, T)):
        part = slice(first, last)
        alone = viz.view(query[:, :, part], [k[:, :, part] for k in keys], count=99, augment=True)
        for place in range(last - first):
            expected = {
                tuple(j if j == LEFT_OUT else j + first for j in js): weight
                for js, weight in alone.rows(head=1, query=place)
            }
            assert dict(made.rows(head=1, query=first + place)) == pytest.approx(expected)


class Faces(torch.nn.Module):
    """One softmax per face, of given tensors."""

    def __init__(self, order, options):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
        self.order, self.options = order, options

    def forward(self, query):
        keys = [(axis + 1.5) * (query[:, :2] + axis).sin() for axis in range(self.order)]
        self.keys = keys
        return nsimplex.face_attention(query, keys, keys, **self.options)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", ["plain", "causal", "bias", "flags"])
def test_one_softmax_per_face(order, name):
    shape = [T] * (order + 1)
    ramp = torch.arange(T ** (order + 1)).view(shape)
    options = {
        "plain": {},
        "causal": dict(causal=True, window=[3] * order),
        "bias": dict(mask=(ramp / 7).double().sin()),
        "flags": dict(mask=(ramp % 5 > 1) & (ramp // T % 7 > 2)),
    }[name]
    model = Faces(order, options)
    query, _ = draw()
    (made,) = viz.views(model, query, queries=range(T), count=300)
    logits = all_logits(query, model.keys)[0]
    if "causal" in options:
        logits = logits.masked_fill(~admitted([seen_keys(True, 3)] * order), -torch.inf)
    mask = options.get("mask")
    if mask is not None:
        floating = mask.is_floating_point()
        logits = logits + mask if floating else logits.masked_fill(~mask, -torch.inf)
    weights = logits.softmax(-1).nan_to_num(0)
    faces = (weights.sum(-1) > 0.5).double().flatten(2).sum(-1) if order > 1 else torch.ones(1, 1)
    compare(made, weights / faces.clamp_min(1).view(*faces.shape, *[1] * order))


class Separable(torch.nn.Module):
    """Separable attention of given tensors."""

    def __init__(self, order, options):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
        self.order, self.options = order, options

    def forward(self, query):
        keys = [(axis + 1.5) * (query[:, :2] + axis).sin() for axis in range(self.order)]
        self.features = nsimplex.feature_map(query), [nsimplex.feature_map(key) for key in keys]
        return nsimplex.separable_attention(query, keys, keys, **self.options)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("causal, window", [(False, -1), (True, -1), (True, 3), (False, 2)])
def test_separable_features(order, causal, window):
    model = Separable(order, dict(causal=causal, window=None if window < 0 else window))
    query, _ = draw()
    (made,) = viz.views(model, query, queries=range(T), count=300)
    logits = all_logits(*model.features, scale=1.0)[0]
    seen = seen_keys(causal or window > 0, window)
    logits = logits * admitted([seen] * order)
    compare(made, logits / logits.flatten(2).sum(-1).view(HEADS, T, *[1] * order))


@pytest.mark.parametrize(
    "layer, kinds",
    [
        (SimplicialAttention(8, 2, augment=True, causal=True), {True, False}),
        (SimplicialAttention(8, 2, order=3, augment=True), {True, False}),
        (SimplicialAttention(8, 2, face=True, causal=True), {False}),
        (SeparableAttention(8, 2, causal=True), {False}),
        (SimplicialAttention(8, 2, orders=[1, 2], augment=True), {True, False}),
    ],
)
def test_layers(layer, kinds):
    """All tuples of a query weigh 1 together."""
    torch.manual_seed(2)
    made = viz.views(layer, torch.randn(1, 5, 8), queries=range(5), count=300)
    left_out = set()
    for view in made:
        sums = view.tuples.weights.sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-5, rtol=0)
        left_out |= {LEFT_OUT in keys for keys, _ in view.rows(query=3)}
    assert left_out == kinds


@pytest.mark.parametrize("kind", ["augment", "separable"])
def test_no_tensor_is_as_large_as_all_weights(kind):
    """Storages have at most 2^17 numbers, up to the candidates beside a block of scores."""
    length = 96
    layers = dict(
        augment=SimplicialAttention(8, 2, augment=True, causal=True),
        separable=SeparableAttention(8, 2, causal=True),
    )
    tokens = torch.randn(1, length, 8)
    with Largest() as seen:
        (made,) = viz.views(layers[kind], tokens, queries=range(length), count=5)
    assert made.tuples.indices.shape == (2, length, 5, 2)
    assert 2**12 < seen.numbers <= 2**18 < 2 * length**3 / 4


def test_a_tuple_that_leaves_an_axis_out_is_named(tmp_path):
    query, keys = draw()
    bias = torch.tensor([[0.0] * HEADS, [-60.0] * HEADS])  # no pair weighs anything
    made = viz.view(query, keys, labels=list("abcdef"), count=3, augment=True, order_bias=bias)
    ((key, other), weight), *_ = made.rows()
    assert other == LEFT_OUT
    assert f"{key} '{'abcdef'[key]}', left out  " in made.text()
    tree = ElementTree.parse(made.save(tmp_path / "tuples.svg"))
    notes = [each.text for each in tree.iterfind(".//{http://www.w3.org/2000/svg}title")]
    assert f"(f 5, {'abcdef'[key]} {key}, left out): {100 * weight:.2f} %" in notes
    assert len(tree.findall(".//{http://www.w3.org/2000/svg}polygon")) == 0
    page = viz.save_page([made], tmp_path / "page.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert data[0]["tuples"][0][-1][0][0] == [key, LEFT_OUT]
    assert data[0]["labels"] == list("abcdef")


class Kept:
    """What the command ``analyze attention`` would print."""

    def __init__(self, labels):
        self.labels, self.lines = labels, []

    def given(self):
        return dict(tokens=[ord(each) for each in self.labels], labels=self.labels)

    def line(self, kind, **fields):
        self.lines.append(fields)

    def text(self, text):
        self.shown = text


def test_the_command_names_axes_that_are_left_out(monkeypatch):
    options = LanguageModelOptions(layers=1, dim=8, heads=2, every=1, window=[4], augment=True)
    model = LanguageModel(options, torch.Generator().manual_seed(3)).eval()
    monkeypatch.setattr(LanguageModel, "from_run", staticmethod(lambda path: model))
    kept = Kept(list("abcdef"))
    request = dict(query=None, page=False, svg=False, model="", count=40, layer=None, head=0)
    command.show(request, kept)
    for line in kept.lines:
        assert line["texts"] == [
            "left out" if key == LEFT_OUT else "abcdef"[key] for key in line["keys"]
        ]
    assert len(kept.lines) == 4 * 4 + 4  # pairs of the window, and its single keys
    assert sum(line["weight"] for line in kept.lines) == pytest.approx(1)
    assert "left out" in kept.shown
