"""Causal encodings in models of other authors."""

import copy
import pickle
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nsimplex import causal, rotary
from nsimplex.causal import CausalPipeline

sys.path.insert(0, str(Path(__file__).parent))

from feature_models import ScBert, ScGpt, SelfAttention, tiny

NAMES = [f"g{i}" for i in range(6)]
VOCABULARY = {name: 2 * at + 1 for at, name in enumerate(NAMES)} | {"<pad>": 0, "other": 20}


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.num_heads, self.Wqkv = 2, nn.Linear(16, 48)

    def forward(self, x):
        return self.Wqkv(x)


@pytest.fixture(scope="module")
def table():
    return causal.simulate(nodes=6, degree=1, observations=300, seed=4).table


@pytest.fixture(scope="module")
def pipelines(table):
    return {d: CausalPipeline(dimension=d, steps=40).fit(table, names=NAMES) for d in (3, 8)}


def cells(pipeline=None):
    """Ids with a leading <pad> id 0 as <cls>, all genes, and one gene outside the fit."""
    ids = torch.tensor([[0, 1, 3, 5, 7, 9, 11, 20], [0, 11, 9, 20, 5, 1, 3, 7]])
    return ids, torch.rand(2, 8, generator=torch.Generator().manual_seed(1))


def by_hand(layer, x, angles):
    """nn.TransformerEncoderLayer, post-norm, with rotated queries and keys."""
    own = layer.self_attn
    q, k, v = F.linear(x, own.in_proj_weight, own.in_proj_bias).chunk(3, -1)
    q, k, v = (each.unflatten(-1, (own.num_heads, -1)).transpose(1, 2) for each in (q, k, v))
    q, k = rotary(q, angles=angles), rotary(k, angles=angles)
    out = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    x = layer.norm1(x + own.out_proj(out))
    return layer.norm2(x + layer.linear2(F.relu(layer.linear1(x))))


