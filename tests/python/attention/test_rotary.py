"""Rotary encodings: the definition, invariance of the logits, positions."""

import math

import pytest
import torch

import nsimplex

CHUNKS = [2, 3, 4, 5]


def planes(channels, chunk):
    return channels // chunk * (chunk // 2)


def definition(x, chunk, angles):
    """Channel by channel, from angles [T, P]."""
    out, plane = x.clone(), 0
    for first in range(0, x.size(-1), chunk):
        for a in range(first, first + chunk - 1, 2):
            cos, sin = angles[:, plane].cos(), angles[:, plane].sin()
            out[..., a] = x[..., a] * cos - x[..., a + 1] * sin
            out[..., a + 1] = x[..., a] * sin + x[..., a + 1] * cos
            plane += 1
    assert plane == angles.size(1)
    return out


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(
    "dtype, error",
    [
        (torch.float64, 1e-14),
        (torch.float32, 1e-6),
        (torch.bfloat16, 2**-8),
        (torch.float16, 2**-11),
    ],
)
def test_definition(chunk, dtype, error):
    x = draw(2, 3, 300, 4 * chunk).to(dtype)
    count = planes(4 * chunk, chunk)
    frequencies = 10000.0 ** (-torch.arange(count, dtype=torch.float64) / count)
    angles = (torch.arange(300, dtype=torch.float64) + 7)[:, None] * frequencies
    expected = definition(x.double(), chunk, angles)
    for variant in (
        nsimplex.rotary(x, chunk=chunk, offset=7),
        nsimplex.rotary(x, chunk=chunk, positions=torch.arange(300) + 7),
        nsimplex.rotary(x, chunk=chunk, angles=angles),
        nsimplex.rotary(x.transpose(1, 2).contiguous().transpose(1, 2), chunk=chunk, offset=7),
        nsimplex.rotary(x.repeat_interleave(2, -1)[..., ::2], chunk=chunk, offset=7),
    ):
        assert variant.dtype == dtype
        assert (variant.double() - expected).abs().max() <= error * expected.abs().max()


def test_angles_of_heads_and_batches():
    x, chunk = draw(2, 3, 5, 6), 3
    angles = draw(2, 5, 3, 2, seed=1)
    whole = nsimplex.rotary(x, chunk=chunk, angles=angles)
    for b in range(2):
        for h in range(3):
            one = definition(x[b, h], chunk, angles[b, :, h])
            torch.testing.assert_close(whole[b, h], one)
    torch.testing.assert_close(
        nsimplex.rotary(x, chunk=chunk, angles=angles[0])[0], whole[0], rtol=0, atol=0
    )
    for b in range(2):
        shared = nsimplex.rotary(x, chunk=chunk, angles=angles[:, :, :1])
        torch.testing.assert_close(shared[b], definition(x[b], chunk, angles[b, :, 0]))
    of_batch = nsimplex.rotary(
        x, chunk=chunk, positions=torch.tensor([[0, 1, 2, 3, 4], [9, 3, 1, 0, 2]])
    )
    for t, position in enumerate((9, 3, 1, 0, 2)):
        row = nsimplex.rotary(x[1:, :, t : t + 1], chunk=chunk, offset=position)
        torch.testing.assert_close(of_batch[1:, :, t : t + 1], row)


