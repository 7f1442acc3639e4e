"""Every option of the attention layer is that of the function, with the layer's weights."""

import copy

import pytest
import torch
from layer_cases import DIM, HEADS, T, graph, heads_by_hand, joined_by_hand, layer, tokens

import nsimplex
from nsimplex import nn

OPTIONS = [
    dict(),
    dict(kv_heads=2, order=3, window=[2, 3, -1]),
    dict(order=1, form="determinant"),
    dict(form="determinant", head_dim=6, rotary=True),
    dict(reduce="sum", scale="unit"),
    dict(reduce="mean", scale=(0.3, 2.0)),
    dict(normalizer="softmax_sink"),
    dict(normalizer="softmax_sink", kv_heads=1, window=3),
    dict(normalizer="sigmoid"),
    dict(normalizer="relu"),
    dict(augment=True),
    dict(augment=[0, 1], reduce="sum"),
    dict(augment=[1], window=[2, 4], normalizer="softmax_sink"),
    dict(distinct="axes"),
    dict(distinct="with_query", window=3),
    dict(face=True),
    dict(face=True, order=3, window=[2, 3, 4]),
    dict(bias=True),
    dict(bias=True, norm="qk"),
    dict(norm="qkv", unit_layer=True, scale="unit"),
]


def by_hand(module, x, options, **given):
    """The layer composed of its weights and the function."""
    q, keys, values = heads_by_hand(module, x)
    unit = lambda t: torch.nn.functional.rms_norm(t, (t.size(-1),), eps=1e-6)
    if module.norm != "none":
        q, keys = unit(q), [unit(key) for key in keys]
    if module.norm == "qkv":
        values = [unit(value) for value in values]
    if module.rotary:
        q, *keys = (nsimplex.rotary(t, chunk=module.order + 1) for t in (q, *keys))
    names = ("form", "reduce", "normalizer", "augment", "distinct", "window", "scale")
    call = nsimplex.face_attention if options.get("face") else nsimplex.attention
    passed = {name: options[name] for name in names if name in options}
    out = call(q, keys, values, causal=True, sink=module.sink, **passed, **given)
    out = joined_by_hand(module, out)
    return out / (2 * module.order + 1) if options.get("unit_layer") else out


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_are_those_of_the_function(options):
    module, x = layer("window", **options), tokens()
    expected = by_hand(module, x, options)
    torch.testing.assert_close(module(x), expected, rtol=1e-12, atol=1e-12)
    lengths = torch.tensor([T, 3])
    torch.testing.assert_close(
        module(x, key_lengths=lengths), by_hand(module, x, options, key_lengths=lengths)
    )


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_gradients_are_those_of_the_function(options):
    module, x = layer("window", **options), tokens()
    other = copy.deepcopy(module)
    module(x).square().sum().backward()
    by_hand(other, x, options).square().sum().backward()
    for (name, ours), theirs in zip(module.named_parameters(), other.parameters()):
        assert ours.grad is not None, name
        torch.testing.assert_close(ours.grad, theirs.grad, msg=name)


def test_masks_in_forward_are_those_of_the_function():
    module, x = layer("window"), tokens()
    masks = torch.rand(2, T, generator=torch.Generator().manual_seed(1)) > 0.4
    bounds, additive = torch.tensor([0, 3, T]), tokens(2, seed=3)[:, :, :1, None].unsqueeze(1)
    biases, every = x[0] @ x[1].T, torch.tensor([[True]])
    for given, passed in (
        (dict(key_masks=masks), dict(key_masks=[masks, masks])),
        (dict(key_masks=[masks, ~masks]), dict(key_masks=[masks, ~masks])),
        (dict(cu_seqlens=bounds), dict(cu_seqlens=bounds)),
        (dict(mask=additive), dict(mask=additive)),
        (dict(pair_masks=[biases, masks[:1]]), dict(pair_masks=[biases, masks[:1]])),
        (
            dict(pair_masks=[biases, ~masks[:, None, None]], adjacency=graph()),
            dict(
                mask=torch.where(graph()[:, :, None], biases[..., None], -torch.inf),
                pair_masks=[every, ~masks[:, None, None] & graph()],
            ),
        ),
        (
            dict(mask=additive, adjacency=graph()),
            dict(mask=torch.where(graph()[:, :, None] & graph()[:, None, :], additive, -torch.inf)),
        ),
    ):
        torch.testing.assert_close(module(x, **given), by_hand(module, x, {}, **passed))


