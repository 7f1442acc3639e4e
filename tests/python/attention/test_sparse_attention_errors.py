"""Lists that do not fit are refused at the door, in one line, by every implementation."""

import contextlib
import threading

import pytest
import torch

import nsimplex

Q = torch.randn(2, 4, 3, 6)
K = [torch.randn(2, 2, 5, 6), torch.randn(2, 2, 7, 6)]
V = [torch.randn(2, 2, 5, 4), torch.randn(2, 2, 7, 4)]
SAME = [torch.randn(2, 2, 5, 6)] * 2
TUPLES = torch.tensor([[0, 0], [4, 6], [1, 2], [3, 3]])
OFFSETS = torch.tensor([[[0, 2, 2, 4]]])
SETS = torch.tensor([[[[0, 4], [2, -1], [-1, -1]]]])
CHAIN = torch.tensor([[[[0, 4], [2, -1], [-1, -1], [1, 3], [0, 0]]]])


def changed(tensor, place, value):
    tensor = tensor.clone()
    tensor[place] = value
    return tensor


def listed(indices=TUPLES, offsets=OFFSETS, **options):
    return (Q, K, V, indices, offsets), options


def product(indices=SETS, **options):
    return (Q, K, V, indices), {"pattern": "product", **options}


def path(indices=CHAIN, query=Q, keys=SAME, **options):
    return (query, keys, keys, indices), {"pattern": "path", **options}


def mlp(*shapes, reduce="mlp", dtype=torch.float32):
    return product(
        reduce=reduce, reducer_weights=[torch.zeros(shape, dtype=dtype) for shape in shapes]
    )


MLP = [(2, 8, 8), (2, 8), (2, 4, 8), (2, 4)]

