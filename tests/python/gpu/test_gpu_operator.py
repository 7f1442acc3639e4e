"""The operator with the kernels under the CPU's dispatch key: every option, and what stands above a
kernel."""

from __future__ import annotations

import pytest
import torch
from options import OPTIONS, option_problem
from oracle import errors
from problems import Problem, random_problem
from test_hostile import test_empty_axes  # noqa: F401
from test_kernel_options import HEADS, QUERIES, B
from test_kernel_options import OPTIONS as LONG_OPTIONS

import nsimplex

pytestmark = pytest.mark.interpreted

#: Largest errors of a result beside the reference in float64.
LIMITS = {torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}
#: One case of each kind of option; the others take minutes.
QUICK_OPTIONS = [
    *("determinant-1", "documents-1", "key-masks-1", "boolean-mask-1"),
    *("distinct-2", "sink-1", "sigmoid-1", "relu-1", "dropout-1", "positions-1", "softcap-1"),
]


def cases(values, quick):
    """The parameters of a test, of which those not in ``quick`` are marked as slow."""
    return [pytest.param(x, marks=() if x in quick else pytest.mark.slow) for x in values]


@pytest.fixture(autouse=True)
def on_cpu(bench):
    from kernels_on_cpu import put_under_cpu

    put_under_cpu()
    return bench


def check(problem: Problem, bench, dtype=torch.float32, backward: bool = True) -> None:
    """Both outputs and all gradients are the reference's, and kernels computed them."""
    given = problem.to(dtype)
    found = given.outcome()
    kernels = set(bench.launches)
    assert any(name.startswith("attention_forward") or "heads" in name for name in kernels), kernels
    assert not backward or any("backward" in name for name in kernels), kernels
    differences = errors(found, given.to(torch.float64).outcome(nsimplex.reference))
    assert max(differences.values()) < LIMITS[dtype], differences


@pytest.mark.parametrize(
    "name", cases([n for n in OPTIONS if "augment" not in OPTIONS[n][1]], QUICK_OPTIONS)
)
def test_options(name, bench):
    """Options alone and in telling combinations. The gradient of a mask is the composite's."""
    check(option_problem(name), bench, backward="mask" not in OPTIONS[name][2])


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG_OPTIONS)
def test_options_over_several_tiles(name, bench):
    lengths, options = LONG_OPTIONS[name]
    options = dict(options)
    sink = options.pop("sink", None)
    problem = random_problem(
        len(lengths),
        batch=B,
        heads=HEADS,
        kv_heads=2,
        queries=QUERIES,
        lengths=lengths,
        dim=2 * (len(lengths) + 1),
        value_dim=5,
    )
    problem.options = options
    problem.learned = {} if sink is None else {"sink": sink}
    check(problem, bench)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("heads", cases([4, 36], [36]))
def test_sixteen_bits(dtype, heads, bench):
    """Few and many query heads per key head, which are different kernels."""
    problem = random_problem(
        2, heads=heads, kv_heads=1, queries=7, lengths=[7, 19], dim=16, window=[3, 17], causal=True
    )
    check(problem, bench, dtype)


LOWEST = torch.finfo(torch.float32).min


@pytest.mark.parametrize("value", cases([LOWEST, -1e9, -1e4, 1e9], [LOWEST]))
def test_large_masks(value, bench):
    """Rows with some and with only large masks keep their scores."""
    mask = torch.zeros(1, 2, 8, 8, 20, dtype=torch.float64)
    mask[..., ::3] = value
    mask[:, :, 2] = value
    problem = random_problem(2, heads=2, queries=8, lengths=[8, 20], mask=mask.float())
    check(problem, bench)


