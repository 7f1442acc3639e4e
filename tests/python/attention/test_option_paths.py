"""Every option on every path of attention: the path takes it, or names it in one line."""

import pytest
import torch
import torch.distributed as dist
from problems import random_problem

import nsimplex
from nsimplex import _options, nn
from nsimplex._options import DEFAULTS, TAKEN, operator_options
from nsimplex.gpu import registration

B, H, T, D = 2, 4, 6, 6
MASKS = torch.arange(T) != torch.tensor([[1], [4]])
#: By option, a call in which it is set: with the options that it needs.
SET = {
    "causal": dict(causal=True),
    "window": dict(window=[(2, 0), (3, 0)]),
    "form": dict(form="determinant"),
    "reduce": dict(reduce="sum"),
    "normalizer": dict(normalizer="sigmoid"),
    "scale": dict(scale=(0.5, 1.5)),
    "key_lengths": dict(key_lengths=torch.tensor([6, 4])),
    "key_masks": dict(key_masks=[MASKS, ~MASKS]),
    "cu_seqlens": dict(cu_seqlens=torch.tensor([0, 2, 6])),
    "mask": dict(mask=torch.linspace(-1, 1, T).expand(1, 1, T, 1, T)),
    "sink": dict(sink=torch.linspace(-1, 1, H), normalizer="softmax_sink"),
    "distinct": dict(distinct="axes"),
    "augment": dict(augment=[1]),
    "dropout_p": dict(dropout_p=0.4, seed=3),
    "seed": dict(seed=3),
    "query_positions": dict(query_positions=torch.tensor([0, 3]), causal=True),
    "order_bias": dict(order_bias=torch.linspace(-1, 1, 2 * H).view(2, H), augment=[1]),
    "softcap": dict(softcap=0.3),
    "alibi_slopes": dict(alibi_slopes=torch.linspace(-0.2, 0.5, H)),
    "pair_masks": dict(pair_masks=[torch.ones(T, T).tril(), torch.ones(T, T, dtype=torch.bool)]),
    "layout": dict(layout="bthd"),
}
COMPOSED = {
    path: nsimplex._library.classes.AttentionPaths.options(path)
    for path in ("parts", "faces", "weights")
}
EVERY = pytest.mark.parametrize("name", SET)
PROBLEM = random_problem(2, batch=B, heads=H, kv_heads=2, queries=T, lengths=[T, T], dim=D)
QUERY, PAIRS = PROBLEM.inputs[0], (PROBLEM.inputs[1:3], PROBLEM.inputs[3:])


def ring(**options):
    return nsimplex.KeyValueCache([-1, 4]).attend(QUERY, *PAIRS, **options)


def slots(**options):
    sizes = dict(batch=B, slots=T, kv_heads=2, head_dim=D, dtype=torch.float64)
    return nsimplex.StaticCache([-1, 4], **sizes).attend(QUERY, *PAIRS, **options)


def pages(**options):
    sizes = dict(pages=4, page=3, kv_heads=2, head_dim=D, dtype=torch.float64)
    table, lengths = torch.tensor([[0, 1], [2, 3]]), torch.zeros(B, dtype=torch.int64)
    cache = nsimplex.PagedCache([-1, 4], **sizes)
    return cache.attend(QUERY, *PAIRS, table, lengths, **options)


def shards(unbounded="gather", **options):
    from nsimplex.distributed import ContextParallel

    context = ContextParallel(None, unbounded)
    return context.attention(QUERY, *PAIRS, **dict(window=[-1, 4]) | options)


@pytest.fixture(scope="module")
def group():
    if not dist.is_available():
        pytest.skip("needs torch.distributed")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_every_option_has_a_call():
    assert set(SET) == set(DEFAULTS) - {"logit_scale", "output_scale"}
    for path, options in TAKEN.items():
        assert set(options) <= set(DEFAULTS), path


def refusal(call, options):
    """The name in the one line of a refusal."""
    with pytest.raises(ValueError) as error:
        call(**options)
    text = str(error.value)
    assert "\n" not in text
    return text.split("] ")[1].split(":")[0]


