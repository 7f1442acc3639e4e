"""Every operator and every module on a device: the numbers of the CPU, or a refusal in one line.

The tables of docs/attention/gpu-operators.md say which, and whether a call waits for the device;
the tests hold them to what they see. On a machine without a GPU the device is simulated
(simulated_device.py): what runs is the composite. With a GPU everything runs there too.
"""

import contextlib
import re
from functools import partial
from types import SimpleNamespace

import device_cases
import pytest
import simulated_device
import torch
from torch.utils import _pytree as pytree

GPU = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
)
DEVICES = ["simulated", GPU]
KERNEL, COMPOSITE, REFUSED, NO_TENSORS = "kernel (Triton)", "composite", "refuses", "no tensors"
SIZES = "sizes"

CALLED = {name: make for name, make in device_cases.OPERATORS.items() if make is not None}


@pytest.fixture(scope="module")
def rows(root):
    """Of the page, by the name in the first column: (what runs, whether it waits)."""
    text = (root / "docs" / "attention" / "gpu-operators.md").read_text()
    found = re.findall(r"^\| `([^`|]+)` \| ([^|]+) \| (yes|no|some|) *\|$", text, re.M)
    assert len({name for name, *_ in found}) == len(found)
    return {name: (what.strip(), waits) for name, what, waits in found}


@contextlib.contextmanager
def running(kind):
    """move(tree), back(tree) and waits() of a device."""
    if kind == "simulated":
        with simulated_device.simulated() as device:
            yield SimpleNamespace(
                type=simulated_device.NAME,
                move=simulated_device.on_device,
                back=simulated_device.on_host,
                waits=lambda: sum(device.waits.values()),
                forget=device.waits.clear,
                own=device.own,
            )
        return

    def each(function):
        return lambda tree: pytree.tree_map(
            lambda x: function(x) if isinstance(x, torch.Tensor) else x, tree
        )

    yield SimpleNamespace(
        type="cuda",
        move=each(lambda x: x.detach().clone().cuda().requires_grad_(x.requires_grad)),
        back=each(lambda x: x.detach().cpu()),
        waits=lambda: 0,
        forget=lambda: None,
        own=None,
    )


