"""What does not fit is refused at the door, in one line that names it."""

import pytest
import torch

import nsimplex

Q = torch.randn(2, 8, 128, 64)
K = torch.randn(2, 2, 128, 64)
VALID = torch.ones(2, 128, dtype=torch.bool)
BOUNDS = torch.tensor([0, 40, 128])
SINK = torch.zeros(8)
LENGTHS = torch.tensor([[5, 6], [7, 8]])


def call(query=Q, keys=(K, K), values=(K, K), **options):
    return nsimplex.attention(query, keys, values, **options)


BAD = [
    # ranks, sizes, dtypes, devices
    (dict(query=Q[0]), ValueError, r"query: expected 4 dimensions .*, got shape \[8, 128, 64\]"),
    (dict(keys=(K, K[0])), ValueError, r"keys\[1\]: expected 4 dimensions"),
    (
        dict(keys=(K, K[..., :32])),
        ValueError,
        r"^\[attention\] keys\[1\]: expected head dim 64, got 32 \(shape \[2, 2, 128, 32\]\)$",
    ),
    (dict(keys=(K, K[:1])), ValueError, r"keys\[1\]: expected batch 2, got 1"),
    (dict(keys=(K, K[:, :1])), ValueError, r"keys\[1\]: expected heads 2, got 1"),
    (dict(values=(K[:, :1], K)), ValueError, r"values\[0\]: expected heads 2, got 1"),
    (
        dict(values=(K, K[:, :, :5])),
        ValueError,
        r"values\[1\]: expected length 128 of keys\[1\], got 5",
    ),
    (
        dict(values=(K, K[..., :3])),
        ValueError,
        r"values\[1\]: expected the value dim of values\[0\]",
    ),
    (dict(values=(K[..., :0], K[..., :0])), ValueError, r"values\[0\]: .*at least 1, got 0"),
    (dict(query=Q[:, :7]), ValueError, r"query: .*divisible by the 2 key heads, got 7"),
    (dict(keys=(K[:, :0], K[:, :0]), values=(K[:, :0], K[:, :0])), ValueError, r"0 key heads"),
    (
        dict(query=Q[..., :0], keys=(K[..., :0],) * 2),
        ValueError,
        r"query: expected head dim of at least 1",
    ),
    (dict(keys=(), values=()), ValueError, r"keys: expected 1 to 8 key tensors, got 0"),
    (dict(keys=(K,) * 9, values=(K,) * 9), ValueError, r"keys: expected 1 to 8 key tensors, got 9"),
    (dict(values=(K,)), ValueError, r"values: expected one for each of the 2 keys, got 1"),
    (
        dict(query=Q.long()),
        TypeError,
        r"query: expected float32, float64, bfloat16 or float16, got Long",
    ),
    (
        dict(keys=(K, K.double())),
        TypeError,
        r"keys\[1\]: expected the query's dtype Float, got Double",
    ),
    (
        dict(values=(K, K.to("meta"))),
        ValueError,
        r"values\[1\]: expected the query's device cpu, got meta",
    ),
    # windows
    (dict(window=0), ValueError, r"window\[0\]: left counts the query's own position.*got 0"),
    (dict(window=[4, (0, 3)]), ValueError, r"window\[1\]: left counts .*got 0"),
    (dict(window=[-2, 3]), ValueError, r"window\[0\]: left .*got -2"),
    (dict(window=[(4, -2), 3]), ValueError, r"window\[0\]: right is at least 0, or -1 .*got -2"),
    (dict(window=(4, 5, 6)), ValueError, r"window: expected one entry for each of 2 axes, got 3"),
    (
        dict(keys=(K,), values=(K,), window=(4, 5)),
        ValueError,
        r"one axis is window=\[\(left, right\)\]",
    ),
    (
        dict(window=[(1, 2, 3), 4]),
        TypeError,
        r"window\[0\]: expected an integer or \(integer, integer\), got tuple \(1, 2, 3\)",
    ),
    (dict(window=[1.5, 4]), TypeError, r"window\[0\]: expected an int"),
    (
        dict(window="all"),
        TypeError,
        r"window: expected an integer, a list of entries or None, got 'all'",
    ),
    (
        dict(window=True),
        TypeError,
        r"window: expected an integer, a list of entries or None, got True",
    ),
    # key lengths
    (
        dict(key_lengths=LENGTHS.short()),
        TypeError,
        r"key_lengths: expected int64 or int32, got Short",
    ),
    (
        dict(key_lengths=LENGTHS[:, :1]),
        ValueError,
        r"key_lengths: expected shape \[2\] or \[2, 2\]",
    ),
    (dict(key_lengths=torch.tensor(3)), ValueError, r"key_lengths: expected shape"),
    (
        dict(key_lengths=LENGTHS + 122),
        ValueError,
        r"axis 1, batch entry 0: expected 0 to 128, got 129",
    ),
    (
        dict(key_lengths=LENGTHS - 6),
        ValueError,
        r"axis 0, batch entry 0: expected 0 to 128, got -1",
    ),
    (
        dict(key_lengths=torch.tensor([3, 200])),
        ValueError,
        r"batch entry 1: expected 0 to 128, got 200",
    ),
    # names and scales
    (dict(reduce="max"), ValueError, r"reduce: expected one of product, sum, mean, got 'max'"),
    (dict(form="cubic"), ValueError, r"form: expected one of product, determinant, got 'cubic'"),
    (dict(normalizer="none"), ValueError, r"normalizer: expected one of softmax, .*got 'none'"),
    (dict(distinct="all"), ValueError, r"distinct: expected one of none, axes, with_query"),
    (dict(scale="big"), ValueError, r"scale: expected 'standard', 'unit', a number or a pair"),
    (dict(scale=(1, 2, 3)), TypeError, r"scale: expected 'standard' .*got tuple \(1, 2, 3\)"),
    (dict(scale=(1.0, "big")), TypeError, r"scale\[1\]: expected a number, got 'big'"),
    (dict(scale=None), TypeError, r"scale: expected 'standard' or 'unit', .*got None"),
    (dict(scale=float("nan")), ValueError, r"scale: expected a finite number, got nan"),
    (
        dict(scale=(1.0, float("inf"))),
        ValueError,
        r"scale: expected a finite number, got inf",
    ),
    # determinant
    (
        dict(form="determinant"),
        ValueError,
        r"query: form='determinant' expects a head dim divisible by N \+ 1 = 3, got 64",
    ),
    # key masks
    (dict(key_masks=[VALID]), ValueError, r"key_masks: expected one for each of the 2 keys, got 1"),
    (
        dict(key_masks=[VALID, VALID.float()]),
        TypeError,
        r"key_masks\[1\]: expected bool, got Float",
    ),
    (
        dict(key_masks=[VALID[:1], VALID]),
        ValueError,
        r"key_masks\[0\]: expected shape \[2, 128\], got \[1, 128\]",
    ),
    (
        dict(key_masks=[VALID, VALID.to("meta")]),
        ValueError,
        r"key_masks\[1\]: expected the query's device",
    ),
    # documents
    (dict(cu_seqlens=BOUNDS.short()), TypeError, r"cu_seqlens: expected int64 or int32, got Short"),
    (
        dict(cu_seqlens=BOUNDS[None]),
        ValueError,
        r"cu_seqlens: expected shape \[documents \+ 1\], got \[1, 3\]",
    ),
    (
        dict(cu_seqlens=BOUNDS[:0]),
        ValueError,
        r"cu_seqlens: expected shape \[documents \+ 1\], got \[0\]",
    ),
    (dict(cu_seqlens=BOUNDS[1:]), ValueError, r"cu_seqlens: expected to start at 0, got 40"),
    (
        dict(cu_seqlens=BOUNDS[:2]),
        ValueError,
        r"cu_seqlens: expected to end at the length 128, got 40",
    ),
    (
        dict(cu_seqlens=torch.tensor([0, 90, 70, 128])),
        ValueError,
        r"cu_seqlens: expected not to decrease, got 90 before 70 at 2",
    ),
    (
        dict(cu_seqlens=BOUNDS, keys=(K, K[:, :, :9]), values=(K, K[:, :, :9])),
        ValueError,
        r"cu_seqlens: .* the query has length 128 and keys\[1\] has 9",
    ),
    # masks
    (
        dict(mask=torch.ones(128, 128).long()),
        TypeError,
        r"mask: expected bool or a floating dtype, got Long",
    ),
    (
        dict(mask=torch.ones(128, 128, 127)),
        ValueError,
        r"mask: expected a shape that broadcasts to \[2, 8, 128, 128, 128\], got \[128, 128, 127\]",
    ),
    (
        dict(mask=torch.ones(1, 1, 1, 1, 1, 1)),
        ValueError,
        r"mask: expected a shape that broadcasts to",
    ),
    (
        dict(mask=torch.ones(128, device="meta")),
        ValueError,
        r"mask: expected the query's device cpu",
    ),
    # sinks
    (
        dict(sink=SINK),
        ValueError,
        r"sink: only normalizer='softmax_sink' takes one, got normalizer='softmax'",
    ),
    (
        dict(normalizer="softmax_sink"),
        ValueError,
        r"sink: .*'softmax_sink' expects shape \[8\], got none",
    ),
    (
        dict(normalizer="softmax_sink", sink=SINK.long()),
        TypeError,
        r"sink: expected a floating dtype",
    ),
    (
        dict(normalizer="softmax_sink", sink=SINK[:2]),
        ValueError,
        r"sink: expected shape \[8\], got \[2\]",
    ),
    # dropout
    (
        dict(dropout_p=1.0, seed=1),
        ValueError,
        r"dropout_p: expected at least 0 and less than 1, got 1",
    ),
    (
        dict(dropout_p=-0.1, seed=1),
        ValueError,
        r"dropout_p: expected at least 0 and less than 1, got -0.1",
    ),
    (dict(dropout_p=float("nan"), seed=1), ValueError, r"dropout_p: .* got nan"),
    # ALiBi
    (
        dict(alibi_slopes=torch.ones(2)),
        ValueError,
        r"alibi_slopes: expected shape \[8\], got \[2\]",
    ),
    (dict(alibi_slopes=torch.ones(8, dtype=torch.int64)), TypeError, r"alibi_slopes: .* Long"),
    (
        dict(alibi_slopes=torch.ones(8, requires_grad=True)),
        ValueError,
        r"alibi_slopes: expected slopes without a gradient",
    ),
    (
        dict(alibi_slopes=torch.ones(8), augment=[1]),
        ValueError,
        r"augment: expected none with alibi_slopes",
    ),
    # masks of pairs
    (
        dict(pair_masks=[torch.ones(6, 6)]),
        ValueError,
        r"pair_masks: expected one for each of the 2",
    ),
    (
        dict(pair_masks=[torch.ones(1, 1), torch.ones(128)]),
        ValueError,
        r"pair_masks\[1\]: expected 2 dimensions \[Tq, T\] or more, got shape \[128\]",
    ),
    (
        dict(pair_masks=[torch.ones(5, 6), torch.ones(1, 1)]),
        ValueError,
        r"pair_masks\[0\]: expected a shape that broadcasts to ",
    ),
    (
        dict(pair_masks=[torch.ones(1, 1), torch.ones(1, 1, dtype=torch.int64)]),
        TypeError,
        r"pair_masks\[1\]: expected bool or a floating dtype, got Long",
    ),
    (
        dict(pair_masks=[torch.ones(1, 1)] * 2, augment=[1]),
        ValueError,
        r"augment: expected none with pair_masks",
    ),
    # soft cap
    (dict(softcap=0.0), ValueError, r"softcap: expected a positive finite number, got 0"),
    (dict(softcap=-30.0), ValueError, r"softcap: expected a positive finite number, got -30"),
    (dict(softcap=float("inf")), ValueError, r"softcap: expected a positive .*, got inf"),
    (dict(softcap=float("nan")), ValueError, r"softcap: expected a positive .*, got nan"),
    # rows of ones
    (dict(augment=[2]), ValueError, r"augment: expected axes from 0 to 1, got 2"),
    (dict(augment=[-1]), ValueError, r"augment: expected axes from 0 to 1, got -1"),
    (dict(augment=[1, 1]), ValueError, r"augment: axis 1 is repeated"),
    (
        dict(augment=True, form="determinant", query=Q[..., :6], keys=(K[..., :6],) * 2),
        ValueError,
        r"augment: expected none with form,",
    ),
    (
        dict(augment=[1], mask=torch.zeros(1, 1, 1, 1, 1)),
        ValueError,
        r"augment: expected none with mask,",
    ),
]


