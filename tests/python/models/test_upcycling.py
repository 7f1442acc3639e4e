"""Trained language models that get tuples of higher order, and start as the same function."""

from itertools import pairwise

import pytest
import torch

import nsimplex
from nsimplex import nn


def language_model(seed=0, **options):
    """Larger weights than at the start of training, so that attention says something."""
    shape = dict(vocabulary=31, layers=4, heads=4, kv_heads=2, dim=32, context=64, every=0)
    options = nn.LanguageModelOptions(**{**shape, **options})
    model = nn.LanguageModel(options, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for weight in model.blocks.parameters():
            if weight.dim() > 1:
                weight.mul_(2.0)
        model.embedding.weight.mul_(5.0)
    return model


def tokens(rows=2, length=40, seed=1):
    return torch.randint(31, (rows, length), generator=torch.Generator().manual_seed(seed))


def raised(model, bias):
    """The model with tuples that take part."""
    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, nn.HigherOrderPart):
                part.start.fill_(bias)
    return model


@pytest.mark.parametrize("norm", ["none", "qk", "qkv"])
@pytest.mark.parametrize("order, window", [(2, (4, 9)), (3, 3), (2, None)])
def test_the_converted_model_starts_as_the_same_function(norm, order, window):
    model, ids = language_model(norm=norm), tokens()
    names, expected = {*model.state_dict()}, model(ids)
    assert nn.convert(model, every=2, order=order, window=window, sample=ids) is model
    torch.testing.assert_close(model(ids), expected, rtol=0, atol=1e-5)
    assert names < {*model.state_dict()}
    assert [type(block.attention).__name__ for block in model.blocks] == [
        "SimplicialAttention",
        "UpcycledAttention",
    ] * 2
    for share in nn.order_shares(model, ids):
        torch.testing.assert_close(share, torch.full((4,), 3e-7), rtol=0.01, atol=0)


@pytest.mark.parametrize("order, window", [(2, (3, 6)), (3, (2, 3, 4))])
def test_the_layer_is_one_softmax_over_keys_and_tuples(order, window):
    model = raised(nn.convert(language_model(), every=4, order=order, window=window), -1.5)
    layer = model.blocks[3].attention
    with torch.no_grad():
        layer.higher.order_bias.copy_(torch.tensor([0.0, 0.01, 0.005, -0.5]))
    bias = torch.tensor([-1.5, -0.5, -1.0, -1.5])  # a negative one counts as 0
    x = torch.randn(1, 7, 32, generator=torch.Generator().manual_seed(3))
    q, k, v = layer.qkv(x).view(1, 7, 8, 8).transpose(1, 2).split((4, 2, 2), 1)
    further = 1 + layer.higher.proj(x).view(1, 7, -1, 8).transpose(1, 2)

    def unit(heads):
        return heads / (heads.square().mean(-1, keepdim=True) + 1e-6).sqrt()

    keys = [unit(k), *unit(further[:, : 2 * order - 2]).split(2, 1)]
    values = [v, *further[:, 2 * order - 2 :].split(2, 1)]
    own_q, own_k = nsimplex.rotary(q), nsimplex.rotary(k)
    for head in range(4):
        group = head // 2
        for i in range(7):
            logits = [own_q[0, head, i] @ own_k[0, group, j] / 8**0.5 for j in range(i + 1)]
            results = [v[0, group, j] for j in range(i + 1)]
            near = [range(max(0, i + 1 - width), i + 1) for width in window]
            for places in torch.cartesian_prod(*(torch.tensor([*each]) for each in near)):
                score, value = unit(q)[0, head, i], 1
                for axis, j in enumerate(places):
                    score = score * keys[axis][0, group, j]
                    value = value * values[axis][0, group, j]
                logits.append(score.sum() / 8**0.5 + bias[head])
                results.append(value)
            expected = torch.stack(logits).softmax(0) @ torch.stack(results)
            if head == 0 and i == 0:
                rows = torch.empty(7, 4, 8)
            rows[i, head] = expected
    torch.testing.assert_close(layer(x), layer.output(rows.flatten(1))[None], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cuts", [(0, 40), (0, 13, 14, 20, 21, 22, 40), (0, 1, 2, 3, 40)])
@pytest.mark.parametrize("window", [(4, 9), None])
def test_caches_give_the_logits_of_the_whole_text(cuts, window):
    model = raised(nn.convert(language_model(), every=2, window=window), -2.0)
    ids = tokens()
    plain = language_model()(ids)
    with torch.no_grad():
        whole, caches = model(ids), model.make_cache()
        parts = [model(ids[:, a:b], caches) for a, b in pairwise(cuts)]
    assert (whole - plain).abs().max() > 0.01
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-4, atol=1e-4)


