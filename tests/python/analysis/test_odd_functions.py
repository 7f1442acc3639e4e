"""Functions, inputs and models that the instruments cannot measure, or only just."""

import math

import pytest
import torch

from nsimplex import analysis, nn
from nsimplex.viz import save_page, view, views

X = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
SHORT = analysis.Ascent(steps=2)
CALLS = {
    "jacobian_norm": lambda f: analysis.jacobian_norm(f, X, SHORT),
    "lipschitz_constant": lambda f: analysis.lipschitz_constant(f, X, 2.0, SHORT),
    "sensitivity": lambda f: analysis.sensitivity(f, [X], options=SHORT),
    "sharpness": lambda f: analysis.sharpness(f, [X], options=SHORT),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "function, got",
    [
        (lambda x: (x, x), "tuple"),
        (lambda x: None, "None"),
        (lambda x: x.sum(), r"\[\]"),
        (lambda x: x.flatten(1).sum(1), r"\[2\]"),
        (lambda x: x[:1], r"\[1, 3, 4\]"),
        (lambda x: x.transpose(0, 1), r"\[3, 2, 4\]"),
    ],
)
def test_outputs_are_of_the_entries_of_the_input(name, function, got):
    says = rf"^\[{name}\] function: expected an output \[B, .., C\] with the 2 entries .*got {got}$"
    with pytest.raises(ValueError, match=says):
        CALLS[name](function)