@pytest.mark.parametrize("arguments, error, message", BAD)
def test_one_line_names_the_argument(arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        call(**arguments)
    text = str(caught.value)
    assert text.startswith("[attention] ") and "\n" not in text


def test_the_reference_has_the_same_door():
    with pytest.raises(ValueError, match=r"keys\[1\]: expected batch 2, got 1"):
        nsimplex.reference(Q, [K, K[:1]], [K, K])
    with pytest.raises(ValueError, match=r"key_lengths: axis 0, batch entry 1"):
        nsimplex.reference(Q, [K, K], [K, K], key_lengths=torch.tensor([3, 200]))


def test_meta_tensors_pass_the_same_door():
    meta = [t.to("meta") for t in (Q, K)]
    with pytest.raises(ValueError, match=r"window\[0\]: left"):
        nsimplex.attention(meta[0], [meta[1]], [meta[1]], window=0)
    assert nsimplex.attention(meta[0], [meta[1]], [meta[1]]).shape == Q.shape


def test_backward_operator_checks_what_it_gets():
    out, lse = nsimplex.attention(Q, [K], [K], return_lse=True)
    backward = torch.ops.nsimplex.attention_backward
    with pytest.raises(ValueError, match=r"\[attention_backward\] grad_out: expected shape"):
        backward(Q, [K], [K], out, lse, out[:1], None, [True] * 3 + [False] * 2)
    with pytest.raises(ValueError, match=r"\[attention_backward\] output_mask: expected 5 entries"):
        backward(Q, [K], [K], out, lse, out, None, [True] * 2)


def test_backward_operator_differentiates_only_what_the_call_has():
    out, lse = nsimplex.attention(Q, [K], [K], return_lse=True)
    backward = torch.ops.nsimplex.attention_backward
    for entry, name in ((3, "mask"), (4, "sink")):
        wanted = [i == entry for i in range(5)]
        with pytest.raises(
            ValueError, match=rf"output_mask\[{entry}\]: the call has no floating {name}"
        ):
            backward(Q, [K], [K], out, lse, out, None, wanted, mask=VALID[0])


def test_the_operator_draws_no_seed():
    with pytest.raises(
        ValueError, match=r"\[attention\] seed: expected an integer with dropout_p > 0"
    ):
        torch.ops.nsimplex.attention(Q, [K], [K], dropout_p=0.5)


def test_unknown_options_are_a_type_error():
    for function in (nsimplex.attention, nsimplex.reference):
        with pytest.raises((TypeError, RuntimeError), match="windows"):
            function(Q, [K], [K], windows=3)


def test_a_window_may_hold_integers_of_numpy():
    numpy = pytest.importorskip("numpy")

    def of_numpy(window):
        return numpy.int64(window) if isinstance(window, int) else [*map(of_numpy, window)]

    for window in (8, [8, 16], [(8, 0), (16, 2)]):
        assert torch.equal(call(window=of_numpy(window)), call(window=window))