@pytest.mark.parametrize("normalizer", ["softmax", "softmax_sink"])
@pytest.mark.parametrize("factor", cases([300.0, 3e4], [3e4]))
def test_large_logits(normalizer, factor, bench):
    """Logits whose lse has few digits left: weights come from the maximum and the sum."""
    problem = random_problem(2, heads=2, queries=12, lengths=[12, 20], normalizer=normalizer)
    problem.inputs[0] = problem.inputs[0] * factor
    if normalizer == "softmax_sink":
        problem.learned = {"sink": torch.tensor([factor, -3.0], dtype=torch.float64)}
    given = problem.to(torch.float32)
    found, expected = given.outcome(), given.to(torch.float64).outcome(nsimplex.reference)
    differences = errors(found, expected)
    # A logit of 1e4 has an absolute error of 1e-3 in fp32, whatever is done with it.
    assert max(differences.values()) < 5e-3, differences


def test_rows_begin_at_multiples_of_sixteen():
    from nsimplex.gpu.launches import strides, with_rows

    whole = torch.randn(2, 3, 5, 32)
    for view in (whole[..., 1:10], whole[..., :9].contiguous(), whole.mT):
        rows = with_rows(view)
        assert torch.equal(rows, view) and rows.stride(3) == 1
        assert all(step % 16 == 0 for step in (rows.storage_offset(), *strides(rows)))
    assert with_rows(whole) is whole


LAYOUTS = ["heads inside rows", "slice", "unaligned", "channels outside"]


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_strided_views(layout, bench):
    from test_hostile import layouts

    problem = random_problem(2, heads=4, kv_heads=2, queries=19, dim=9, causal=True)
    plain = problem.to(torch.float32)
    expected = plain.outcome()
    plain.inputs = [layouts(t.detach())[layout].requires_grad_() for t in plain.inputs]
    for name, value in plain.outcome().items():
        torch.testing.assert_close(value, expected[name], msg=name)
    assert any("backward" in name for name in bench.launches)


def test_unwanted_gradients_change_nothing(bench):
    problem = random_problem(2, queries=9, lengths=[9, 20], causal=True).to(torch.float32)
    out, _ = problem.run()
    everything = torch.autograd.grad(out.sum(), problem.inputs, retain_graph=True)
    for wanted, expected in zip(problem.inputs, everything):
        (alone,) = torch.autograd.grad(out.sum(), wanted, retain_graph=True)
        assert torch.equal(alone, expected)


def test_opcheck():
    torch.use_deterministic_algorithms(False)  # opcheck compares with memory of its own
    try:
        q = torch.randn(1, 2, 5, 8)
        kv = [torch.randn(1, 1, n, 8) for n in (5, 7, 5, 7)]
        options = dict(causal=True, window=[3, -1, 4, -1])
        operator = torch.ops.nsimplex.attention.default
        leaves = [t.requires_grad_() for t in (q, *kv)]
        torch.library.opcheck(operator, (leaves[0], leaves[1:3], leaves[3:]), options)
    finally:
        torch.use_deterministic_algorithms(True)


def test_compiled_calls_have_the_same_bits(bench):
    problem = random_problem(2, queries=6, lengths=[6, 18], causal=True).to(torch.float32)

    def loss(*leaves):
        out, lse = problem.call(*leaves)
        return out.square().sum() + lse.masked_fill(lse.isneginf(), 0).sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    results = [
        torch.autograd.grad(function(*problem.inputs), problem.inputs)
        for function in (loss, compiled)
    ]
    assert all(torch.equal(one, other) for one, other in zip(*results))
    assert bench.launches


