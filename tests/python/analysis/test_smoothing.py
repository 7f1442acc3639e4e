"""Diagnostics of over-smoothing: closed forms, gradients, and a model watched while it runs."""

import copy
import math

import pytest
import torch

from nsimplex import analysis


@pytest.fixture(autouse=True)
def one_seed():
    torch.manual_seed(0)


def tokens(*shape):
    return torch.randn(shape, dtype=torch.float64)


def test_composite_norm_is_the_product_of_both_sums():
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert analysis.composite_norm(x).item() == pytest.approx(math.sqrt(6 * 7))
    assert analysis.composite_norm(x).dtype == torch.float64
    assert analysis.composite_norm(torch.zeros(0, 3)).item() == 0


def test_mean_residual_is_zero_of_equal_tokens():
    x = tokens(1, 5).expand(4, 5)
    assert analysis.mean_residual(x).abs().max() < 1e-15
    torch.testing.assert_close(
        analysis.mean_residual(x + 1).mean(-2), torch.zeros(5, dtype=torch.float64)
    )


def test_effective_rank_of_known_spectra():
    q = torch.linalg.qr(tokens(6, 6))[0]
    for rank in (1, 2, 4):
        values = torch.cat([torch.full((rank,), 3.0), torch.zeros(6 - rank)]).double()
        assert analysis.effective_rank(q * values).item() == pytest.approx(rank, rel=1e-6)
    assert analysis.effective_rank(torch.zeros(3, 2)).item() == 0


def test_mean_cosine_is_that_of_all_pairs():
    x = tokens(2, 5, 3)
    pairs = torch.nn.functional.cosine_similarity(x.unsqueeze(-2), x.unsqueeze(-3), dim=-1)
    expected = (pairs.sum((-2, -1)) - 5) / 20
    torch.testing.assert_close(analysis.mean_cosine(x), expected)
    for size in (1e-300, 1e-200, 1e200, 1e300):  # whose squares are 0 or infinite
        torch.testing.assert_close(analysis.mean_cosine(size * x), expected)
    assert analysis.mean_cosine(x[:, :1]).isnan().all()


def test_dirichlet_energy_is_that_of_all_pairs():
    x = tokens(2, 5, 3)
    expected = torch.cdist(x, x).square().sum((-2, -1)) / 5
    torch.testing.assert_close(analysis.dirichlet_energy(x), expected)


def test_gradients_of_the_effective_rank():
    x = tokens(2, 4, 3).requires_grad_()
    assert torch.autograd.gradcheck(analysis.effective_rank, x)
    assert torch.autograd.gradgradcheck(analysis.effective_rank, x)


def test_minimal_residual_is_batched_and_certified():
    x = tokens(2, 3, 6, 4)
    found = analysis.minimal_residual(x)
    assert found.norm.shape == (2, 3) and found.offset.shape == (2, 3, 4)
    torch.testing.assert_close(analysis.composite_norm(x - found.offset.unsqueeze(-2)), found.norm)
    assert (found.lower <= found.norm).all() and (found.lower >= (1 - 1e-7) * found.norm).all()
    assert (found.norm <= analysis.composite_norm(analysis.mean_residual(x))).all()
    torch.testing.assert_close(
        analysis.minimal_residual(x[1, 2]).norm, found.norm[1, 2], rtol=0, atol=0
    )


def test_minimal_residual_beats_the_mean_where_a_token_is_far_away():
    x = tokens(8, 4)
    x[0] *= 50
    assert analysis.minimal_residual(x).norm < 0.9 * analysis.composite_norm(
        analysis.mean_residual(x)
    )


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_minimal_residual_does_not_depend_on_threads(threads):
    x = tokens(7, 5, 3)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    expected = analysis.minimal_residual(x)
    try:
        torch.set_num_threads(threads)
        found = analysis.minimal_residual(x)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_no_tokens_have_no_offset():
    found = analysis.minimal_residual(torch.zeros(2, 0, 3).double())
    assert not found.norm.any() and not found.lower.any() and not found.offset.any()
    assert found.offset.shape == (2, 3)


def test_bad_tokens_are_named():
    for name in ("composite_norm", "mean_residual", "mean_cosine", "dirichlet_energy"):
        with pytest.raises(ValueError, match=rf"^\[{name}\] tokens: expected \[.., tokens"):
            getattr(analysis, name)(torch.zeros(3))
    with pytest.raises(TypeError, match=r"\[effective_rank\] tokens: expected floating point"):
        analysis.effective_rank(torch.zeros(2, 3, dtype=torch.int64))
    with pytest.raises(
        ValueError,
        match=r"\[mean_cosine\] tokens: expected \[.., tokens, channels\], got shape \[3\]",
    ):
        analysis.mean_cosine(torch.zeros(3))
    with pytest.raises(ValueError, match=r"\[minimal_residual\] tokens: expected finite"):
        analysis.minimal_residual(torch.full((2, 2), torch.inf))
    with pytest.raises(ValueError, match="tolerance"):
        analysis.minimal_residual(torch.zeros(2, 2), 0)


class Averaging(torch.nn.Module):
    """Pulls every token half way to the mean of all, and gives a pair."""

    def forward(self, x):
        return (x + x.mean(-2, keepdim=True)) / 2, None


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Averaging() for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x, _ = layer(x)
        return x