def test_a_wrong_number_of_masks_is_refused_beside_an_adjacency():
    every = torch.ones(1, 1, dtype=torch.bool)
    for masks in ([every], [every] * 3):
        with pytest.raises(ValueError, match="pair_masks: expected one for each of the 2"):
            layer("window")(tokens(), pair_masks=masks, adjacency=graph())


def test_packed_documents_are_alone():
    module, x = layer("window", window=3), tokens()
    packed = module(x, cu_seqlens=torch.tensor([0, 3, T]))
    torch.testing.assert_close(packed[:, :3], module(x[:, :3]))
    torch.testing.assert_close(packed[:, 3:], module(x[:, 3:]))


def test_packed_documents_have_positions_of_their_own():
    for way in (dict(window=3), dict(select=nn.TopK(2)), dict(select=nn.Window(3) | nn.TopK(2))):
        options = dict(rotary=True, allow_non_invariant=True, causal=True) | way
        module, x = nn.SimplicialAttention(DIM, HEADS, **options).double(), tokens()
        packed = module(x, cu_seqlens=torch.tensor([0, 3, T]))
        torch.testing.assert_close(packed[:, :3], module(x[:, :3]))
        torch.testing.assert_close(packed[:, 3:], module(x[:, 3:]))


def test_contexts_take_the_options():
    torch.manual_seed(1)
    module = nn.SimplicialAttention(
        DIM, HEADS, context_dims=(5, 6), normalizer="softmax_sink", augment=[0], bias=True
    ).double()
    torch.nn.init.normal_(module.sink)
    x, a, b = tokens(), torch.randn(2, 4, 5).double(), torch.randn(2, 3, 6).double()
    masks = [torch.tensor([[1, 0, 1, 1], [1, 1, 0, 0]]).bool(), torch.ones(2, 3).bool()]
    heads = lambda t, n: t.unflatten(-1, (-1, 6)).transpose(1, 2).split([HEADS] * n, 1)
    (q,) = heads(module.q(x), 1)
    (k1, v1), (k2, v2) = heads(module.kv[0](a), 2), heads(module.kv[1](b), 2)
    expected = nsimplex.attention(
        q,
        [k1, k2],
        [v1, v2],
        normalizer="softmax_sink",
        sink=module.sink,
        augment=[0],
        key_masks=masks,
    )
    torch.testing.assert_close(module(x, (a, b), key_masks=masks), joined_by_hand(module, expected))


def test_dropout_is_of_training_alone():
    module, x = layer("window", dropout=0.5), tokens()
    expected = by_hand(module, x, {})
    torch.testing.assert_close(module.eval()(x), expected)
    module.train()
    torch.manual_seed(5)
    first = module(x)
    assert not torch.allclose(first, expected)
    torch.manual_seed(5)
    assert torch.equal(module(x), first)
    torch.manual_seed(5)
    torch.testing.assert_close(first, by_hand(module, x, {}, dropout_p=0.5))


@pytest.mark.parametrize("reduce", ["mlp", "mlp_symmetric"])
@pytest.mark.parametrize("kv_heads", [0, 2])
def test_learned_reducers_own_their_weights(reduce, kv_heads):
    module, x = layer("topk", reduce=reduce, kv_heads=kv_heads), tokens()
    q, keys, values = heads_by_hand(module, x)
    table = module.indexer(x, 3, causal=True)
    names = [f"reducer_{kind}{i}" for i in (1, 2, 3) for kind in "wb"]
    weights = [getattr(module, name) for name in names if hasattr(module, name)]
    assert len(weights) == (4 if reduce == "mlp" else 6)
    out = nsimplex.sparse_attention(
        q, keys, values, table, pattern="product", reduce=reduce, reducer_weights=weights
    )
    torch.testing.assert_close(module(x), joined_by_hand(module, out))
    module(x).square().sum().backward()
    assert all(weight.grad.abs().max() > 0 for weight in weights)


