"""The report about the attention layers of any module."""

import math

import pytest
import torch
from torch import nn

import nsimplex
from nsimplex import analysis
from nsimplex._page import figure
from nsimplex.analysis import call_recorder
from nsimplex.analysis.call_recorder import run_recorded
from nsimplex.analysis.layer_bounds import layer_lipschitz_bound
from nsimplex.nn import ExpertChoice, Linear, SimplicialAttention, TopK


class Attention(nn.Module):
    """Attention as users write it, with one of several ways to multiply."""

    def __init__(self, dim=8, heads=2, way="matmul"):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(dim, dim) for _ in range(4)
        )
        self.num_heads, self.way = heads, way

    def forward(self, x):
        query, key, value = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        dim, length = query.size(-1), x.size(1)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        if self.way == "sdpa":
            out = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        elif self.way == "matmul":
            scores = query @ key.transpose(-1, -2) / math.sqrt(dim)
            out = scores.masked_fill(future, -1e9).softmax(-1) @ value
        elif self.way == "einsum":
            scores = torch.einsum("bhid,bhjd->bhij", query, key) * dim**-0.5
            weights = torch.softmax(scores.masked_fill(future, -torch.inf), -1)
            out = torch.einsum("bhij,bhjd->bhid", weights, value)
        else:
            query, key, value = (x.flatten(0, 1) for x in (query, key, value))
            mask = torch.zeros(length, length).masked_fill(future, -torch.inf)
            mask = mask.expand(query.size(0), -1, -1)
            scores = torch.baddbmm(mask, query * dim**-0.5, key.transpose(1, 2))
            out = torch.bmm(scores.softmax(-1), value).unflatten(0, (-1, self.num_heads))
        return self.out_proj(out.transpose(1, 2).flatten(2))


WAYS = ("sdpa", "matmul", "einsum", "bmm")