@pytest.mark.parametrize("dimension", [3, 8])
@pytest.mark.parametrize("training", [True, False])
def test_scgpt_turns_the_genes_that_it_reads(pipelines, dimension, training):
    pipeline, model = pipelines[dimension], tiny(ScGpt, count=21).train(training)
    ids, values = cells()
    plain = model(ids, values)[0]
    keys = list(model.state_dict())
    handle = pipeline.encode(model, gene_ids="encoder", vocabulary=VOCABULARY)
    assert handle.attentions == [f"transformer_encoder.layers.{i}.self_attn" for i in range(2)]
    # Angles per head where the dimension has planes for all, else the same for both heads.
    shape = (6, 2, 4) if dimension == 8 else (6, 1, 4)
    own = F.pad(pipeline.encode(), (0, 1 if dimension == 3 else 0)).view(shape).float()
    angles = torch.zeros(2, 8, *shape[1:])
    for row in range(2):
        for at, id in enumerate(ids[row].tolist()):
            if id % 2:
                angles[row, at] = own[(id - 1) // 2]
    x = model.encoder(ids) + model.value_encoder(values)
    for layer in model.transformer_encoder.layers:
        x = by_hand(layer, x, angles)
    with torch.no_grad():
        turned = model(ids, values)[0]
    torch.testing.assert_close(turned, x)
    assert (turned - plain).abs().max() > 1e-3 and list(model.state_dict()) == keys
    handle.remove()
    assert torch.equal(model(ids, values)[0], plain)


def test_the_order_of_genes_does_not_matter(pipelines):
    model = tiny(ScGpt, count=21).eval()
    ids, values = cells()
    order = torch.tensor([0, 5, 2, 7, 1, 3, 4, 6])
    with pipelines[8].encode(model, gene_ids=model.encoder, vocabulary=VOCABULARY):
        turned = model(ids, values)[0]
        again = model(ids[:, order], values[:, order])[0]
    torch.testing.assert_close(again, turned[:, order])


def test_padding_is_not_seen(pipelines):
    model = tiny(ScGpt, count=21).eval()
    ids, values = cells()
    with pipelines[8].encode(model, gene_ids="encoder", vocabulary=VOCABULARY):
        whole = model(ids[:, :5], values[:, :5])[0]
        mask = torch.zeros(2, 8, dtype=torch.bool)
        mask[:, 5:] = True
        padded = model(ids, values, src_key_padding_mask=mask)[0]
    torch.testing.assert_close(padded[:, :5], whole)


def test_angles_of_zero_change_nothing(pipelines):
    zero = copy.copy(pipelines[8])
    zero.tangents_ = torch.zeros_like(zero.tangents_)
    ids, values = cells()
    for training in (True, False):
        model = tiny(ScGpt, count=21).train(training)
        plain = model(ids, values)[0]
        with zero.encode(model, gene_ids="encoder", vocabulary=VOCABULARY):
            torch.testing.assert_close(model(ids, values)[0], plain)
    model = tiny(ScBert)
    x = torch.randint(0, 6, (2, 7))
    plain = model(x)
    with zero.encode(model):
        torch.testing.assert_close(model(x), plain)


def test_scbert_turns_its_columns_in_order(pipelines):
    model, x = tiny(ScBert), torch.randint(0, 6, (2, 7))  # six genes, then the cell
    plain = model(x)
    handle = pipelines[8].encode(model)
    assert len(handle.attentions) == 2 and handle.attentions[0].endswith("layers.0.0.fn")
    attention = model.performer.net.layers[0][0].fn
    inputs = torch.randn(2, 7, 16)
    angles = F.pad(pipelines[8].encode(4), (0, 0, 0, 0, 0, 1)).float()
    q = rotary(
        F.linear(inputs, attention.to_q.weight).view(2, 7, 4, 4), angles=angles, layout="bthd"
    )
    torch.testing.assert_close(attention.to_q(inputs).view(2, 7, 4, 4), q)
    assert (attention.to_v(inputs) - F.linear(inputs, attention.to_v.weight)).abs().max() < 1e-6
    assert (model(x) - plain).abs().max() > 1e-3
    with pytest.raises(ValueError, match=r"expected 6 tokens or more, got 5; gene_ids tells"):
        model(x[:, :5])
    handle.remove()
    assert torch.equal(model(x), plain)
    with pipelines[8].encode(model, leading=1):
        first = model.performer.net.layers[0][0].fn.to_q(inputs)[:, 0]
        torch.testing.assert_close(first, F.linear(inputs, attention.to_q.weight)[:, 0])


def test_one_projection_to_queries_keys_and_values(pipelines):
    model, x = tiny(Packed), torch.randn(2, 6, 16)
    q, k, v = model(x).chunk(3, -1)
    angles = pipelines[8].encode(2).float()
    with pipelines[8].encode(model):
        for turned, own in zip(model(x).chunk(3, -1), (q, k, None)):
            expected = (
                v if own is None
                else rotary(own.view(2, 6, 2, 8), angles=angles, layout="bthd").flatten(2)
            )  # fmt: skip
            torch.testing.assert_close(turned, expected)


def test_bert_of_transformers(pipelines):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=16, initializer_range=0.5,
    )  # fmt: skip
    model = transformers.BertModel(config).eval()
    ids, _ = cells()
    plain = model(ids).last_hidden_state
    where = "embeddings.word_embeddings"
    with pipelines[8].encode(model, gene_ids=where, vocabulary=VOCABULARY) as handle:
        assert len(handle.attentions) == 2
        assert (model(ids).last_hidden_state - plain).abs().max() > 1e-3
    assert torch.equal(model(ids).last_hidden_state, plain)