@pytest.mark.parametrize("name", ["topk", "topk per axis", "path", "neighbours", "union"])
def test_sinks_beside_chosen_keys(name):
    """A sink is one more tuple: attention over all keys chosen is that of the function."""
    module, x = layer(name, normalizer="softmax_sink"), tokens()
    plain = layer(name)
    plain.load_state_dict({n: p for n, p in module.state_dict().items() if n != "sink"})
    assert not torch.allclose(module(x), plain(x))
    with torch.no_grad():
        module.sink.fill_(-1e9)
    torch.testing.assert_close(module(x), plain(x))
    if name == "topk":
        module.select.__dict__["k"] = T
        with torch.no_grad():
            torch.nn.init.normal_(module.sink)
        torch.testing.assert_close(module(x), by_hand(module, x, dict(normalizer="softmax_sink")))
    module(x).sum().backward()
    assert module.sink.grad is not None


@pytest.mark.parametrize("augment, axes", [(True, [1]), ([1], [1]), ([0, 1], [0, 1])])
def test_heads_of_different_orders_are_augmented_on_the_axes_they_have(augment, axes):
    torch.manual_seed(1)
    layer = nn.SimplicialAttention(DIM, HEADS, orders=[1, 2, 1, 2], augment=augment)
    x = torch.randn(2, 7, DIM)
    parts = []
    for order, group in zip((1, 2), layer.groups, strict=True):
        own = [axis for axis in axes if axis < order]
        alone = nn.SimplicialAttention(
            DIM, 2, head_dim=DIM // HEADS, order=order, augment=own or None
        )
        alone.load_state_dict(group.state_dict())
        parts.append(alone(x))
    torch.testing.assert_close(layer(x), sum(parts))


def test_heads_of_different_orders():
    torch.manual_seed(1)
    mixed = nn.SimplicialAttention(
        DIM, HEADS, orders=[1, 2, 1, 1], causal=True, rotary=True, window=4, bias=True
    ).double()
    assert [(g.order, g.heads, g.rotary) for g in mixed.groups] == [(1, 3, True), (2, 1, False)]
    x = tokens()
    torch.testing.assert_close(mixed(x), mixed.groups[0](x) + mixed.groups[1](x))
    one = nn.SimplicialAttention(DIM, HEADS, orders=[2] * 4, causal=True)
    same = nn.SimplicialAttention(DIM, HEADS, order=2, causal=True)
    same.load_state_dict(one.groups[0].state_dict())
    torch.testing.assert_close(one(x.float()), same(x.float()))
    grouped = nn.SimplicialAttention(DIM, HEADS, kv_heads=2, orders=[1, 1, 3, 3])
    assert [(g.order, g.heads, g.kv_heads) for g in grouped.groups] == [(1, 2, 1), (3, 2, 1)]
    mixed(x).sum().backward()
    assert all(p.grad is not None for p in mixed.parameters())
    cache = mixed.eval().requires_grad_(False).make_cache()
    steps = torch.cat([mixed(x[:, a:b], cache=cache) for a, b in ((0, 3), (3, 4), (4, 7))], 1)
    torch.testing.assert_close(steps, mixed(x))
    assert cache.position == T
    again = mixed.make_cache()
    again.load_state_dict(cache.state_dict())
    torch.testing.assert_close(mixed(x, cache=again), mixed(x, cache=cache))


