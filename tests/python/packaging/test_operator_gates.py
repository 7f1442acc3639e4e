"""What every operator must pass, for each of its options: the calls of ``operator_variants``.

opcheck, first and second derivatives, torch.func, vmap, gradients one by one, numbers of threads,
stored otherwise, torch.compile and torch.export, and the reference in every dtype. What is special
to an operator stands in the tests of that operator.
"""

from __future__ import annotations

import pytest
import torch
from operator_cases import CASES
from operator_variants import ALL, SIZED
from options import EACH
from test_every_operator_and_module import convert, has_gradient, in_halves, is_floating, operator
from torch.autograd import gradcheck, gradgradcheck
from torch.utils import _pytree as pytree

torch.set_warn_always(False)
#: Floating arguments without a gradient, by the names of the schema.
FIXED = {
    "indexer_loss": {"query", "keys"},
    "equivariant_attention": {"directions"},
    "equivariant_attention_reference": {"directions"},
}


def operator_names():
    return {name.split("::")[1].split(".")[0] for name in torch._C._dispatch_get_all_op_names()}


def of(name):
    """The operator of a case."""
    return name.split(",")[0]


#: Logarithms and sums of weights have never 16 bits.
WIDE = {torch.bfloat16: torch.float32, torch.float16: torch.float32}


class Call:
    """A case as a function of its floating tensors that have a gradient."""

    def __init__(self, name, dtype=torch.float64, change=lambda x: x, arguments=None):
        self.operator = operator(of(name))
        arguments = convert(ALL[name]() if arguments is None else arguments, WIDE.get(dtype, dtype))
        arguments = in_halves(of(name), arguments, dtype)
        schema = [argument.name for argument in self.operator._schema.arguments]
        fixed = {"alibi_slopes", *FIXED.get(of(name), ())}
        named = dict(zip(schema, arguments[0])) | arguments[1]
        self.flat, self.tree = pytree.tree_flatten(named)
        paths = [path[0].key for path, _ in pytree.tree_flatten_with_path(named)[0]]
        self.places = [
            i for i, x in enumerate(self.flat) if is_floating(x) and paths[i] not in fixed
        ]
        self.leaves = [change(self.flat[i].detach()).clone() for i in self.places]

    def given(self, tensors):
        """The arguments by name, with other tensors."""
        others = iter(tensors)
        flat = [next(others) if isinstance(x, torch.Tensor) else x for x in self.flat]
        return pytree.tree_unflatten(flat, self.tree)

    def wanting(self):
        """The leaves, each asking for a gradient."""
        return [leaf.detach().requires_grad_() for leaf in self.leaves]

    def results(self, *leaves, function=None):
        """All results that there are; minus infinity, which is the lse of no tuple, is 0."""
        flat = list(self.flat)
        for place, leaf in zip(self.places, leaves):
            flat[place] = leaf
        function = self.operator if function is None else function
        out = function(**pytree.tree_unflatten(flat, self.tree))
        return [
            torch.where(x.isneginf(), 0.0, x) if is_floating(x) else x
            for x in pytree.tree_leaves(out)
            if x is not None
        ]

    def __call__(self, *leaves):
        """What can be differentiated."""
        return tuple(x for x in self.results(*leaves) if has_gradient(x) or not x.requires_grad)

    def outcome(self, leaves, function=None):
        """All results and the gradients of a loss that weighs all of them."""
        out = self.results(*leaves, function=function)
        return [x.detach() if isinstance(x, torch.Tensor) else x for x in out] + gradients(
            out, leaves
        )


def gradients(out, leaves):
    weigh = lambda x: torch.randn(
        x.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64
    )
    out = [x for x in out if has_gradient(x)]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    if not out or not wanted:
        return []
    found = torch.autograd.grad(out, wanted, [weigh(x).to(x.dtype) for x in out], allow_unused=True)
    return [x for x in found if x is not None]


def assert_close(ours, expected, **tolerance):
    assert len(ours) == len(expected)
    for a, b in zip(ours, expected):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(a, b, equal_nan=True, **tolerance)
        else:
            assert a == b


def some(names, quick):
    """The parameters of a slow test, of which those not in ``quick`` are for make test-all."""
    return [pytest.param(x, marks=() if x in quick else pytest.mark.slow) for x in names]


def is_backward(name):
    return of(name).endswith(("_backward", "_gradients"))


#: Without a gradient.
CHOICES = {"topk_keys", "topk_keys_reference", "random_directions"}
#: Once differentiable, or piecewise so.
ONCE = {"indexer_loss", "composite_norm", "causal_angles"}
#: Without gradients under vmap: one refuses them, and torch's rules fail on those of the other.
NO_BATCHES = {"indexer_loss", "equivariant_linear"}
#: Composed of torch's own sums, whose bits may depend on threads.
COMPOSED = {"indexer_loss", "equivariant_linear"}
#: Beside the references, which have torch's own rules.
OWN = [name for name in ALL if not of(name).endswith(("_reference", "_reference_backward"))]
DIFFERENTIABLE = [name for name in OWN if of(name) not in CHOICES and not is_backward(name)]
KERNELS = [name for name in ALL if f"{of(name)}_reference" in operator_names()]
#: Compiled and exported in every run: each operator, and each kind of option of attention.
PROGRAMS = {*CASES, *(f"attention, {name}" for name in EACH)}