def replayed(record):
    call = record.call
    out, _ = call.run(call.query, call.keys, call.values)
    return record.module.out_proj(out.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("way", WAYS)
def test_what_is_recorded_of_own_attention_computes_its_output(way):
    torch.manual_seed(1)
    model, x = Attention(way=way).eval(), torch.randn(2, 6, 8)
    (record,) = run_recorded(model, x, "report").calls
    assert (record.name, record.order, record.heads) == ("", 1, 2)
    torch.testing.assert_close(replayed(record), model(x), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(record.after, model(x))
    torch.testing.assert_close(record.before, x)


def test_the_same_layer_has_the_same_numbers_whatever_way_it_multiplies():
    reports = []
    for way in WAYS:
        torch.manual_seed(1)
        model = Attention(way=way)
        reports.append(analysis.report(model, torch.randn(2, 6, 8), steps=2).layers[0])
    first = reports[0]
    assert None not in (first.entropy, first.jacobian, first.lipschitz_bound, first.sharpness)
    for other in reports[1:]:
        for name in ("entropy", "sink_mass", "jacobian", "lipschitz_bound", "rank_after"):
            assert getattr(other, name) == pytest.approx(getattr(first, name), rel=1e-3), name


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention_of_torch(batch_first, need_weights):
    torch.manual_seed(2)
    model = nn.MultiheadAttention(8, 2, batch_first=batch_first, bias=True)
    x = torch.randn(2, 5, 8)
    given = x if batch_first else x.transpose(0, 1)
    padding = torch.tensor([[False] * 5, [False, False, False, True, True]])
    (record,) = run_recorded(
        model, dict(query=given, key=given, value=given, key_padding_mask=padding,
                    need_weights=need_weights), "report",
    ).calls  # fmt: skip
    torch.testing.assert_close(record.before, x)
    weights = model(given, given, given, key_padding_mask=padding)[1]
    torch.testing.assert_close(record.call.marginals(0).mean(1), weights)
    torch.testing.assert_close(record.again(record.before), record.after)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
def test_models_of_transformers_with_both_attentions(kind):
    transformers = pytest.importorskip("transformers")
    sizes = dict(num_hidden_layers=2, hidden_size=16, num_attention_heads=4, vocab_size=30)
    made = {
        "gpt2": lambda how: transformers.GPT2Model(
            transformers.GPT2Config(
                n_layer=2, n_embd=16, n_head=4, vocab_size=30, attn_implementation=how,
                bos_token_id=0, eos_token_id=0,
            )
        ),
        "llama": lambda how: transformers.LlamaModel(
            transformers.LlamaConfig(
                **sizes, num_key_value_heads=2, intermediate_size=32, attn_implementation=how
            )
        ),
        "bert": lambda how: transformers.BertModel(
            transformers.BertConfig(**sizes, intermediate_size=32, attn_implementation=how)
        ),
    }  # fmt: skip
    rows = []
    for how in ("sdpa", "eager"):
        torch.manual_seed(3)
        model = made[kind](how)
        batch = dict(
            input_ids=torch.arange(12).view(1, 12), attention_mask=torch.ones(1, 12).long()
        )
        found = analysis.report(model, batch, steps=2)
        assert model.config.use_cache or kind == "bert"
        assert len(found.layers) == 2 and found.layers[1].block is not None
        rows.append(found.layers[1])
    for name in ("entropy", "sink_mass", "jacobian", "rank_before", "rank_block", "radius"):
        assert getattr(rows[1], name) == pytest.approx(getattr(rows[0], name), rel=2e-3), name
    for row in rows:
        assert row.jacobian <= row.lipschitz_bound
        assert row.sensitivity <= row.sensitivity_bound * (1 + 1e-9)
        assert row.sharpness <= row.sharpness_bound * (1 + 1e-9)


def test_a_layer_has_the_numbers_of_the_single_functions():
    torch.manual_seed(4)
    layer = SimplicialAttention(8, 2, order=2, causal=True).double()
    x = torch.randn(1, 7, 8, dtype=torch.float64)
    made = analysis.report(layer, x, steps=8).layers[0]
    assert made.jacobian == pytest.approx(float(analysis.jacobian_norm(layer, x).value), rel=0.05)
    assert made.rank_before == pytest.approx(float(analysis.effective_rank(x)))
    assert made.rank_after == pytest.approx(float(analysis.effective_rank(layer(x).detach())))
    with analysis.SmoothingMonitor(nn.ModuleList([layer])) as monitor:
        layer(x)
    assert made.ratio_after == pytest.approx(float(monitor.layers[0].ratio))
    query, *others = layer.qkv(x).unflatten(-1, (-1, 4)).transpose(1, 2).split(2, 1)
    weights = nsimplex.attention_weights(query, others[:2], causal=True)
    received = torch.stack([weights.sum(4).mean((0, 1, 2)), weights.sum(3).mean((0, 1, 2))])
    assert made.sink_mass == pytest.approx(float(received.max()))
    assert made.sink_key == int(received.amax(0).argmax())


@pytest.mark.parametrize(
    "options",
    [
        dict(order=1, causal=False),
        dict(order=2, causal=True, scale="unit"),
        dict(order=2, causal=False, bias=True),
        dict(order=3, causal=True, kv_heads=1, unit_layer=True),
    ],
)
def test_no_layer_exceeds_its_lipschitz_bound(options):
    for seed in range(4):
        torch.manual_seed(seed)
        layer = SimplicialAttention(6, 2, **options).double()
        x = torch.randn(1, 4, 6, dtype=torch.float64) * (0.3, 1, 3)[seed % 3]
        (record,) = run_recorded(layer, x, "report").calls
        bound = layer_lipschitz_bound(record, float(x.norm(dim=-1).max()))
        assert bound is not None and float(analysis.jacobian_norm(layer, x).value) <= bound


def test_the_bound_of_a_layer_of_zero_queries_is_that_of_its_values():
    """Keys and queries of zero norm: the derivative is at most n sqrt(n) |W_V| |W_O|."""
    layer = SimplicialAttention(4, 1, order=1, causal=True).double()
    with torch.no_grad():
        layer.qkv.weight[:8] = 0
    (record,) = run_recorded(layer, torch.randn(1, 3, 4, dtype=torch.float64), "report").calls
    norms = [torch.linalg.matrix_norm(w, 2) for w in (layer.qkv.weight[8:], layer.output.weight)]
    expected = 3 * math.sqrt(3) * float(norms[0] * norms[1])
    assert layer_lipschitz_bound(record, 1.0) == pytest.approx(expected)


@pytest.mark.parametrize("layer", [
    lambda: SimplicialAttention(8, 2, norm="qk"),
    lambda: SimplicialAttention(8, 2, reduce="sum"),
    lambda: SimplicialAttention(8, 2, normalizer="sigmoid"),
])  # fmt: skip
def test_layers_that_no_theorem_covers_have_no_bound(layer):
    made = analysis.report(layer(), torch.randn(1, 5, 8), steps=1).layers[0]
    assert made.lipschitz_bound is None and made.jacobian is not None


@pytest.mark.parametrize("options", [dict(select=TopK(2)), dict(select=Linear()), dict(face=True)])
def test_layers_without_one_softmax_have_their_tokens_and_jacobian(options):
    made = analysis.report(
        SimplicialAttention(8, 2, causal=True, **options), torch.randn(2, 5, 8), steps=2
    ).layers[0]
    assert made.order == 2 and made.entropy is None and made.sensitivity is None
    assert made.jacobian is not None and made.rank_after is not None


def test_the_model_is_left_as_it_was():
    model = nn.Sequential(SimplicialAttention(8, 2, dropout=0.5), nn.Dropout(0.5))
    model[1].eval()
    before = torch.get_rng_state()
    first, second = (analysis.report(model, torch.ones(1, 5, 8)).rows() for _ in range(2))
    assert first == second
    assert torch.equal(before, torch.get_rng_state())
    assert model.training and model[0].training and not model[1].training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_hooks_are_gone_after_a_failure():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x):
            raise RuntimeError("broken")

    model = Broken()
    with pytest.raises(RuntimeError, match="broken"):
        analysis.report(model, torch.ones(1, 2))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_layer_that_runs_twice_has_two_rows():
    layer = SimplicialAttention(8, 2)

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([layer])

        def forward(self, x):
            return layer(layer(x))

    rows = analysis.report(Twice(), torch.randn(1, 4, 8), derivatives=False).layers
    assert [row.name for row in rows] == ["layers.0", "layers.0"]
    assert rows[0].rank_after == pytest.approx(rows[1].rank_before)
    assert rows[0].jacobian is None


def test_batches_are_passed_as_they_are_written():
    layer, x = SimplicialAttention(8, 2), torch.randn(1, 4, 8)
    rows = [
        analysis.report(layer, batch, derivatives=False).layers[0]
        for batch in (x, (x,), [x], dict(x=x))
    ]
    assert len({row.rank_after for row in rows}) == 1
    expert = analysis.report(ExpertChoice(layer, tokens=0.5), x, derivatives=False)
    assert expert.layers[0].tokens == 2


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((nn.Linear(3, 3), torch.ones(1, 3)), r"\[report\] model: expected .* calls attention"),
        ((torch.ones(2), torch.ones(1, 3)), r"\[report\] model: expected"),
    ],
)
def test_errors_name_the_argument(arguments, said):
    with pytest.raises((ValueError, TypeError), match=said):
        analysis.report(*arguments)