@pytest.mark.parametrize("exact", [False, True])
def test_monitor_sees_tokens_collapse(exact):
    model, x = Model(), tokens(2, 6, 4)
    plain = model(x)
    with analysis.SmoothingMonitor(model, exact=exact) as monitor:
        assert torch.equal(model(x), plain)
    assert [layer.name for layer in monitor.layers] == ["layers.0", "layers.1", "layers.2"]
    first, second, third = (layer.residual for layer in monitor.layers)
    torch.testing.assert_close(second, first / 2, rtol=1e-6, atol=0)
    torch.testing.assert_close(third, first / 4, rtol=1e-6, atol=0)
    energies = torch.stack([layer.dirichlet_energy for layer in monitor.layers])
    torch.testing.assert_close(energies[1:], energies[:-1] / 4)
    model(x)
    assert len(monitor.layers) == 3  # hooks are gone


def test_monitor_of_named_modules_only():
    model = Model()
    with analysis.SmoothingMonitor(model, modules=["layers.1"]) as monitor:
        model(tokens(6, 4))
    assert [layer.name for layer in monitor.layers] == ["layers.1"]
    with pytest.raises(ValueError, match="no module 'absent'"):
        analysis.SmoothingMonitor(model, modules=["absent"])
    with pytest.raises(ValueError, match="no ModuleList"):
        analysis.SmoothingMonitor(torch.nn.Linear(2, 2))
    with (
        pytest.raises(ValueError, match="expected a run of layers while it is watched"),
        analysis.SmoothingMonitor(model, modules=["layers.1", "layers"]),
    ):
        model(tokens(6, 4))


@pytest.mark.parametrize(
    "other",
    [
        copy.deepcopy,
        lambda model: torch.jit.trace(model, torch.ones(3, 4), check_trace=False),
        lambda model: torch.nn.Identity(),
    ],
    ids=["copy", "trace", "other model"],
)
def test_a_monitor_that_saw_nothing_says_so(other):
    model, x = Model(), torch.ones(3, 4)
    run = other(model)
    nothing = pytest.raises(ValueError, match=r"expected a run of layers.0, .* got none")
    with nothing, analysis.SmoothingMonitor(model):
        run(x)
    with pytest.raises(KeyError), analysis.SmoothingMonitor(model):  # an error of the run's own
        raise KeyError


def test_monitor_refuses_outputs_without_tokens():
    model = torch.nn.ModuleList([torch.nn.Flatten(0)])
    with (
        analysis.SmoothingMonitor(model) as monitor,
        pytest.raises(ValueError, match=r"0: expected an output"),
    ):
        model[0](tokens(2, 3))
    assert monitor.layers == []


def heads(order, channels, width):
    def weights(columns):
        return [tokens(channels, columns) / channels for _ in range(order)]

    return [tokens(channels, width) / channels, *weights(width)], weights(width)


@pytest.mark.parametrize("order", [1, 2])
def test_collapse_bound_is_that_of_the_operator(order):
    import nsimplex

    keys, values = heads(order, 4, 3)
    x, output = 0.5 * tokens(5, 4), tokens(3, 4)
    found = analysis.collapse_bound(keys, values, x)

    def project(weights):
        return [(x @ w)[None, None] for w in weights]

    q, *k = project(keys)
    after = nsimplex.attention(q, k, project(values))[0, 0]
    assert found.next_norm == pytest.approx(analysis.composite_norm(after).item())
    assert found.next_residual == pytest.approx(
        analysis.minimal_residual(after).norm.item(), rel=1e-6
    )
    assert found.residual == pytest.approx(analysis.minimal_residual(x).norm.item(), rel=1e-6)

    def largest(weights):
        return 2 * max(analysis.composite_norm(w).item() for w in weights)

    assert found.beta == pytest.approx(largest(keys) ** (order + 1) * largest(values) ** order)
    norm = analysis.composite_norm(x).item()
    right = (
        4 * found.gamma / math.sqrt(3) * found.beta * norm ** (2 * order - 2) * found.residual**3
    )
    assert found.bound == pytest.approx(right, rel=1e-6)
    assert found.assumption_holds and found.next_residual < found.bound

    projected = analysis.collapse_bound(keys, values, x, output)
    assert projected.bound == pytest.approx(found.bound * analysis.composite_norm(output).item())
    assert projected.next_norm == pytest.approx(analysis.composite_norm(after @ output).item())


def test_collapse_bound_refuses_what_does_not_fit():
    keys, values = heads(2, 4, 3)
    with pytest.raises(
        ValueError, match=r"\[collapse_bound\] keys: expected one more than the 2 values"
    ):
        analysis.collapse_bound(keys[:2], values, tokens(5, 4))
    with pytest.raises(ValueError, match=r"\[collapse_bound\] values: expected matrices of 4 rows"):
        analysis.collapse_bound(keys, [tokens(5, 3), values[1]], tokens(5, 4))
    with pytest.raises(ValueError, match=r"\[collapse_bound\] output: expected matrices of 3 rows"):
        analysis.collapse_bound(keys, values, tokens(5, 4), tokens(4, 4))
    with pytest.raises(TypeError, match=r"\[collapse_bound\] tokens: expected floating point"):
        analysis.collapse_bound(keys, values, torch.ones(5, 4, dtype=torch.int64))


@pytest.mark.parametrize("order, count", [(1, 2**15), (2, 1000), (3, 2**38)])
def test_bounds_state_how_many_tokens_they_take(order, count):
    """The logits of an order are as many numbers as a power of the tokens."""
    keys, values = heads(order, 4, 3)
    many = torch.ones(1, 4).expand(count, -1)
    said = rf"tokens: expected at most 536870912 logits, .* got n = {count} and N = {order}$"
    with pytest.raises(ValueError, match=said):
        analysis.collapse_bound(keys, values, many)
    with pytest.raises(ValueError, match=said):
        analysis.depth_bound([[analysis.CollapseHead(keys, values)]], many)