def finite(mask):
    """No finite difference leads away from minus infinity."""
    return mask.clamp_min(-3)


QUICK_CHECKS = "test_schema", "test_autograd_registration", "test_faketensor"


@pytest.mark.parametrize("name", ALL)
def test_opcheck(name):
    call = Call(name, torch.float32)
    # Second derivatives of lists look into the list, which a fake tensor does not know.
    wanted = not (is_backward(name) and name.startswith("sparse"))
    for place in call.places:
        call.flat[place].requires_grad_(wanted)
    given = call.given(tensors_of(call))
    torch.library.opcheck(call.operator, (), given, test_utils=QUICK_CHECKS)


def heads_inside(x):
    """Stored as layers leave it: heads beside channels."""
    return x.transpose(1, 2).contiguous().transpose(1, 2) if x.dim() > 2 else x


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", [name for name in ALL if name in PROGRAMS])
def test_fake_results_have_the_strides_of_real_ones(name, dtype):
    call = Call(name, dtype)
    tensors = [heads_inside(x) if is_floating(x) else x for x in tensors_of(call)]
    torch.library.opcheck(call.operator, (), call.given(tensors), test_utils="test_faketensor")


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives(name):
    call = Call(name, change=finite)
    leaves = call.wanting()
    assert gradcheck(call, leaves, fast_mode=True)
    if of(name) not in ONCE:
        assert gradgradcheck(call, leaves, fast_mode=True)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_torch_func_agrees_with_autograd(name):
    call = Call(name)
    primals = tuple(call.leaves)
    if of(name) == "indexer_loss":
        for transform in (torch.func.vjp, lambda f, *x: torch.func.jvp(f, x, x)):
            with pytest.raises(NotImplementedError, match=r"expected tensors outside of grad, vjp"):
                transform(call, *primals)
        return
    out, pullback = torch.func.vjp(call, *primals)
    grads = pullback(tuple(torch.ones_like(x) for x in out))
    leaves = call.wanting()
    expected = torch.autograd.grad(
        sum(x.sum() for x in call(*leaves)), leaves, allow_unused=True, materialize_grads=True
    )
    assert_close(grads, expected)
    tangents = tuple(torch.ones_like(x) for x in primals)
    _, along = torch.func.jvp(call, primals, tangents)
    torch.testing.assert_close(sum(x.sum() for x in along), sum(grad.sum() for grad in grads))


@pytest.mark.parametrize("name", OWN)
def test_vmap_is_a_loop(name):
    call = Call(name)
    stacked = [torch.stack([x, 0.9 * x, 1.1 * x]) for x in call.leaves]
    run = lambda *leaves: tuple(call.results(*leaves))
    for i, own in enumerate(zip(*torch.vmap(run)(*stacked))):
        assert_close(own, run(*(x[i] for x in stacked)))


@pytest.mark.parametrize("name", [name for name in DIFFERENTIABLE if of(name) not in NO_BATCHES])
def test_vmap_of_gradients_is_a_loop(name):
    """Over all tensors, and over every second one, which has a batch of gradients alone."""
    call = Call(name)
    loss = lambda *leaves: sum(x.sin().sum() for x in call(*leaves))
    run = torch.func.grad(loss, tuple(range(len(call.leaves))))
    for step in (1, 2):
        dims = [0 if i % step == 0 else None for i in range(len(call.leaves))]
        entries = [[x, 0.9 * x] if dim == 0 else [x, x] for x, dim in zip(call.leaves, dims)]
        given = [torch.stack(x) if dim == 0 else x[0] for x, dim in zip(entries, dims)]
        for i, own in enumerate(zip(*torch.vmap(run, tuple(dims))(*given))):
            assert_close(own, run(*(x[i] for x in entries)))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_that_nobody_wants_change_nothing(name):
    call = Call(name)
    leaves = call.wanting()
    out = call.results(*leaves)
    with torch.no_grad():
        assert_close(call.results(*leaves), out)
    expected = gradients(out, leaves)
    if len(expected) < len(leaves):
        return
    for wanted, exact in enumerate(expected):
        leaves = [x.detach().requires_grad_(i == wanted) for i, x in enumerate(leaves)]
        assert_close(gradients(call.results(*leaves), leaves), [exact])


@pytest.mark.parametrize("name", OWN)
def test_bits_do_not_depend_on_threads(name, same_bits):
    call = Call(name, torch.float32)
    same_bits(lambda: call.outcome(call.wanting()), threads=(1, 1, 3))


def views(x):
    """The same numbers, stored otherwise: unaligned, with gaps, and the last axis outside."""
    flat = torch.zeros(x.numel() + 1, dtype=x.dtype)
    flat[1:] = x.flatten()
    yield flat[1:].view(x.shape)
    if x.dim():
        yield torch.stack([x, torch.full_like(x, torch.nan)], -1).flatten(-2)[..., ::2]
    if x.dim() > 1:
        yield x.transpose(-1, -2).contiguous().transpose(-1, -2)
    if x.dim() > 2:
        yield x.transpose(1, 2).contiguous().transpose(1, 2)