def test_the_model_can_be_trained(pipelines):
    model = tiny(ScGpt, count=21)
    ids, values = cells()
    pipelines[8].encode(model, gene_ids="encoder", vocabulary=VOCABULARY)
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(20):
        loss = F.cross_entropy(model(ids, values)[1], torch.tensor([0, 2]))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda p: p.encode(nn.Linear(2, 2)), r"\[encode\] model: expected layers of attention"),
        (lambda p: p.encode(ScBert(width=24)), "dimension: expected 12 .* at most 3 .* got 8"),
        (lambda p: p.encode(ScBert(), gene_ids="x"), "gene_ids: expected together with vocabulary"),
        (
            lambda p: p.encode(ScGpt(21), gene_ids="x", vocabulary=VOCABULARY),
            "gene_ids: expected the name of a module, got 'x'",
        ),
        (
            lambda p: p.encode(ScGpt(21), gene_ids="encoder", vocabulary={"z": 1}),
            "vocabulary: expected names of the columns, got none of them",
        ),
        (lambda p: p.encode(ScBert(), leading=-1), "leading: expected 0 or more, got -1"),
        (lambda p: p.encode(ScBert(width=20)), "heads of an even width in .*, got 20 / 4"),
        (
            lambda p: p.encode(ScGpt(21), gene_ids="encoder", vocabulary=dict.fromkeys(NAMES, 3)),
            "vocabulary: expected different ids of the columns, got 1 for",
        ),
        (lambda p: p.encode(gene_ids="encoder"), "gene_ids: expected together with a model, got n"),
        (lambda p: p.encode(2, vocabulary=VOCABULARY), "vocabulary: expected together with a mod"),
        (
            lambda p: p.encode(nn.MultiheadAttention(8, 2), heads=4),
            "heads: expected the 2 of model",
        ),
        (lambda p: p.encode(ScBert(), heads=7), "heads: expected the 4 of .*, got 7"),
        (lambda p: p.encode(2, heads=2), "heads: expected once"),
        (
            lambda p: p.encode(nn.MultiheadAttention(8, 2, add_zero_attn=True)),
            "expected self-attention in  without bias_k",
        ),
    ],
)
def test_names_what_cannot_be(pipelines, call, says):
    with pytest.raises(ValueError, match=says) as raised:
        call(pipelines[8])
    assert "\n" not in str(raised.value)


def model_of(kind):
    """(model, inputs, options of encode) for each way in which a layer projects."""
    if kind == "torch":
        options = dict(gene_ids="encoder", vocabulary=VOCABULARY)
        return tiny(ScGpt, count=21).eval(), cells(), options
    if kind == "pair":
        return tiny(ScBert).eval(), (torch.randint(0, 6, (2, 7)),), {}
    return tiny(Packed), (torch.randn(2, 6, 16),), {}


@pytest.mark.parametrize("kind", ["torch", "pair", "packed"])
def test_a_model_turns_by_one_encoding_at_a_time(pipelines, kind):
    """Two would add their angles, or the second would take the place of the first."""
    model, inputs, options = model_of(kind)
    plain, handle = result(model, inputs), pipelines[8].encode(model, **options)
    turned = result(model, inputs)
    for again in (model, copy.deepcopy(model)):
        with pytest.raises(ValueError, match=r"\[encode\] model: expected one without an encoding"):
            pipelines[3].encode(again, **options)
        assert torch.equal(result(again, inputs), turned)
    handle.remove()
    assert torch.equal(result(model, inputs), plain)
    with pipelines[8].encode(model, **options):
        assert torch.equal(result(model, inputs), turned)


@pytest.mark.parametrize("kind", [ScBert, Packed])
def test_low_precision_turns_by_exact_angles(pipelines, kind):
    """The angles are those of the pipeline, and not their values in bfloat16."""
    far = copy.copy(pipelines[8])
    far.scale = 100.0
    layer = SelfAttention(16, 2) if kind is ScBert else tiny(Packed)
    layer = layer.to(torch.bfloat16)
    x = torch.randn(2, 6, 16, dtype=torch.bfloat16)
    projection = layer.to_q if kind is ScBert else layer.Wqkv
    plain = projection(x)[..., :16].unflatten(-1, (2, 8)).transpose(1, 2)
    expected = rotary(plain.double(), angles=far.encode(2)).transpose(1, 2).flatten(2)
    with far.encode(layer):
        torch.testing.assert_close(projection(x)[..., :16].double(), expected, atol=1e-2, rtol=1e-2)


def test_layers_that_do_not_say_how_many_heads_they_have(pipelines):
    layer = SelfAttention(16, 4)
    del layer.heads
    with pytest.raises(ValueError, match="heads: expected the number of heads"):
        pipelines[8].encode(layer)
    assert pipelines[8].encode(layer, heads=4).attentions == [""]