def test_a_seed_gives_the_weights_it_gave():
    """The sink and other options draw after the projections, so they change no other weight."""
    names = ("qkv.weight", "output.weight")
    plain, other = (
        nn.SimplicialAttention(DIM, HEADS, **options).state_dict()
        for options in (dict(), dict(normalizer="softmax_sink", augment=True))
        if torch.manual_seed(3)
    )
    assert all(torch.equal(plain[name], other[name]) for name in names)
    assert [*plain] == [*names]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_device_and_dtype(dtype):
    for options in (
        dict(normalizer="softmax_sink", bias=True),
        dict(select=nn.TopK(3, dict(heads=2, index_dim=4)), reduce="mlp"),
        dict(orders=[1, 1, 2, 2]),
    ):
        module = nn.SimplicialAttention(DIM, HEADS, dtype=dtype, **options)
        assert all(p.dtype == dtype for p in module.parameters())
        assert module(tokens(dtype=dtype)).dtype == dtype
        empty = nn.SimplicialAttention(DIM, HEADS, device="meta", **options)
        assert all(p.is_meta for p in empty.parameters())


WRONG = [
    (dict(reduce="mlp"), "reduce: expected product, sum or mean, got 'mlp', which needs select"),
    (dict(reduce="mlp", select=nn.Linear()), "reduce: expected product"),
    (dict(reduce="mlp", scale="unit", select=nn.TopK(2)), "scale: expected standard or numbers"),
    (dict(normalizer="softer"), "normalizer: expected softmax, softmax_sink, sigmoid or relu"),
    (dict(normalizer="relu", select=nn.TopK(2)), "normalizer: expected softmax or softmax_sink"),
    (dict(normalizer="softmax_sink", select=nn.Linear()), "normalizer: expected softmax beside"),
    (dict(face=True, normalizer="relu"), "normalizer: expected softmax beside face, got 'relu'"),
    (dict(face=True, augment=True), "augment: expected none beside face"),
    (dict(face=True, select=nn.TopK(2)), "face: expected none beside select TopK, got True"),
    (dict(augment=[2]), "augment: expected 0 to 1, got 2"),
    (dict(augment=[1, 1]), "augment: expected each axis once"),
    (dict(augment=True, form="determinant"), "augment: expected none with form determinant"),
    (dict(augment=True, select=nn.Path(2)), "augment: expected none beside select Path"),
    (dict(distinct="all"), "distinct: expected none, axes or with_query, got 'all'"),
    (dict(distinct="axes", select=nn.TopK(2)), "distinct: expected none beside select TopK"),
    (dict(dropout=1.0), "dropout: expected a share in [0, 1), got 1.0"),
    (dict(dropout=0.1, select=nn.TopK(2)), "dropout: expected none beside select TopK, got 0.1"),
    (dict(window=3, select=nn.TopK(2)), "window: expected none beside chosen keys, got 3"),
    (dict(context_dims=(3, 3), select=nn.TopK(2)), "context_dims: expected none beside select"),
    (dict(select="topk"), "select: expected a Select or None, got 'topk'"),
    (dict(select=nn.Window(3)), "select: Window is a part of Union"),
    (dict(select=nn.TopK((1, 2, 3))), "select: expected a k for each of 2 axes, got 3"),
    (dict(select=nn.TopK(2, dict(size=3))), "indexer: expected arguments of Indexer, got 'size'"),
    (dict(select=nn.TopK(2, dict(dim=3))), "indexer: expected arguments of Indexer, got 'dim'"),
    (dict(orders=[1, 2]), "orders: expected one order for each of 4 heads, got 2"),
    (dict(orders=[1, 2, 1, 0]), "orders: expected 1 to 8, got 0"),
    (dict(orders=[1, 2, 1, 1], kv_heads=2), "orders: expected one order for the 2 heads of a key"),
    (dict(orders=[1, 1, 2, 2], augment=[2]), "augment: expected 0 to 1, got 2"),
    (dict(orders=[1] * 4, context_dims=(3,)), "context_dims: expected none beside orders"),
    (dict(orders=[1, 1, 2, 2], window=[3, 4, 5]), "window: expected one entry for each of 2 axes"),
    (dict(orders=[1, 1, 2, 2], order=3), "order: expected none beside orders, got 3"),
    (dict(orders=[2] * 4, rotary=True), "rotary: expected an order of 1 or form determinant"),
    (dict(device="nowhere"), "device: expected a device, got 'nowhere'"),
    (dict(dtype=torch.int64), "dtype: expected a floating dtype"),
    (dict(dtype="float32"), "dtype: expected a dtype or None, got 'float32'"),
]