@pytest.mark.parametrize("name", OWN)
def test_views_have_the_numbers_of_whole_tensors(name):
    call = Call(name)
    expected = call.outcome(call.wanting())
    kinds = [[*views(x)] for x in call.leaves]
    for kind in range(4):
        leaves = [x[kind % len(x)].detach().requires_grad_() for x in kinds]
        assert_close(call.outcome(leaves), expected)


def of_length(name, length, dtype=torch.float32):
    return Call(name, dtype, arguments=SIZED[name](length))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", [name for name in SIZED if of(name) not in COMPOSED])
def test_bits_of_long_calls_do_not_depend_on_threads(name, dtype, same_bits):
    call = of_length(name, 600, dtype)
    same_bits(lambda: call.outcome(call.wanting()), threads=(1, 1, 2, 3, 5))


class Program(torch.nn.Module):
    """A call whose tensors are arguments, and whose other options stand in the program."""

    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, tensors):
        return self.call.operator(**self.call.given(tensors))


def tensors_of(call):
    return [x for x in call.flat if isinstance(x, torch.Tensor)]


def compiled(call, backend="aot_eager", **options):
    torch._dynamo.reset()
    return torch.compile(Program(call), fullgraph=True, backend=backend, **options)


def through(program):
    """What computes the same call by a program."""
    tensors = lambda named: [x for x in pytree.tree_leaves(named) if isinstance(x, torch.Tensor)]
    return lambda **named: program(tensors(named))


def check_compiled(name, backend):
    """Backward operators are compiled as gradients are: not to be differentiated again."""
    call = Call(name, torch.float32)
    make = (lambda: call.leaves) if is_backward(name) else call.wanting
    ours = call.outcome(make(), function=through(compiled(call, backend)))
    assert_close(ours, call.outcome(make()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", some(ALL, PROGRAMS))
def test_compiled_code(name):
    check_compiled(name, "aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_code_compiled_with_inductor(name):
    check_compiled(name, "inductor")


@pytest.mark.parametrize("name", some(ALL, PROGRAMS))
def test_exported_programs(name):
    call = Call(name, torch.float32)
    program = torch.export.export(Program(call), (tensors_of(call),)).module()
    fresh = [1.1 * x for x in call.leaves]
    ours = call.results(*fresh, function=through(program))
    assert_close(ours, call.results(*fresh), rtol=0, atol=0)


@pytest.mark.parametrize("name", SIZED)
def test_one_program_takes_any_length(name):
    call = of_length(name, 8)
    run, given = through(compiled(call, dynamic=True)), tensors_of(call)
    shapes = [dict.fromkeys(range(x.dim()), torch.export.Dim.AUTO) for x in given]
    exported = torch.export.export(Program(call), (given,), dynamic_shapes=(shapes,)).module()
    torch._dynamo.utils.counters.clear()
    for length in (8, 11, 40):
        call = of_length(name, length)
        expected = call.outcome(call.wanting())
        assert_close(call.outcome(call.wanting(), function=run), expected, rtol=1e-4, atol=1e-5)
        ours = call.results(*call.leaves, function=through(exported))
        assert_close(ours, call.results(*call.leaves), rtol=0, atol=0)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2


@pytest.mark.parametrize("name", ["attention_weights", "face_attention"])
def test_an_exported_composite_takes_any_length(name):
    run = getattr(torch.ops.nsimplex, name)
    options = dict(causal=True, key_lengths=torch.tensor([3, 5]))

    class Own(torch.nn.Module):
        def forward(self, query, keys):
            return run(query, keys, *([keys] * (name == "face_attention")), **options)

    def draw(length):
        return torch.randn(2, 3, length, 4), [torch.randn(2, 3, length, 4) for _ in range(2)]

    length = torch.export.Dim("length", min=5, max=64)
    shapes = ({2: length}, [{2: length}] * 2)
    program = torch.export.export(Own(), draw(8), dynamic_shapes=shapes).module()
    for n in (5, 8, 30):
        given = draw(n)
        assert_close([*program(*given)], [*Own()(*given)], rtol=0, atol=0)


#: Largest errors of a whole tensor beside the reference in float64.
ERRORS = {torch.float64: 1e-11, torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


@pytest.mark.parametrize("dtype", ERRORS, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_agree_with_the_reference(name, dtype):
    """By the whole tensor: a logit of relu that rounds across 0 changes single gradients."""
    call = Call(name, dtype)
    exact = Call(name, arguments=((), pytree.tree_unflatten(call.flat, call.tree)))
    expected = exact.outcome(exact.wanting(), function=operator(f"{of(name)}_reference"))
    for own, other in zip(call.outcome(call.wanting()), expected, strict=True):
        if is_floating(own):
            assert (own.double() - other).norm() <= ERRORS[dtype] * max(other.norm().item(), 1)