def test_prompts_of_different_lengths_go_on_as_alone():
    model = raised(nn.convert(language_model(), every=2, window=(3, 5)), -1.0)
    prompts = [[1, 2, 3, 4, 5], [6, 7], [8, 9, 10]]
    alone = [model.generate(prompt, 6, temperature=0.0, caches=False) for prompt in prompts]
    assert model.generate(prompts, 6, temperature=0.0) == alone
    with pytest.raises(ValueError, match=r"\[UpcycledAttention\] cache: expected one of make_cach"):
        model.make_static_caches(2)


@torch.no_grad()
def test_caches_of_other_windows_are_refused():
    model, other = (nn.convert(language_model(), 2, window=wide) for wide in ((3, 5), (3, 6)))
    says = r"cache: expected one of window \[-1, 3, 6\], .* got window \[64, 3, 5\]"
    with pytest.raises(ValueError, match=says):
        other(tokens(), model.make_cache())


def test_gradients_reach_the_bias_and_training_moves_it():
    """Every third token is the product of the two before it, modulo 7."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1, 7, (32, 24), generator=generator)
    for t in range(2, 24, 3):
        ids[:, t] = ids[:, t - 1] * ids[:, t - 2] % 7
    shape = nn.LanguageModelOptions(vocabulary=7, layers=2, heads=4, dim=32, context=64, every=0)
    model = nn.convert(nn.LanguageModel(shape, generator), every=2, window=(4, 4), sample=ids)
    (part,) = (module for module in model.modules() if isinstance(module, nn.HigherOrderPart))
    before = part.logit_bias.detach().clone()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, eps=1e-15)
    for step in range(60):
        optimizer.zero_grad()
        model.loss(ids[:, :-1], ids[:, 1:]).backward()
        if step == 0:
            assert (part.order_bias.grad != 0).all() and (part.proj.weight.grad != 0).any()
        optimizer.step()
    moved = part.logit_bias.detach() - before
    assert (moved >= 0).all() and (moved > 3).sum() >= 2
    assert nn.order_shares(model, ids)[0].max() > 0.01


def test_calibrate_gives_the_share_that_it_was_asked_for():
    model, ids = nn.convert(language_model(), every=2, window=(4, 9)), tokens()
    nn.calibrate(model, ids, share=0.01)
    for share in nn.order_shares(model, ids):
        assert ((share > 0.003) & (share < 0.011)).all()  # a mean of p / (1 + p), not of p


def test_a_calibration_that_fails_changes_nothing(monkeypatch):
    model, ids = nn.convert(language_model(), every=2, window=(4, 9)), tokens()
    before = {name: own.clone() for name, own in model.state_dict().items()}
    for wrong, said in (
        (ids + 31, "expected tokens 0 to 30, got"),
        (ids[0], "expected int64 [B, T]"),
    ):
        for call in (nn.calibrate, nn.order_shares):
            with pytest.raises(ValueError) as caught:
                call(model, wrong)
            assert str(caught.value).startswith(f"[{call.__name__}] tokens: {said}")
    monkeypatch.setattr(model, "forward", lambda tokens: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        nn.calibrate(model, ids)
    assert all(torch.equal(own, before[name]) for name, own in model.state_dict().items())


def test_what_does_not_fit_is_refused():
    model, ids = language_model(), tokens()
    for call, said in (
        (lambda: nn.convert(torch.nn.Linear(2, 2)), "[convert] model"),
        (lambda: nn.convert(model, every=5), "[convert] every"),
        (lambda: nn.convert(model, order=1), "order"),
        (lambda: nn.convert(model, window=(1, 2, 3)), "window"),
        (lambda: nn.convert(model, window=(0, 2)), "window"),
        (lambda: nn.convert(language_model(every=2), every=2), "[UpcycledAttention] layer"),
        (lambda: nn.UpcycledAttention(nn.SimplicialAttention(8, 2, order=1)), "layer"),
        (
            lambda: nn.convert(model, 2, sample=ids + 31),
            "[convert] sample: expected tokens 0 to 30",
        ),
        (lambda: nn.convert(model, 2, sample=ids[:0]), "[convert] sample: expected int64 [B, T]"),
        (lambda: nn.convert(model, 2, sample=ids.float()), "[convert] sample: expected int64"),
        (lambda: nn.order_shares(model, ids), "[order_shares] model"),
        (lambda: nn.calibrate(model, ids), "[calibrate] model"),
        (lambda: nn.calibrate(model, ids, share=0.0), "[calibrate] share"),
        (
            lambda: nn.UpcycledAttention(
                nn.SimplicialAttention(8, 2, order=1, causal=True, window=3)
            ),
            "got window",
        ),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        assert said in str(caught.value) and "\n" not in str(caught.value)
    assert torch.equal(model(ids), language_model()(ids))  # no refused call changed it