def test_a_batch_that_the_model_refuses_is_named():
    with pytest.raises(ValueError, match=r"\[report\] batch: the model refuses it: .*\[B, T, 8\]"):
        analysis.report(SimplicialAttention(8, 2), torch.randn(1, 4, 7))


@pytest.mark.parametrize("name", ["queries", "steps"])
def test_counts_are_positive(name):
    with pytest.raises(ValueError, match=rf"\[report\] {name}: expected 1 or more, got 0"):
        analysis.report(SimplicialAttention(8, 2), torch.randn(1, 4, 8), **{name: 0})


def test_the_table_and_the_page(tmp_path):
    torch.manual_seed(5)
    model = nn.Sequential(*[SimplicialAttention(8, 2, order=n) for n in (1, 2)])
    made = analysis.report(model, torch.randn(1, 6, 8), steps=1)
    lines = made.table().splitlines()
    assert len(lines) == 3 and lines[0].split()[:3] == ["layer", "order", "heads"]
    assert lines[2].split()[:3] == ["1", "2", "2"]
    assert made.cost > 1 and made.seconds >= made.forward_seconds
    pytest.importorskip("matplotlib")
    page = made.save(tmp_path / "model.html").read_text()
    # Each of five charts is drawn twice, the second time for phones.
    first, last = (made.layers[at].rank_after for at in (0, -1))
    tile = f"<b>{first:.1f} → {last:.1f}</b>"  # as in the sentence above the chart
    assert tile in page and f"from {first:.1f} to {last:.1f}; 1 means" in page
    assert page.count('class="tile"') == 2 and f"as long as {made.cost:.0f} passes of" in page
    assert page.count("<svg") == 10 and page.count('class="see"') == 5
    assert "http" not in page.replace("http://www.w3.org", "") and "<script" not in page
    for row in made.layers:
        assert figure(row.lipschitz_bound) in page