BAD = [
    # values
    (
        listed(offsets=torch.tensor([[[0, 3, 2, 4]]])),
        ValueError,
        r"^\[sparse_attention\] offsets\[0, 0, 2\]: expected at least the 3 before it, got 2$",
    ),
    (
        listed(offsets=torch.tensor([[[-1, 2, 2, 4]]])),
        ValueError,
        r"offsets\[0, 0, 0\]: expected at least 0, got -1",
    ),
    (
        listed(offsets=torch.tensor([[[0, 2, 2, 5]]])),
        ValueError,
        r"offsets\[0, 0, 3\]: expected at most the 4 tuples of indices, got 5",
    ),
    (
        listed(offsets=torch.tensor([[[2**62, 2**62, 2**62, 2**62]]])),
        ValueError,
        r"offsets\[0, 0, 3\]: .*at most",
    ),
    (
        listed(changed(TUPLES, (1, 0), 5)),
        ValueError,
        r"indices\[1, 0\]: expected 0 to 4, a key, got 5",
    ),
    (
        listed(changed(TUPLES, (3, 1), 7)),
        ValueError,
        r"indices\[3, 1\]: expected 0 to 6, a key, got 7",
    ),
    (
        listed(changed(TUPLES, (2, 1), -1)),
        ValueError,
        r"indices\[2, 1\]: expected 0 to 6, a key, got -1",
    ),
    (
        listed(changed(TUPLES, (2, 1), -(2**62))),
        ValueError,
        r"indices\[2, 1\]: .* got -4611686018427387904",
    ),
    (
        listed(changed(TUPLES.int(), (2, 0), 2**31 - 1)),
        ValueError,
        r"indices\[2, 0\]: .* got 2147483647",
    ),
    (
        product(changed(SETS, (0, 0, 1, 0), 5)),
        ValueError,
        r"indices\[0, 0, 1, 0\]: expected -1 to 4, a key or -1 for none, got 5",
    ),
    (
        product(changed(SETS, (0, 0, 0, 1), -2)),
        ValueError,
        r"indices\[0, 0, 0, 1\]: expected -1 to 4.*got -2",
    ),
    (
        product(changed(SETS, (0, 0, 2, 1), 1)),
        ValueError,
        r"indices\[0, 0, 2, 1\]: expected no key behind a -1 of the same set, got 1",
    ),
    (path(changed(CHAIN, (0, 0, 4, 1), 5)), ValueError, r"indices\[0, 0, 4, 1\]: .* got 5"),
    # ranks and sizes
    (listed(TUPLES[:, :1]), ValueError, r"indices: expected shape \[tuples, 2\], .*got \[4, 1\]"),
    (listed(TUPLES[0]), ValueError, r"indices: expected shape \[tuples, 2\], .*got \[2\]"),
    (
        listed(offsets=None),
        ValueError,
        r"offsets: expected \[1 or B, G, Tq \+ 1\] with pattern 'list', got none",
    ),
    (
        listed(offsets=OFFSETS[0]),
        ValueError,
        r"offsets: expected shape \[1 or B, G, 4\] for 3 queries, got \[1, 4\]",
    ),
    (listed(offsets=OFFSETS[..., :3]), ValueError, r"offsets: expected shape .* got \[1, 1, 3\]"),
    (
        listed(offsets=OFFSETS.expand(3, 1, 4)),
        ValueError,
        r"offsets: expected 1 or 2 batch entries, got shape \[3",
    ),
    (
        listed(offsets=OFFSETS.expand(1, 3, 4)),
        ValueError,
        r"offsets: .*divides the 2 key heads, got 3",
    ),
    (listed(offsets=OFFSETS[:, :0]), ValueError, r"offsets: .*divides the 2 key heads, got 0"),
    (
        product(SETS[0, 0]),
        ValueError,
        r"indices: expected 4 dimensions .*'product', got shape \[3, 2\]",
    ),
    (
        product(SETS[:, :, :2]),
        ValueError,
        r"indices: expected 3 rows, one per query, got shape \[1, 1, 2, 2\]",
    ),
    (product(SETS.expand(1, 4, 3, 2)), ValueError, r"indices: .*divides the 2 key heads, got 4"),
    (
        ((Q, K, V, SETS, OFFSETS), {"pattern": "product"}),
        ValueError,
        r"offsets: expected none with pattern 'product'",
    ),
    (
        path(CHAIN[:, :, :4]),
        ValueError,
        r"indices: expected 5 rows with pattern 'path', one per key of keys\[0\]",
    ),
    (path(keys=[SAME[0], torch.randn(2, 2, 7, 6)]), ValueError, r"one per key of keys\[1\]"),
    (
        path(query=torch.randn(2, 4, 6, 6)),
        ValueError,
        r"query: expected at most the 5 positions .* got 6 queries",
    ),
    # dtypes, devices, names
    (listed(TUPLES.float()), TypeError, r"indices: expected int32 or int64, got Float"),
    (listed(TUPLES.bool()), TypeError, r"indices: expected int32 or int64, got Bool"),
    (listed(offsets=OFFSETS.int()), TypeError, r"offsets: expected int64, got Int"),
    (listed(TUPLES.to("meta")), ValueError, r"indices: expected the query's device cpu, got meta"),
    (
        listed(offsets=OFFSETS.to("meta")),
        ValueError,
        r"offsets: expected the query's device cpu, got meta",
    ),
    (
        listed(pattern="graph"),
        ValueError,
        r"pattern: expected one of list, product, path, got 'graph'",
    ),
    (
        listed(reduce="max"),
        ValueError,
        r"reduce: expected one of product, sum, mean, mlp, mlp_symmetric",
    ),
    (listed(form="determinants"), ValueError, r"form: expected one of product, determinant, got"),
    (
        ((Q[..., :4], [k[..., :4] for k in K], V, TUPLES, OFFSETS), {"form": "determinant"}),
        ValueError,
        r"form: the determinant of order 2 needs a head dim divisible by 3, got 4",
    ),
    (
        ((Q, K, V[:1], TUPLES, OFFSETS), {}),
        ValueError,
        r"^\[sparse_attention\] values: expected one for each",
    ),
    (
        ((Q.double(), K, V, TUPLES, OFFSETS), {}),
        TypeError,
        r"^\[sparse_attention\] keys\[0\]: expected the query's dtype",
    ),
    # learned reducers
    (mlp(), ValueError, r"reducer_weights: expected 4 tensors with reduce 'mlp', got 0"),
    (
        mlp(*MLP, reduce="sum"),
        ValueError,
        r"reducer_weights: expected 0 tensors with reduce 'sum', got 4",
    ),
    (mlp(*MLP, reduce="mlp_symmetric"), ValueError, r"reducer_weights: expected 6 tensors"),
    (
        mlp((2, 8, 4), *MLP[1:]),
        ValueError,
        r"reducer_weights\[0\]: expected shape \[2, 8, 8\], got \[2, 8, 4\]",
    ),
    (
        mlp(*MLP, dtype=torch.float64),
        TypeError,
        r"reducer_weights\[0\]: expected the query's dtype Float",
    ),
    (
        product(reduce="mlp", scale="unit"),
        ValueError,
        r"scale: 'unit' is not defined with reduce 'mlp'",
    ),
]


