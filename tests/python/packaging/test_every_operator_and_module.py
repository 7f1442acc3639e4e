"""Every operator and every module under autocast and in 16-bit numbers, and every module under
torch.compile. The other gates of operators are in test_operator_gates.

An operator or a module without a case fails the tests here: add it to operator_cases or
module_cases.
"""

import inspect
import re

import module_cases
import operator_cases
import pytest
import torch
from torch.utils import _pytree as pytree

from nsimplex import nn

HALVES = [torch.bfloat16, torch.float16]
OPERATORS = operator_cases.CASES
CALLED = OPERATORS | {
    name: make for name, make in operator_cases.ON_THE_HOST.items() if make is not None
}


def registered():
    names = torch._C._dispatch_get_all_op_names()
    return sorted(
        {name.split("::")[1].split(".")[0] for name in names if name.startswith("nsimplex::")}
    )


def operator(name):
    return getattr(torch.ops.nsimplex, name).default


def is_floating(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def convert(tree, dtype):
    return pytree.tree_map(lambda x: x.to(dtype) if is_floating(x) else x, tree)


def in_halves(name, arguments, dtype):
    """Logarithms and sums of weights are never of 16 bits."""
    positional, named = arguments
    names = [argument.name for argument in operator(name)._schema.arguments]
    kept = ("lse", "lses", "normalizer")
    return tuple(x if n in kept else convert(x, dtype) for x, n in zip(positional, names)), convert(
        named, dtype
    )


def has_gradient(x):
    """Whether a result can be differentiated, and not only says that it cannot."""
    return is_floating(x) and x.requires_grad and x.grad_fn.name() != "NoGradient"


def loss_of(out):
    """Not an even function of anything: rotations keep squares."""
    terms = [(x.float() - 0.3).square().mean() for x in out if has_gradient(x) and x.numel()]
    return sum(terms) if terms else None


def leaves(tree):
    return [x for x in pytree.tree_leaves(tree) if is_floating(x)]


def call(name, arguments, autocast=None):
    """The results of a call, under autocast or not, and the gradients of what they are
    differentiable by."""
    (positional, named), function = arguments, operator(name)
    inputs = [x.detach() for x in leaves(arguments)]
    flat, tree = pytree.tree_flatten((positional, named))
    places = iter(inputs)
    flat = [next(places) if is_floating(x) else x for x in flat]
    for x in inputs:
        x.requires_grad_()
    positional, named = pytree.tree_unflatten(flat, tree)
    with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
        out = pytree.tree_leaves(function(*positional, **named))
    loss = loss_of(out)
    grads = [] if loss is None else torch.autograd.grad(loss, inputs, allow_unused=True)
    timed = name in (
        "causal_embed",
        "causal_fit",
        "causal_fit_rows",
    )  # their last result is how long they took
    return out[: len(out) - timed] + [x for x in grads if x is not None]


def assert_same(ours, expected, **tolerance):
    assert len(ours) == len(expected)
    for a, b in zip(ours, expected):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(a, b, equal_nan=True, check_dtype=False, **tolerance)
        else:
            assert a == b or (a != a and b != b)


def near(ours, exact, error):
    """Floating results by their size as a whole; chosen indices may differ where scores are
    close."""
    for a, b in zip(ours, exact):
        if is_floating(a):
            scale = b.double().nan_to_num(0, 0, 0).norm() + 1e-3
            assert (a.double() - b.double()).nan_to_num(0, 0, 0).norm() <= error * scale


def test_every_operator_has_a_case():
    cases = {*operator_cases.CASES, *operator_cases.ON_THE_HOST}
    assert sorted(cases) == registered()


def test_every_module_has_a_case():
    public = (getattr(nn, name) for name in nn.__all__)
    modules = {
        cls.__name__ for cls in public if inspect.isclass(cls) and issubclass(cls, torch.nn.Module)
    }
    assert {name.split(",")[0] for name in module_cases.CASES} == modules


@pytest.mark.parametrize(
    "key", ["AutocastCPU", "AutocastCUDA", "FuncTorchVmapMode", "QuantizedCPU", "NestedTensorCPU"]
)
def test_every_operator_of_tensors_has_a_line_in_the_table(key):
    """One that has none would be computed by products that autocast narrows one by one, and would
    leave vmap, autograd and tensors that are no plain arrays to torch's own fallbacks."""

    def takes_tensors(name):
        return any("Tensor" in str(argument.type) for argument in operator(name)._schema.arguments)

    has_rule = torch._C._dispatch_has_kernel_for_dispatch_key
    assert [
        name
        for name in registered()
        if takes_tensors(name) and not has_rule(f"nsimplex::{name}", key)
    ] == []


#: Choices, gradients that have none themselves, and what only takes its shape from an argument.
DETACHED = {"topk_keys", "topk_keys_reference", "indexer_loss_gradients", "random_directions"}


@pytest.mark.parametrize("name", CALLED)
def test_no_gradient_is_lost_in_silence(name):
    """A floating result of an argument that requires a gradient has one or refuses it by name."""
    arguments = pytree.tree_map(
        lambda x: x.detach().clone().requires_grad_() if is_floating(x) else x, CALLED[name]()
    )
    results = pytree.tree_leaves(operator(name)(*arguments[0], **arguments[1]))
    if not leaves(arguments) or name in DETACHED:
        return
    for result in filter(is_floating, results):
        if not result.numel():
            continue
        assert result.requires_grad
        if has_gradient(result):
            result.sum().backward(retain_graph=True)
            continue
        with pytest.raises(NotImplementedError) as refused:
            result.sum().backward()
        words = r"\[\w+\] [\w\[\]]+: expected a tensor of which no gradient is asked for, got one "
        assert re.match(words, str(refused.value)) and "\n" not in str(refused.value)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", CALLED)
def test_operators_under_autocast(name, dtype):
    """Of float32 tensors the same as without; of those that multiply, the same in autocast's
    dtype."""
    arguments = CALLED[name]()
    exact = call(name, arguments)
    ours = call(name, arguments, dtype)
    if name in operator_cases.NARROW:
        assert ours[0].dtype == (dtype if name != "attention_weights" else torch.float32)
        near(ours, exact, 0.05)
    else:
        assert_same(ours, exact)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", sorted(operator_cases.MIXED))
def test_operators_take_what_autocast_leaves_of_layers(name, dtype):
    """Some tensors in autocast's dtype, as products have made them, and some in that of
    parameters."""
    arguments = CALLED[name]()
    exact = call(name, arguments)
    for first in (True, False):
        flip = iter([first, not first] * len(leaves(arguments)))
        mixed = pytree.tree_map(
            lambda x: x.to(dtype) if is_floating(x) and next(flip) else x, arguments
        )
        near(call(name, mixed, dtype), exact, 0.1)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_in_half_precision(name, dtype):
    arguments = OPERATORS[name]()
    near(call(name, in_halves(name, arguments, dtype)), call(name, arguments), 0.1)


def step(name, dtype=None, run=None):
    """The loss and the gradients of all parameters."""
    torch.manual_seed(7)
    module, inputs, loss = module_cases.CASES[name]()
    torch.manual_seed(8)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    if dtype is not None:
        module, inputs = module.to(dtype), convert(inputs, dtype)
    module.eval()  # without dropout
    function = (lambda *x: loss(module, *x)) if run is None else run(lambda *x: loss(module, *x))
    value = function(*inputs)
    value.backward()
    grads = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    assert value.isfinite() and all(g.isfinite().all() for g in grads.values())
    assert all(
        g.dtype == p.dtype for p, g in ((p, p.grad) for p in module.parameters()) if g is not None
    )
    return value.detach(), grads


def assert_near_step(ours, exact, error):
    assert ours[1].keys() == exact[1].keys()
    assert abs(ours[0].double() - exact[0].double()) <= error * (1 + exact[0].abs())


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", module_cases.CASES)
def test_modules_under_autocast(name, dtype):
    def run(function):
        def inside(*inputs):
            with torch.autocast("cpu", dtype=dtype):
                return function(*inputs)

        return inside

    assert_near_step(step(name, run=run), step(name), 0.1)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", module_cases.CASES)
def test_modules_in_half_precision(name, dtype):
    assert_near_step(step(name, dtype), step(name), 0.1)


def compile_module(name, backend, autocast):
    torch._dynamo.reset()

    def run(function):
        def inside(*inputs):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                return function(*inputs)

        return inside

    compiling = lambda function: torch.compile(run(function), backend=backend, fullgraph=True)
    ours, exact = step(name, run=compiling), step(name, run=run)
    assert_near_step(ours, exact, 0.05 if autocast else 1e-4)
    for key, grad in exact[1].items():
        if not autocast:
            torch.testing.assert_close(ours[1][key], grad, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", module_cases.CASES)
def test_modules_compile(name):
    compile_module(name, "aot_eager", autocast=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", module_cases.CASES)
def test_modules_compile_under_autocast(name):
    compile_module(name, "aot_eager", autocast=True)


@pytest.mark.slow
@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("name", module_cases.CASES)
def test_modules_compile_with_inductor(name, autocast):
    compile_module(name, "inductor", autocast)