def test_autocast(bench):
    problem = random_problem(2, queries=6, lengths=[6, 18], causal=True).to(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, _ = problem.run()
    assert out.dtype == torch.bfloat16
    rounded = Problem([t.detach().bfloat16() for t in problem.inputs], problem.options)
    assert torch.equal(out, rounded.run()[0])
    out.float().sum().backward()
    assert all(t.grad.dtype == torch.float32 for t in problem.inputs)


def test_fallbacks_are_said(monkeypatch, capsys, bench):
    """float64 is not a kernel's."""
    from nsimplex.gpu import registration

    registration._fall_back.cache_clear()
    monkeypatch.setenv("NSIMPLEX_WARN_FALLBACK", "1")
    random_problem(1, queries=3).run()
    said = capsys.readouterr().err
    assert "attention uses the reference version: the GPU kernel takes float32" in said
    assert not bench.launches


def test_grids_that_a_gpu_cannot_launch_fall_back(bench):
    problem = random_problem(1, batch=1, heads=2, queries=1, lengths=[1], dim=1).to(torch.float32)
    problem.inputs = [t.detach().expand(32768, -1, -1, -1) for t in problem.inputs]
    assert problem.run()[0].shape[0] == 32768
    assert not bench.launches


SHARED = {  # calls in which a block of rows has several queries
    "windows": dict(window=[13, 18], causal=True),
    "two-sided windows": dict(window=[(9, 4), (9, 8)]),
    "all keys": dict(),
    "causal, sums": dict(causal=True, reduce="sum"),
    "fewer queries": dict(queries=7, causal=True),
    "documents": dict(causal=True, lengths=[16, 16], cu_seqlens=torch.tensor([0, 3, 3, 9, 16])),
    "lengths": dict(key_lengths=torch.tensor([14])),
    "positions": dict(query_positions=torch.arange(16)[None] // 2 + 9, window=[11, 19]),
    "a sink": dict(causal=True, normalizer="softmax_sink"),
    "a negative scale": dict(causal=True, scale=-0.25),
    "three axes": dict(lengths=[4, 4, 18], queries=4, causal=True),
    "five heads in a group": dict(heads=10, kv_heads=2, causal=True),
    "one head each": dict(heads=2, kv_heads=2, window=[3, 9], causal=True),
}


@pytest.mark.parametrize("name", cases(list(SHARED), ["windows", "documents", "three axes"]))
def test_blocks_of_queries_that_share_tuples(name, bench, monkeypatch):
    from nsimplex.gpu import attention_heads

    monkeypatch.setattr(attention_heads, "LEAST_BLOCKS", 0)
    monkeypatch.setattr(attention_heads.Blocks, "pays", lambda *_: True)
    given = dict(heads=8, kv_heads=1, queries=16, lengths=[16, 20], dim=16) | SHARED[name]
    scale = given.pop("scale", None)
    problem = random_problem(len(given["lengths"]), **given)
    if scale is not None:
        problem.options["scale"] = scale
    if given.get("normalizer") == "softmax_sink":
        problem.learned = {"sink": torch.linspace(-1, 2, 8, dtype=torch.float64)}
    check(problem, bench, torch.bfloat16, backward=False)
    assert "attention_heads_kernel" in bench.launches


@pytest.mark.parametrize("scale", [0.0, -0.25])
def test_any_scale_of_many_heads(scale, bench):
    """A scale of 0 makes equal weights, also beside keys outside the window."""
    problem = random_problem(
        2, heads=34, kv_heads=1, queries=5, lengths=[5, 19], dim=16, window=[3, 17], causal=True
    )
    problem.options["scale"] = scale
    check(problem, bench, torch.float16)
    assert "attention_heads_kernel" in bench.launches


def in_the_rows(x):
    """[B, H, T, D] whose memory has the heads inside the rows, as a layer's projections make it."""
    return x.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("form, heads", [("product", 4), ("determinant", 4), ("product", 36)])
def test_results_have_the_strides_that_are_promised(form, heads, turned, bench):
    """torch.compile plans with the strides of the kernels for meta tensors. With 6 channels, rows
    do not begin where kernels read them, so inputs are copied."""
    problem = random_problem(heads=heads, kv_heads=2, queries=5, dim=6, dtype=torch.bfloat16)
    tensors = [in_the_rows(x) if turned else x.requires_grad_() for x in problem.inputs]
    strides = []
    for own in (tensors, [x.detach().to("meta").requires_grad_() for x in tensors]):
        out, lse = nsimplex.attention(own[0], own[1:3], own[3:], form=form, return_lse=True)
        gradients = torch.autograd.grad(out.sum(), own)
        strides.append([x.stride() for x in (out, lse, *gradients)])
    assert bench.launches
    assert strides[0] == strides[1]