@contextlib.contextmanager
def without_waiting(kind):
    """On a GPU a call that waits is an error here."""
    if kind != "cuda":
        yield
        return
    before = torch.cuda.get_sync_debug_mode()
    try:
        torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def is_floating(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def copied(tree):
    copy = lambda x: x.detach().clone().requires_grad_(x.requires_grad)
    return pytree.tree_map(lambda x: copy(x) if isinstance(x, torch.Tensor) else x, tree)


def operator(name):
    return getattr(torch.ops.nsimplex, name).default


def call(function, arguments, differentiated=True):
    """Results, and the gradients of what they are differentiable by."""
    positional, named = arguments
    inputs = [
        x
        for x in pytree.tree_leaves(arguments)
        if is_floating(x) and x is not named.get("alibi_slopes")  # which have no gradient
    ]
    for x in inputs:
        x.requires_grad_(differentiated)
    out = pytree.tree_leaves(function(*positional, **named))
    terms = [
        (x.float() - 0.3).square().mean()
        for x in out
        if is_floating(x) and x.requires_grad and x.numel()
    ]
    grads = torch.autograd.grad(sum(terms), inputs, allow_unused=True) if terms else []
    return [*out, *(x for x in grads if x is not None)]


def differentiable(name):
    """Backward operators are called as training calls them. Drawn directions and bounds have no
    gradient."""
    without = ("random_directions", "depth_bound")
    return not name.endswith(("_backward", "_gradients")) and name not in without


def assert_same(ours, expected, device):
    assert len(ours) == len(expected)
    for own, exact in zip(ours, expected):
        if not isinstance(exact, torch.Tensor):
            assert own == exact
            continue
        assert own.device.type == device.type
        # torch.compile plans with the strides of the CPU, which are those for meta tensors.
        assert own.stride() == exact.stride(), (own.shape, own.stride(), exact.stride())
        own = device.back(own)
        torch.testing.assert_close(own, exact.detach(), rtol=2e-4, atol=2e-5, equal_nan=True)


def has_tensors(arguments):
    return any(isinstance(x, torch.Tensor) for x in pytree.tree_leaves(arguments))


def compare(kind, make, function, may_wait, differentiated=True):
    """The call on the device and on the CPU; whether it waited."""
    expected = call(function, copied(make()), differentiated)
    with running(kind) as device:
        arguments = device.move(copied(make()))
        assert_same(call(function, arguments, differentiated), expected, device)
        waited = device.waits() > 0
        if kind == "cuda" and not may_wait:
            arguments = device.move(copied(make()))
            with without_waiting(kind):
                call(function, arguments, differentiated)
        return waited


def test_the_table_names_every_operator_and_module(rows):
    names = torch._C._dispatch_get_all_op_names()
    registered = {n.split("::")[1].split(".")[0] for n in names if n.startswith("nsimplex::")}
    modules = {name.split(",")[0] for name in device_cases.MODULES}
    assert set(rows) == registered | modules | {*device_cases.PROCESSES}
    kernels = {name for name, (what, _) in rows.items() if what == KERNEL}
    assert kernels == {"attention", "attention_backward"}


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.parametrize("name", CALLED)
def test_operators(name, kind, rows):
    what, waits = rows[name]
    if what == NO_TENSORS:
        assert not has_tensors(CALLED[name]())
        return
    if what == SIZES:
        with running(kind) as device:
            arguments = device.move(copied(CALLED[name]()))
            with without_waiting(kind):
                assert all(type(x) is int for x in call(operator(name), arguments))
            assert not device.waits()
        return
    if what == REFUSED:
        with running(kind) as device:
            arguments = device.move(copied(CALLED[name]()))
            with pytest.raises((ValueError, TypeError)) as refusal:
                call(operator(name), arguments)
            message = str(refusal.value)
            assert "\n" not in message and message.startswith("[") and "expected" in message
            assert device.type in message and "CPU" in message
        return
    waited = compare(kind, CALLED[name], operator(name), waits == "yes", differentiable(name))
    if kind == "simulated":
        assert waited == (waits == "yes")


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.parametrize(
    "name", [name for name in CALLED if name.endswith(("_backward", "_gradients"))]
)
def test_second_derivatives(name, kind):
    """In float64: sums of another order are 1e-3 off in float32."""
    precise = lambda x: x.detach().double().requires_grad_(x.requires_grad)
    make = lambda: pytree.tree_map(lambda x: precise(x) if is_floating(x) else x, CALLED[name]())
    compare(kind, make, operator(name), True)


def in_the_rows(x):
    """The memory of [B, H, T, D] with the heads inside the rows, as projections make it."""
    if not is_floating(x) or x.dim() != 4:
        return x
    turned = x.detach().transpose(1, 2).contiguous().transpose(1, 2)
    return turned.requires_grad_(x.requires_grad)


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.parametrize("name", [name for name in CALLED if "attention" in name or "rot" in name])
def test_strides_of_heads_inside_the_rows(name, kind, rows):
    what, waits = rows[name]
    if what in (NO_TENSORS, SIZES, REFUSED):
        return
    make = lambda: pytree.tree_map(in_the_rows, CALLED[name]())
    compare(kind, make, operator(name), waits == "yes", differentiable(name))


#: Operators whose references run as composites on any device are compared by the CPU's gates.
VARIANTS = {
    name: make
    for name, make in device_cases.VARIANTS.items()
    if not name.split(",")[0].endswith(("_reference", "_reference_backward"))
}
#: Lists, paths and other forms of the first read the list; lengths and candidates are checked.
WAITING = re.compile("sparse_attention|topk_keys, (lengths|candidates)")
ONE_SET = re.compile(r"sparse_attention, product (\d product product|groups|shared)")


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.parametrize("name", VARIANTS)
def test_options(name, kind, rows):
    """In float32, as kernels take it. No other option makes the CPU wait."""
    own = name.split(",")[0]
    what, waits = rows[own]
    if what == REFUSED:
        return
    make = lambda: pytree.tree_map(lambda x: x.float() if is_floating(x) else x, VARIANTS[name]())
    may_wait = waits != "no" or bool(WAITING.match(name) and not ONE_SET.fullmatch(name))
    waited = compare(kind, make, operator(own), may_wait, differentiable(own))
    assert may_wait or not waited


@pytest.mark.parametrize("name, parts", [("21-product", 2), ("201-product", 3)])
def test_the_kernel_of_a_device_computes_the_parts_of_an_augmented_call(name, parts):
    """The composite calls the operator once per part, so that the kernel of a device sees ordinary
    calls."""
    with running("simulated") as device:
        arguments = device.move(copied(VARIANTS[f"attention, augment-{name}"]()))
        call(operator("attention"), arguments)
        assert device.own["attention"] == device.own["attention_backward"] == 1 + parts


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.parametrize("name", device_cases.SEPARABLE)
def test_separable_attention(name, kind):
    function = operator("separable_attention")
    assert not compare(kind, device_cases.SEPARABLE[name], function, False)


def step(name, device):
    """Loss and gradients of all parameters of a module."""
    torch.manual_seed(7)
    module, inputs, loss = device_cases.MODULES[name]()
    torch.manual_seed(8)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    module.eval()  # without dropout
    inputs = copied(inputs)
    if device is not None:
        module, inputs = module.to(device.type), device.move(inputs)
        if isinstance(loss, partial):
            loss = partial(loss.func, **device.move(loss.keywords))
        device.forget()
    with without_waiting("cpu" if device is None or device.strict is False else device.type):
        value = loss(module, *inputs)
        value.backward()
    return [value.detach(), *(p.grad for p in module.parameters() if p.grad is not None)]


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.parametrize("name", device_cases.MODULES)
def test_modules(name, kind, rows):
    what, waits = rows[name.split(",")[0]]
    assert what == COMPOSITE
    expected = step(name, None)
    with running(kind) as device:
        for device.strict in {False, waits == "no"}:
            ours = step(name, device)
        assert_same(ours, expected, device)
        if kind == "simulated" and waits != "some":
            assert (device.waits() > 0) == (waits == "yes")


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.parametrize("name", device_cases.PROCESSES)
@torch.no_grad()
def test_caches_and_continuations(name, kind, rows):
    process = device_cases.PROCESSES[name]
    same = lambda tree: tree
    expected = process(SimpleNamespace(type="cpu", move=same, forget=lambda: None))
    with running(kind) as device:
        ours = process(device)
        for own, exact in zip(ours, expected, strict=True):
            torch.testing.assert_close(device.back(own), exact, rtol=2e-4, atol=2e-5)
        if kind == "simulated":
            assert (device.waits() > 0) == (rows[name][1] == "yes")


def refused_apart(device):
    """Calls whose tensors lie on two devices, by what the refusal must name."""
    lm = device_cases.language_model(device)
    tokens = torch.tensor([[1, 2, 3]])
    layer, x, loss = device_cases.MODULES["EquivariantLinear, list"]()
    encoder = device_cases.MODULES["EquivariantAttention"]()
    q, k1, k2, v1, v2 = device_cases.heads()
    moved = device.move([q, v1, v2])
    return {
        "[LanguageModel] tokens": lambda: lm(tokens),
        "[attention] keys[0]": lambda: device_cases.nsimplex.attention(
            moved[0], [k1, k2], moved[1:]
        ),
        "[equivariant_sums] plan": lambda: loss(layer.to(device.type), device.move(x[0])),
        "[equivariant_attention] plan": lambda: encoder.loss(
            encoder.module.to(device.type), device.move(encoder.inputs[0])
        ),
    }


@pytest.mark.parametrize("kind", DEVICES)
def test_tensors_of_two_devices_are_refused_in_one_line(kind):
    with running(kind) as device:
        for name, refused in refused_apart(device).items():
            with pytest.raises(ValueError) as refusal:
                refused()
            message = str(refusal.value)
            assert "\n" not in message and message.startswith(name), message
            assert device.type in message and "got cpu" in message


@pytest.mark.parametrize("kind", DEVICES)
def test_continued_tokens_lie_where_the_prompt_lies(kind):
    with running(kind) as device:
        model = device_cases.language_model(device)
        assert model.generate(device.move(torch.tensor([1, 2])), 2).device.type == device.type