def determinant_logits(query, keys):
    """[B, H, T, T_1, .., T_N] from the definition: sums of determinants of chunks."""
    order = len(keys)
    shape = [query.size(2), *(key.size(2) for key in keys)]
    columns = []
    for axis, tensor in enumerate([query, *keys]):
        view = [1] * (order + 1)
        view[axis] = tensor.size(2)
        chunks = tensor.unflatten(-1, (-1, order + 1))
        batch, heads, _, count, chunk = chunks.shape
        columns.append(
            chunks.view(batch, heads, *view, count, chunk).expand(
                batch, heads, *shape, count, chunk
            )
        )
    return torch.linalg.det(torch.stack(columns, -1)).sum(-1)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_determinants_depend_on_relative_positions_alone(order):
    tensors = [draw(1, 2, 4 + m, 2 * (order + 1), seed=m) for m in range(order + 1)]

    def logits(shift):
        query, *keys = (nsimplex.rotary(t, chunk=order + 1, offset=shift) for t in tensors)
        return determinant_logits(query, keys)

    torch.testing.assert_close(logits(0), logits(123))
    query, *keys = (nsimplex.rotary(t, chunk=order + 1, offset=m) for m, t in enumerate(tensors))
    assert (determinant_logits(query, keys) - logits(0)).abs().max() > 0.1  # it does turn something


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("dtype, error", [(torch.float64, 1e-11), (torch.float32, 1e-4)])
def test_attention_with_the_determinant_does_too(order, dtype, error):
    tensors = [draw(1, 2, 9, 2 * (order + 1), seed=m).to(dtype) for m in range(order + 1)]
    values = [draw(1, 2, 9, 3, seed=10 + m).to(dtype) for m in range(order)]

    def run(shift):
        query, *keys = (nsimplex.rotary(t, chunk=order + 1, offset=shift) for t in tensors)
        return nsimplex.attention(
            query,
            keys,
            values,
            form="determinant",
            causal=True,
            window=[4] * order,
            return_lse=True,
        )

    for ours, later in zip(run(0), run(50)):
        torch.testing.assert_close(ours, later, rtol=error, atol=error)


@pytest.mark.parametrize("order, invariant", [(1, True), (2, False), (3, False)])
def test_products_do_so_for_pairs_only(order, invariant):
    tensors = [draw(1, 1, 5, 12, seed=m) for m in range(order + 1)]
    values = [draw(1, 1, 5, 3, seed=10 + m) for m in range(order)]

    def out(shift):
        query, *keys = (nsimplex.rotary(t, offset=shift) for t in tensors)
        return nsimplex.attention(query, keys, values)

    assert ((out(0) - out(17)).abs().max() < 1e-12) == invariant


@pytest.mark.parametrize("chunk", CHUNKS)
def test_norms_stay_and_inverse_undoes(chunk):
    x = draw(1, 2, 50, 2 * chunk)
    y = nsimplex.rotary(x, chunk=chunk, offset=1000)
    per_chunk = [t.unflatten(-1, (-1, chunk)).norm(dim=-1) for t in (x, y)]
    torch.testing.assert_close(*per_chunk)
    torch.testing.assert_close(nsimplex.rotary(y, chunk=chunk, offset=1000, inverse=True), x)


def test_learned_angles_of_low_precision_inputs():
    x = draw(2, 3, 40, 6).bfloat16().requires_grad_()
    angles = draw(40, 2, seed=1, dtype=torch.float32).requires_grad_()
    exact = [x.detach().double().requires_grad_(), angles.detach().double().requires_grad_()]
    grads = torch.autograd.grad(
        nsimplex.rotary(x, chunk=3, angles=angles).float().square().sum() / 2
        + nsimplex.rotary(x, chunk=3, angles=angles).float().sum(),
        (x, angles),
    )
    y = nsimplex.rotary(exact[0], chunk=3, angles=exact[1])
    expected = torch.autograd.grad(y.square().sum() / 2 + y.sum(), exact)
    assert grads[0].dtype == torch.bfloat16 and grads[1].dtype == torch.float32
    for ours, true in zip(grads, expected):
        assert (ours.double() - true).norm() <= 0.02 * true.norm()


def test_compile_and_export_with_dynamic_lengths():
    class Layer(torch.nn.Module):
        def forward(self, x):
            return nsimplex.rotary(x, chunk=3, offset=-x.size(2)).sin()

    torch._dynamo.reset()
    compiled = torch.compile(Layer(), fullgraph=True, dynamic=True, backend="aot_eager")
    program = torch.export.export(
        Layer(), (draw(1, 2, 8, 6),), dynamic_shapes=({2: torch.export.Dim("length", min=2)},)
    )
    for length in (5, 9):
        x = draw(1, 2, length, 6).requires_grad_()
        for function in (compiled, program.module()):
            torch.testing.assert_close(function(x), Layer()(x), rtol=0, atol=0)
        ours, expected = (torch.autograd.grad(f(x).sum(), x) for f in (compiled, Layer()))
        torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (1, 2, 0, 4), (1, 0, 3, 4)])