@pytest.mark.parametrize("options, words", WRONG, ids=lambda v: str(v)[:40])
def test_options_that_do_not_go_together_are_named_at_once(options, words):
    with pytest.raises((ValueError, TypeError)) as error:
        nn.SimplicialAttention(DIM, HEADS, **options)
    text = str(error.value)
    assert words in text and text.startswith("[") and "\n" not in text


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: nn.TopK(0), "[TopK] k: expected at least 1, got 0"),
        (lambda: nn.TopK([]), "[TopK] k: expected at least one number"),
        (lambda: nn.TopK(2.5), "[TopK] k: expected an integer or a list of integers, got 2.5"),
        (lambda: nn.TopK(2, loss=-1), "[TopK] loss: expected 0 or more, got -1"),
        (lambda: nn.Path(2, loss=float("inf")), "[Path] loss: expected 0 or more, got inf"),
        (lambda: nn.TopK(2, "light"), "[TopK] indexer: expected a dict"),
        (lambda: nn.Path((1, 2)), "[Path] k: expected an integer, got tuple"),
        (lambda: nn.Linear("cosine"), "[Linear] features: expected elu, relu, random"),
        (lambda: nn.Window(0), "[Window] left: expected at least 1, got 0"),
        (lambda: nn.Sinks(0), "[Sinks] count: expected at least 1, got 0"),
        (lambda: nn.Neighbours([[0, 1]]), "[Neighbours] adjacency: expected a tensor"),
        (lambda: nn.Neighbours(torch.ones(3, 4)), "[Neighbours] adjacency: expected bool"),
        (lambda: nn.Neighbours(graph(), nodes=9), "[Neighbours] nodes: expected 7, those of"),
        (
            lambda: nn.Neighbours(graph().to_sparse_csr(), nodes=3),
            "[Neighbours] nodes: expected 7, those of adjacency, got 3",
        ),
        (lambda: nn.Window(2) | nn.Linear(), "[Union] parts: expected Window, Sinks, Neighbours"),
        (lambda: nn.TopK(1) | nn.TopK(2), "[Union] parts: expected at most one TopK, got 2"),
        (lambda: nn.Union(()), "[Union] parts: expected selections, got"),
    ],
)
def test_wrong_selections_are_named(make, words):
    with pytest.raises((TypeError, ValueError)) as error:
        make()
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name, given, words",
    [
        ("topk", dict(mask=torch.ones(1, 1, T, T, T).bool()), "mask: expected None beside select"),
        ("topk", dict(key_lengths=torch.ones(2, 2).long()), "key_lengths: expected int64 of shape"),
        ("topk", dict(key_masks=[torch.ones(2, T).bool()] * 2), "key_masks: expected one of bool"),
        ("topk", dict(cu_seqlens=torch.tensor([0, 3])), "cu_seqlens: expected 0 <= .. <= 7"),
        ("linear", dict(adjacency=torch.ones(T, T).bool()), "adjacency: expected None beside"),
        ("linear", dict(cu_seqlens=torch.tensor([0, 7])), "cu_seqlens: expected None beside"),
        ("union", dict(adjacency=graph().to_sparse_csr()), "adjacency: expected bool beside"),
        ("union", dict(positions=torch.arange(T)), "positions: expected int64 of shape [2, 7]"),
        ("neighbours", dict(adjacency=torch.ones(6, 6).bool()), "adjacency: expected bool of"),
        ("window", dict(adjacency=torch.ones(6, 6).bool()), "adjacency: expected bool of shape"),
        ("window", dict(key_masks=torch.ones(2, 6).bool()), "key_masks"),
        ("window", dict(contexts=[tokens()]), "contexts: expected 0 tensors, got 1"),
    ],
)
def test_wrong_inputs_get_one_line(name, given, words):
    with pytest.raises((ValueError, TypeError)) as error:
        layer(name)(tokens(), **given)
    assert words in str(error.value) and "\n" not in str(error.value)


