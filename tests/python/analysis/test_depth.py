"""Corollary 3.2 against Theorem 3.1 and hand computation; flows against their closed forms."""

import math

import pytest
import torch

from nsimplex import analysis


def head(order, channels=3, width=2, size=0.3, output=False):
    draw = lambda *shape: size * torch.randn(*shape, dtype=torch.float64)
    inner = width if output else channels
    return analysis.CollapseHead(
        [draw(channels, width) for _ in range(order + 1)],
        [draw(channels, inner) for _ in range(order)],
        draw(inner, channels) if output else None,
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_one_layer_of_one_head_is_theorem_3_1(order):
    torch.manual_seed(order)
    own, x = head(order), torch.randn(4, 3, dtype=torch.float64)
    found = analysis.depth_bound([[own]], x)
    single = analysis.collapse_bound(own.keys, own.values, x)
    assert found.residual.exp()[1] == pytest.approx(single.next_residual, rel=1e-5)
    assert found.gamma == single.gamma and found.logit_range == single.logit_range
    # The corollary takes the larger of the norms before and after the layer.
    ratio = max(1.0, single.next_norm / float(found.norm[0])) ** (2 * (order - 1))
    assert found.bound.exp()[1] == pytest.approx(single.bound * ratio, rel=1e-5)
    assert found.bound[0] == found.residual[0]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("output", [False, True])
def test_stacks_stay_below_the_bound(order, output):
    torch.manual_seed(7)
    stack = [[head(order, output=output) for _ in range(2)] for _ in range(3)]
    x = torch.randn(4, 3, dtype=torch.float64)
    found = analysis.depth_bound(stack, x)
    assert found.assumption_holds
    assert (found.residual[1:] < found.bound[1:]).all()
    # The layers really run: by hand, the sum of two heads.
    wanted = x
    for heads in stack:
        wanted = sum(_by_hand(each, wanted) for each in heads)
    assert found.norm[-1] == pytest.approx(float(analysis.composite_norm(wanted)), rel=1e-9)


def _by_hand(own, x):
    q, *keys = [x @ weight for weight in own.keys]
    values = [x @ weight for weight in own.values]
    logits = value = None
    for k, v in zip(keys, values):
        if logits is None:
            logits, value = q[:, None] * k[None], v
        else:
            logits = (logits[:, :, None] * k[None, None]).flatten(1, 2)
            value = (value[:, None] * v[None]).flatten(0, 1)
    weights = (logits.sum(-1) / math.sqrt(q.size(1))).softmax(1)
    out = weights @ value
    return out if own.output is None else out @ own.output


def test_equal_tokens_have_no_residual():
    x = torch.ones(4, 3, dtype=torch.float64)
    torch.manual_seed(0)
    found = analysis.depth_bound([[head(2)]], x)
    assert (found.residual.exp() < 1e-12).all() and (found.bound.exp() < 1e-12).all()


def test_heads_that_do_not_fit_are_refused():
    x = torch.randn(4, 3)
    torch.manual_seed(0)
    for layers, words in (
        ([], "layers: expected at least one, each with at least one head"),
        ([[]], "layers: expected at least one, each with at least one head"),
        ([[head(1)], [head(2)]], r"layers\[1\]\[0\]: expected 2 keys and 1 values"),
        ([[head(1, channels=3, output=False)._replace(values=[torch.randn(3, 5)])]], "3 channels"),
    ):
        with pytest.raises(ValueError, match=words):
            analysis.depth_bound(layers, x)
    with pytest.raises(
        ValueError, match=r"tokens: expected \[n, C\] with at least one of each, got \[3\]"
    ):
        analysis.depth_bound([[head(1)]], torch.ones(3))
    with pytest.raises(ValueError, match="layers: expected at least one"):  # before the tokens
        analysis.depth_bound([], torch.ones(3))


def test_a_linear_flow_has_its_closed_form():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    towards_mean = lambda tokens: tokens.mean(-2, keepdim=True) - tokens
    found = analysis.attention_flow(towards_mean, x, 2.0, steps=40)
    factor = (-found.times).exp()
    assert found.times[-1] == 2.0
    torch.testing.assert_close(
        found.largest_distance, factor[:, None] * found.largest_distance[0], rtol=1e-6, atol=0
    )
    torch.testing.assert_close(
        found.dirichlet_energy, factor[:, None] ** 2 * found.dirichlet_energy[0], rtol=1e-6, atol=0
    )
    coarse = analysis.attention_flow(towards_mean, x, 2.0, steps=40, method="euler")
    torch.testing.assert_close(
        coarse.largest_distance[-1], 0.95**40 * found.largest_distance[0], rtol=1e-9, atol=0
    )


def test_normalized_tokens_keep_their_length_and_attention_collapses():
    torch.manual_seed(1)
    x = torch.randn(6, 4, dtype=torch.float64)

    def average(tokens):  # order 1 with W_V = 1
        weights = (tokens @ tokens.t() / 2).softmax(-1)
        return weights @ tokens

    found = analysis.attention_flow(average, x, 20.0, steps=200, normalized=True)
    rows = found.tokens.square().mean(-1)
    torch.testing.assert_close(rows, torch.ones_like(rows))
    assert found.dirichlet_energy[-1] < 0.01 * found.dirichlet_energy[0]


def test_arguments_of_a_flow_are_checked():
    x = torch.randn(4, 3)
    same = lambda tokens: tokens
    for call, words in (
        (lambda: analysis.attention_flow(same, x, 0.0), "time: expected a positive number, got 0"),
        (lambda: analysis.attention_flow(same, x, math.nan), "time: expected a positive number"),
        (lambda: analysis.attention_flow(same, x, 1.0, steps=0), "steps: expected 1 to 1,000,000"),
        (
            lambda: analysis.attention_flow(same, x, 1.0, method="heun"),
            "method: expected one of euler, rk4, got 'heun'",
        ),
        (
            lambda: analysis.attention_flow(lambda t: t[:2], x, 1.0),
            r"function: expected shape \[4, 3\], got \[2, 3\]",
        ),
        (
            lambda: analysis.attention_flow(same, torch.ones(3), 1.0),
            r"tokens: expected floating \[\.\., n, d\], got \[3\]",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call()