def test_empty(shape):
    x = torch.zeros(shape, requires_grad=True)
    y = nsimplex.rotary(x)
    assert y.shape == x.shape
    y.sum().backward()
    assert x.grad.shape == x.shape


def test_far_positions_keep_their_digits():
    x = torch.tensor([1.0, 0.0]).view(1, 1, 1, 2)
    y = nsimplex.rotary(x, offset=10_000_019).flatten().tolist()
    assert y == pytest.approx([math.cos(10_000_019.0), math.sin(10_000_019.0)], abs=1e-6)


@pytest.mark.parametrize(
    "options, error, words",
    [
        (dict(chunk=1), ValueError, "chunk: expected at least 2, got 1"),
        (dict(chunk=4), ValueError, "divisible by chunk 4, got 6"),
        (dict(base=0.0), ValueError, "base: expected a positive number, got 0"),
        (
            dict(positions=torch.arange(3)),
            ValueError,
            r"positions: expected shape \[4\] or \[2, 4\]",
        ),
        (dict(positions=torch.arange(4) > 1), TypeError, "positions: expected integers"),
        (dict(positions=torch.arange(4), offset=1), ValueError, "positions: given beside offset"),
        (dict(angles=torch.zeros(4, 3), offset=1), ValueError, "angles: given beside offset"),
        (dict(angles=torch.zeros(4, 3), base=5.0), ValueError, "base: given beside angles"),
        (
            dict(angles=torch.zeros(4, 3), positions=torch.arange(4)),
            ValueError,
            "given beside angles",
        ),
        (dict(angles=torch.zeros(4, 2)), ValueError, "angles: expected shape .* P = 3"),
        (dict(angles=torch.zeros(2, 4, 2, 3)), ValueError, "H = 3 or 1"),
        (dict(angles=torch.zeros(4, 3).long()), TypeError, "angles: expected floating"),
    ],
)
def test_errors(options, error, words):
    with pytest.raises(error, match=words):
        nsimplex.rotary(torch.zeros(2, 3, 4, 6), **options)
    with pytest.raises(error, match=words):
        nsimplex.rotary(
            torch.zeros(2, 3, 4, 6, device="meta"),
            **{
                name: value.to("meta") if isinstance(value, torch.Tensor) else value
                for name, value in options.items()
            },
        )


@pytest.mark.parametrize("offset", [2**53 + 1, -(2**53) - 1, 2**61, 2**62, -(2**63)])
def test_positions_that_float64_does_not_tell_apart_are_refused(offset):
    for device in ("cpu", "meta"):
        with pytest.raises(ValueError, match="offset: expected -2\\^53 to 2\\^53"):
            nsimplex.rotary(torch.ones(1, 1, 3, 4, device=device), offset=offset)


@pytest.mark.parametrize("offset", [2**53 - 3, -(2**53), 2**52])
def test_positions_up_to_there_are_turned_by(offset):
    x = torch.randn(1, 1, 3, 2, dtype=torch.float64)
    angle = torch.arange(3, dtype=torch.float64) + offset
    c, s = angle.cos(), angle.sin()
    a, b = x[0, 0].unbind(1)
    torch.testing.assert_close(
        nsimplex.rotary(x, offset=offset)[0, 0], torch.stack([a * c - b * s, a * s + b * c], 1)
    )


def test_a_position_that_is_no_number_spoils_its_row_alone():
    x = torch.ones(1, 1, 3, 2)
    y = nsimplex.rotary(x, positions=torch.tensor([0.0, torch.nan, 1.0]))[0, 0]
    assert y.isnan().tolist() == [[False] * 2, [True] * 2, [False] * 2]