@pytest.mark.parametrize("function", [nsimplex.sparse_attention, nsimplex.sparse_reference])
@pytest.mark.parametrize("case", BAD, ids=lambda case: case[2][:60])
def test_bad_lists_are_refused_in_one_line(function, case):
    (given, options), error, words = case
    with pytest.raises(error, match=words) as raised:
        function(*given, **options)
    assert "\n" not in str(raised.value).split("\nException raised from")[0]


@pytest.mark.parametrize("bad", [changed(TUPLES, (1, 0), 5), changed(TUPLES, (0, 1), -3)])
def test_the_backward_operator_checks_lists_too(bad):
    out = nsimplex.sparse_attention(Q, K, V, TUPLES, OFFSETS)
    lse = out[..., 0].contiguous()
    with pytest.raises(ValueError, match="indices"):
        torch.ops.nsimplex.sparse_attention_backward(
            Q, K, V, bad, OFFSETS, out, lse, out, None, [True] * 5
        )


def test_the_backward_operator_checks_what_it_gets():
    out = nsimplex.sparse_attention(Q, K, V, TUPLES, OFFSETS)
    lse = out[..., 0].contiguous()
    backward = torch.ops.nsimplex.sparse_attention_backward
    for given, words in (
        ((out[..., :2], lse, out, None, [True] * 5), "out: expected shape"),
        ((out, lse[:1], out, None, [True] * 5), "lse: expected shape"),
        ((out, lse, out[:, :2], None, [True] * 5), "grad_out: expected shape"),
        ((out, lse, out, lse[:1], [True] * 5), "grad_lse: expected shape"),
        ((out, lse, out, None, [True] * 4), "output_mask: expected 5 entries"),
    ):
        with pytest.raises(ValueError, match=words):
            backward(Q, K, V, TUPLES, OFFSETS, *given)


def test_a_list_that_changes_during_the_call_leads_nowhere():
    """Another thread writes indices far outside while the kernel runs: an error or a result, never
    a wild read."""
    sets = torch.randint(0, 64, (1, 1, 256, 16)).sort().values
    key, query = torch.randn(1, 1, 64, 8), torch.randn(1, 1, 256, 8)
    numbers, stop = sets.numpy(), threading.Event()

    def spoil():
        own = numbers.copy()
        while not stop.is_set():
            numbers[...] = 2**40
            numbers[...] = own

    thread = threading.Thread(target=spoil)
    thread.start()
    try:
        for _ in range(300):
            with contextlib.suppress(ValueError):
                nsimplex.sparse_attention(query, [key, key], [key, key], sets, pattern="product")
    finally:
        stop.set()
        thread.join()