RISING = torch.tensor([[0, 1, 2, 4, 5, 8, 9]] * 2)
FALLING = torch.tensor([[0, 1, 2, 0, 1, 2, 3]] * 2)


@pytest.mark.parametrize("name", ["window", "topk", "union", "linear", "path"])
@pytest.mark.parametrize(
    "positions, given, says",
    [
        (RISING, {}, None),
        (FALLING, {}, "got 2 before 0 in sequence 0"),
        (RISING.flip(1), {}, "got 9 before 8 in sequence 0"),
        (RISING * 0, {}, "got 0 before 0 in sequence 0"),
        (FALLING, dict(key_lengths=torch.tensor([3, 2])), None),
        (FALLING, dict(key_lengths=torch.tensor([3, 4])), "got 2 before 0 in sequence 1"),
        (FALLING, dict(key_masks=torch.arange(7).expand(2, 7) > 2), None),
        (FALLING, dict(cu_seqlens=torch.tensor([0, 3, 7])), None),
        (FALLING, dict(cu_seqlens=torch.tensor([0, 4, 7])), "got 2 before 0 in sequence 0"),
    ],
)
def test_positions_rise_from_token_to_token(name, positions, given, says):
    if name == "linear" and "cu_seqlens" in given:
        return
    if says is None:
        assert layer(name)(tokens(), positions=positions, **given).shape == (2, T, DIM)
        return
    with pytest.raises(ValueError, match=rf"positions: expected numbers that rise .*, {says}$"):
        layer(name)(tokens(), positions=positions, **given)


CACHES = {
    "window": (
        dict(window=3),
        dict(window=5),
        "window [5, 5], as make_cache() makes, got window [3, 3]",
    ),
    "one axis": (dict(window=[3, 4]), dict(window=[3, -1]), None),
    "orders": (
        dict(orders=[1, 1, 2, 2], window=3),
        dict(orders=[1, 1, 2, 2], window=4),
        "window [4]",
    ),
    "all keys": (dict(window=3), dict(), None),
    "linear": (
        dict(select=nn.Linear("elu")),
        dict(select=nn.Linear("relu")),
        "features 'relu', got 'elu'",
    ),
    "linear window": (
        dict(select=nn.Linear(), window=3),
        dict(select=nn.Linear(), window=4),
        "window [4, 4]",
    ),
}


@pytest.mark.parametrize("fixed", [False, True], ids=["rings", "slots"])
@pytest.mark.parametrize("name", CACHES)
@torch.no_grad()
def test_a_cache_keeps_what_the_layer_sees(name, fixed):
    of_cache, own, says = CACHES[name]
    make = lambda options: nn.SimplicialAttention(
        DIM, HEADS, causal=True, dtype=torch.float64, **options
    )
    if fixed and (name == "orders" or name.startswith("linear")):
        return
    cache = make(of_cache).make_static_cache(2, T) if fixed else make(of_cache).make_cache()
    if says is None and not fixed:
        assert make(own)(tokens(), cache=cache).shape == (2, T, DIM)
        return
    with pytest.raises(ValueError) as error:
        make(own)(tokens(), cache=cache)
    assert (says or "window [") in str(error.value)
    assert "] cache: expected one of" in str(error.value)
    assert cache.position == 0 if not fixed else int(cache.positions(1).sum()) == 0


def test_a_graph_of_other_tokens_is_refused():
    with pytest.raises(ValueError, match="x: expected the 7 tokens of the graph of select, got 6"):
        layer("neighbours")(tokens(length=6))
    module = nn.SimplicialAttention(DIM, HEADS, select=nn.Neighbours())
    with pytest.raises(ValueError, match="adjacency: expected the graph of select Neighbours"):
        module(tokens(dtype=torch.float32))