OTHER_WEIGHTS = {
    "of each key": lambda scores: scores.softmax(1),
    "of each key, turned": lambda scores: scores.softmax(1).transpose(1, 2),
    "turned": lambda scores: scores.softmax(-1).transpose(1, 2),
    "renormalised": lambda scores: (a := scores.softmax(1)) / a.sum(-1, keepdim=True),
    "gated": lambda scores: scores.softmax(-1) * torch.linspace(0.1, 1.0, 5),
    "hard": lambda scores: scores.softmax(-1).round(),
    "of the batch": lambda scores: scores.softmax(0),
}
PLAIN_WEIGHTS = {
    "float32": lambda scores: scores.softmax(-1, dtype=torch.float64).float(),
    "bfloat16": lambda scores: scores.softmax(-1).bfloat16().float(),
    "no key": lambda scores: (
        scores.masked_fill(torch.eye(5)[0].bool()[:, None], -torch.inf).softmax(-1).nan_to_num(0.0)
    ),
}


class Scores(nn.Module):
    """Attention whose weights a function computes of the scores."""

    def __init__(self, weights):
        super().__init__()
        self.query, self.key = nn.Linear(8, 8), nn.Linear(8, 8)
        self.weights = weights

    def forward(self, x):
        return self.weights(self.query(x) @ self.key(x).transpose(1, 2)) @ x


@pytest.mark.parametrize("name", [*OTHER_WEIGHTS, *PLAIN_WEIGHTS])
def test_weights_that_are_no_softmax_over_keys_have_no_entropy(name):
    torch.manual_seed(0)
    layer = Scores((OTHER_WEIGHTS | PLAIN_WEIGHTS)[name])
    made = analysis.report(layer, torch.randn(2, 5, 8), steps=1).layers[0]
    known = name in PLAIN_WEIGHTS
    assert (made.entropy is not None, made.sink_mass is not None) == (known, known)
    assert (made.jacobian is not None or known) and made.rank_after is not None


def test_a_bias_within_einsum_of_other_axes_is_no_attention():
    left, right = torch.randn(2, 3, 4), torch.randn(3, 2, 4)
    assert call_recorder._einsum_operands("bid,jbd->ij", [left, right]) == (None, None, None)