@pytest.mark.parametrize("batch_first", [True, False])
def test_masks_and_weights_of_multihead_attention(pipelines, batch_first):
    """With angles of 0 they are those of torch."""
    zero = copy.copy(pipelines[8])
    zero.tangents_ = torch.zeros_like(zero.tangents_)
    layer = nn.MultiheadAttention(16, 2, batch_first=batch_first)
    x = torch.randn(3, 6, 16) if batch_first else torch.randn(6, 3, 16)
    padding = torch.zeros(3, 6, dtype=torch.bool)
    padding[1, 4:] = True
    causal_mask = torch.ones(6, 6, dtype=torch.bool).triu(1)
    heads = torch.randn(6, 6, 6)
    cases = [
        dict(key_padding_mask=padding),
        dict(attn_mask=causal_mask, key_padding_mask=padding),
        dict(attn_mask=heads, average_attn_weights=False),
        dict(attn_mask=causal_mask, need_weights=False),
    ]
    expected = [layer(x, x, x, **case) for case in cases]
    with zero.encode(layer):
        for case, (out, weights) in zip(cases, expected):
            got = layer(x, x, x, **case)
            torch.testing.assert_close(got[0], out)
            assert (got[1] is None) == (weights is None)
            if weights is not None:
                torch.testing.assert_close(got[1], weights)


def test_other_ids_than_tokens_are_refused(pipelines):
    model = tiny(ScGpt, count=21)
    ids, values = cells()
    pipelines[8].encode(model, gene_ids="encoder", vocabulary=VOCABULARY)
    model(ids, values)
    x = torch.randn(2, 5, 16)
    with pytest.raises(ValueError, match=r"gene_ids: expected ids \[2, 5\], one per token"):
        model.transformer_encoder(x)
    with pytest.raises(ValueError, match="expected self-attention of batches"):
        model.transformer_encoder.layers[0].self_attn(x, x + 1, x)


COPIES = [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]


@pytest.mark.parametrize("duplicate", COPIES, ids=["deepcopy", "pickle"])
@pytest.mark.parametrize("kind", ["torch", "pair", "packed"])
def test_copies_of_a_model_turn_with_their_own_weights(pipelines, kind, duplicate):
    model, inputs, options = model_of(kind)
    plain, handle = result(model, inputs), pipelines[8].encode(model, **options)
    turned, copied = result(model, inputs), duplicate(model)
    assert torch.equal(result(copied, inputs), turned)
    assert result(model, [each[:1] for each in inputs]).shape[0] == 1  # shares no ids
    assert torch.equal(result(copied, inputs), turned)
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.mul_(0.5)
    assert (result(copied, inputs) - turned).abs().max() > 1e-3
    assert torch.equal(result(model, inputs), turned)
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.mul_(2)
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(result(copied, inputs), turned) and not torch.equal(turned, plain)
    handle.remove()
    assert torch.equal(result(copied, inputs), turned)


def result(model, inputs):
    with torch.no_grad():
        found = model(*inputs)
    return found[0] if isinstance(found, tuple) else found


@pytest.mark.parametrize("ran", [False, True], ids=["new", "ran"])
@pytest.mark.parametrize(
    "compiled",
    [
        lambda model: torch.compile(model, backend="eager"),
        lambda model: [model, model.compile(backend="eager")][0],
        lambda model: [model, model[0].compile(backend="eager")][0],
    ],
    ids=["torch.compile", "model.compile", "layer.compile"],
)
def test_compiled_models_turn_and_turn_back(pipelines, compiled, ran):
    torch.manual_seed(0)
    model, x = nn.Sequential(SelfAttention(16, 2), SelfAttention(16, 2)), torch.randn(1, 6, 16)
    plain = model(x)
    with pipelines[3].encode(model):
        turned = model(x)
    run = compiled(model)
    if ran:
        run(x)
    with pipelines[3].encode(run):
        torch.testing.assert_close(run(x), turned)
    torch.testing.assert_close(run(x), plain)


def test_traced_models_do_not_turn(pipelines):
    layer = SelfAttention(16, 2)
    traced = torch.jit.trace(layer, torch.randn(1, 6, 16), check_trace=False)
    with pytest.raises(ValueError, match=r"\[encode\] model: expected modules .* a script module"):
        pipelines[3].encode(traced, heads=2)