@pytest.mark.parametrize("name", [*CALLS, "token_influence", "attention_flow"])
def test_functions_may_write_to_their_input(name):
    calls = CALLS | {
        "token_influence": lambda f: (analysis.token_influence(f, X),),
        "attention_flow": lambda f: analysis.attention_flow(f, X, time=1.0, steps=3)[1:],
    }
    torch.manual_seed(0)
    plain = calls[name](lambda x: (x * 2).tanh())
    torch.manual_seed(0)
    torch.testing.assert_close(calls[name](lambda x: x.mul_(2).tanh())[0], plain[0])


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: analysis.Ascent(steps=-1), r"\[Ascent\] steps: expected 0 or more, got -1"),
        (lambda: analysis.Ascent(step=-0.5), r"\[Ascent\] step: expected 0 or more, got -0.5"),
        (lambda: analysis.Ascent(tolerance=math.nan), r"\[Ascent\] tolerance: expected 0 or more"),
        (
            lambda: analysis.sensitivity(torch.sin, [X], input_rms=[-1.0]),
            r"\[sensitivity\] input_rms: expected finite numbers from 0 on, got -1.0",
        ),
        (
            lambda: analysis.sharpness(torch.sin, [X], input_rms=[math.inf]),
            r"\[sharpness\] input_rms: expected finite numbers from 0 on, got inf",
        ),
        (
            lambda: analysis.sharpness(torch.sin, [X], input_rms=[1.0, 1.0]),
            r"\[sharpness\] input_rms: expected 1 numbers, one per input, got 2",
        ),
        (
            lambda: analysis.token_influence(torch.sin, X, rows=[0.5]),
            r"\[token_influence\] rows\[0\]: expected an integer, got 0.5",
        ),
        (
            lambda: analysis.report(nn.SimplicialAttention(4, 2), X[:0]),
            r"\[report\] batch: expected entries and tokens, got \[0, 3, 4\] at the layer",
        ),
    ],
)
def test_what_is_wrong_is_named(call, says):
    with pytest.raises((TypeError, ValueError), match=says):
        call()


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([nn.SimplicialAttention(4, 2) for _ in range(2)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def smoothed(model):
    with torch.no_grad(), analysis.SmoothingMonitor(model) as monitor:
        model(X)
    return [layer.ratio.mean().item() for layer in monitor.layers]


INSTRUMENTS = {
    "SmoothingMonitor": smoothed,
    "report": lambda model: [
        number
        for layer in analysis.report(model, X, steps=1).layers
        for number in (layer.ratio_after, layer.jacobian)
    ],
    "views": lambda model: [each.edge_weights.sum().item() for each in views(model, X)],
    "jacobian_norm": lambda model: analysis.jacobian_norm(model, X, analysis.Ascent(steps=1)).value,
    "token_influence": lambda model: analysis.token_influence(model, X),
}


def compile_layers(model):
    for at, layer in enumerate(model.layers):
        model.layers[at] = torch.compile(layer, backend="aot_eager")
    return model


COMPILED = {
    "torch.compile": lambda model: torch.compile(model, backend="aot_eager"),
    "model.compile": lambda model: [model, model.compile(backend="aot_eager")][0],
    "layers": compile_layers,
    "DataParallel": torch.nn.DataParallel,
}


@pytest.mark.parametrize("ran", [False, True], ids=["new", "ran"])
@pytest.mark.parametrize("compiled", COMPILED.values(), ids=COMPILED)
def test_a_compiled_model_is_measured_as_the_model(compiled, ran):
    torch.manual_seed(0)
    model = Stack()
    expected = {name: call(model) for name, call in INSTRUMENTS.items()}
    model = compiled(model)
    if ran:
        model(X)
    for name, call in INSTRUMENTS.items():
        found, own = torch.as_tensor(call(model)), torch.as_tensor(expected[name])
        torch.testing.assert_close(found, own, msg=lambda m, name=name: f"{name}: {m}")
        model(X)  # compiled again, as after the other instruments


@pytest.mark.parametrize("name", ["SmoothingMonitor", "report", "views"])
@pytest.mark.parametrize(
    "traced, says",
    [
        (lambda m: torch.jit.trace(m, X, check_trace=False), "a script module"),
        (lambda m: torch.export.export(m, (X,)).module(), "an exported program"),
    ],
    ids=["jit", "export"],
)
def test_a_program_without_modules_is_refused(name, traced, says):
    with pytest.raises(ValueError, match=rf"\[{name}\] model: expected modules .* got {says}"):
        INSTRUMENTS[name](traced(Stack()))


def test_pages_are_saved_as_pages(tmp_path):
    made = analysis.report(nn.SimplicialAttention(4, 2), X, derivatives=False)
    q, k = torch.randn(2, 1, 2, 9, 4)
    seen = view(q, [k], name="first")
    for save, says in (
        (lambda path: made.save(path), r"\[save\] path: expected a name that ends in .html"),
        (lambda path: save_page([seen], path), r"\[save_page\] path: expected .* ends in .html"),
        (lambda path: seen.save(path), r"\[save\] path: expected a name that ends in .svg"),
    ):
        with pytest.raises(ValueError, match=says):
            save(tmp_path / "picture.pdf")
    assert not list(tmp_path.iterdir())


CALLS_OF_TOKENS = {**CALLS, "token_influence": lambda f: analysis.token_influence(f, X)}


@pytest.mark.parametrize("name", CALLS_OF_TOKENS)
@pytest.mark.parametrize(
    "function",
    [torch.no_grad()(torch.sin), lambda x: x.detach().sin(), lambda x: torch.ones_like(x)],
)
def test_a_derivative_that_was_cut_off_is_not_zero(name, function):
    with pytest.raises(ValueError, match=rf"^\[{name}\] function: .* without a gradient"):
        CALLS_OF_TOKENS[name](function)


@pytest.mark.parametrize("name", CALLS_OF_TOKENS)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_derivatives_do_not_depend_on_the_mode(name, mode):
    measured = CALLS_OF_TOKENS[name]
    torch.manual_seed(0)
    expected = measured(torch.sin)
    with mode():
        torch.manual_seed(0)
        found = measured(torch.sin)
    ours, theirs = (
        each if isinstance(each, torch.Tensor) else each.value for each in (found, expected)
    )
    assert (theirs > 0).any()
    torch.testing.assert_close(ours, theirs)


def test_a_report_in_inference_mode_is_the_same():
    torch.manual_seed(0)
    layer = nn.SimplicialAttention(4, 2)
    (expected,) = analysis.report(layer, X, steps=2).layers
    with torch.inference_mode():
        (found,) = analysis.report(layer, X.clone(), steps=2).layers
    assert found == expected and found.jacobian > 0


@pytest.mark.parametrize("layer", ["mha", "sdpa"])
def test_torchs_own_attention_has_a_jacobian(layer):
    torch.manual_seed(0)
    if layer == "mha":
        function = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    else:
        function = lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x)
    x = X[:1].double()
    function = function.double() if layer == "mha" else function
    whole = torch.autograd.functional.jacobian(lambda each: function(each[None])[0], x[0])
    largest = torch.linalg.matrix_norm(whole.reshape(12, 12), 2)
    found = analysis.jacobian_norm(function, x).value
    torch.testing.assert_close(found[0], largest, rtol=1e-4, atol=0)


def test_a_report_of_tokens_that_are_no_numbers_says_so():
    layer = nn.SimplicialAttention(4, 2)
    with pytest.warns(UserWarning, match=r"^\[report\] tokens before the layer \(model\) hold NaN"):
        (found,) = analysis.report(layer, X * math.nan, steps=1).layers
    assert found.sink_mass is None and found.jacobian is None