@EVERY
@pytest.mark.parametrize("cache, path", [(ring, "ring"), (slots, "slots"), (pages, "slots")])
def test_a_cache_computes_it_or_refuses_it(cache, path, name):
    wrong = SET[name].keys() - TAKEN[path]
    if wrong:
        assert refusal(cache, SET[name]) in wrong
    else:
        whole = dict(causal=True, window=[-1, 4]) | SET[name]
        if path == "slots" and name == "key_lengths":
            whole["query_positions"] = torch.zeros(B, dtype=torch.int64)
        torch.testing.assert_close(cache(**SET[name]), nsimplex.reference(QUERY, *PAIRS, **whole))


@EVERY
@pytest.mark.parametrize("unbounded", ["gather", "ring"])
def test_shards_compute_it_or_refuse_it(group, unbounded, name):
    wrong = SET[name].keys() - TAKEN["shards"]
    if wrong:
        assert refusal(lambda **given: shards(unbounded, **given), SET[name]) in wrong
        return
    whole = dict(window=[(-1, -1), 4] if name != "key_lengths" else None) | SET[name]
    given = dict(window=whole["window"]) | SET[name]
    expected = nsimplex.reference(QUERY, *PAIRS, **whole)
    torch.testing.assert_close(shards(unbounded, **given), expected)


@EVERY
def test_rows_of_ones_go_with_it_or_refuse_it(name):
    call = lambda **given: nsimplex.attention(QUERY, *PAIRS, **dict(augment=[1]) | given)
    if name in DEFAULTS and name != "layout" and name not in ("scale", *COMPOSED["parts"]):
        with pytest.raises(
            ValueError, match=rf"^\[attention\] augment: expected none with {name},"
        ):
            call(**SET[name])
    elif name != "layout":
        expected = nsimplex.reference(QUERY, *PAIRS, **dict(augment=[1]) | SET[name])
        torch.testing.assert_close(call(**SET[name]), expected)


@EVERY
@pytest.mark.parametrize("path", ["faces", "weights"])
def test_other_functions_use_it_or_refuse_it(path, name):
    if name == "layout":
        return
    call = {
        "faces": lambda **given: nsimplex.face_attention(QUERY, *PAIRS, **given),
        "weights": lambda **given: nsimplex.attention_weights(QUERY, PAIRS[0], **given),
    }[path]
    wrong = SET[name].keys() - {"scale", *COMPOSED[path]}
    if wrong:
        assert refusal(call, SET[name]) in wrong
    elif (path, name) != ("weights", "reduce") and name != "seed":
        assert not torch.equal(call(**SET[name]), call())


@EVERY
def test_triton_takes_it_or_leaves_it_to_the_reference(name):
    query, keys, values = (
        QUERY.float(), [k.float() for k in PAIRS[0]], [v.float() for v in PAIRS[1]],
    )  # fmt: skip
    given = {n: value for n, value in SET[name].items() if n != "layout"}
    options = operator_options(query, keys, values, **given)
    reason = registration._refusal(query, keys, values, options)
    wrong = given.keys() - TAKEN["triton"]
    assert (reason is None) == (not wrong)
    assert reason is None or reason.removeprefix("does not take the option ") in wrong


def test_a_new_option_is_refused_until_somebody_decides(monkeypatch, group):
    """An option that the list has and no path takes."""
    monkeypatch.setitem(_options.DEFAULTS, "made_up", 1.0)
    for call in (ring, slots, pages, shards):
        assert refusal(call, dict(made_up=0.0)) == "made_up"
        torch.testing.assert_close(call(made_up=1.0), call())
    query = QUERY.float()
    for value, reason in ((0.0, "does not take the option made_up"), (1.0, None)):
        assert registration._refusal(query, [query], [query], {"made_up": value}) == reason
    assert _options.unhandled("around", {"made_up": 0.0}) == "made_up"


def test_a_layer_passes_its_column_on():
    assert set(nn.SimplicialAttention(8, 2)._options) == TAKEN["layer"] - {
        "logit_scale",
        "output_scale",
    }
