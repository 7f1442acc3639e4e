"""What does not fit is refused at the door, in one line that names it."""

import pytest
import torch

import nsimplex

Q = torch.randn(2, 8, 128, 64)
K = torch.randn(2, 2, 128, 64)
LENGTHS = torch.tensor([[5, 6], [7, 8]])


def call(query=Q, keys=(K, K), values=(K, K), **options):
    return nsimplex.attention(query, keys, values, **options)


BAD = [
    # ranks, sizes, dtypes, devices
    (dict(query=Q[0]), ValueError, r"query: expected 4 dimensions .*, got shape \[8, 128, 64\]"),
    (dict(keys=(K, K[0])), ValueError, r"keys\[1\]: expected 4 dimensions"),
    (dict(keys=(K, K[..., :32])), ValueError,
     r"^\[attention\] keys\[1\]: expected head dim 64, got 32 \(shape \[2, 2, 128, 32\]\)$"),
    (dict(keys=(K, K[:1])), ValueError, r"keys\[1\]: expected batch 2, got 1"),
    (dict(keys=(K, K[:, :1])), ValueError, r"keys\[1\]: expected heads 2, got 1"),
    (dict(values=(K[:, :1], K)), ValueError, r"values\[0\]: expected heads 2, got 1"),
    (dict(values=(K, K[:, :, :5])), ValueError, r"values\[1\]: expected length 128 of keys\[1\], got 5"),
    (dict(values=(K, K[..., :3])), ValueError, r"values\[1\]: expected the value dim of values\[0\]"),
    (dict(values=(K[..., :0], K[..., :0])), ValueError, r"values\[0\]: .*at least 1, got 0"),
    (dict(query=Q[:, :7]), ValueError, r"query: .*divisible by the 2 key heads, got 7"),
    (dict(keys=(K[:, :0], K[:, :0]), values=(K[:, :0], K[:, :0])), ValueError, r"0 key heads"),
    (dict(query=Q[..., :0], keys=(K[..., :0],) * 2), ValueError, r"query: expected head dim of at least 1"),
    (dict(keys=(), values=()), ValueError, r"keys: expected 1 to 8 key tensors, got 0"),
    (dict(keys=(K,) * 9, values=(K,) * 9), ValueError, r"keys: expected 1 to 8 key tensors, got 9"),
    (dict(values=(K,)), ValueError, r"values: expected one for each of the 2 keys, got 1"),
    (dict(query=Q.long()), TypeError, r"query: expected float32, float64, bfloat16 or float16, got Long"),
    (dict(keys=(K, K.double())), TypeError, r"keys\[1\]: expected the query's dtype Float, got Double"),
    (dict(values=(K, K.to("meta"))), ValueError, r"values\[1\]: expected the query's device cpu, got meta"),
    # windows
    (dict(window=0), ValueError, r"window\[0\]: left counts the query's own position.*got 0"),
    (dict(window=[4, (0, 3)]), ValueError, r"window\[1\]: left counts .*got 0"),
    (dict(window=[-2, 3]), ValueError, r"window\[0\]: left .*got -2"),
    (dict(window=[(4, -2), 3]), ValueError, r"window\[0\]: right is at least 0, or -1 .*got -2"),
    (dict(window=(4, 5, 6)), ValueError, r"window: expected one entry for each of 2 axes, got 3"),
    (dict(keys=(K,), values=(K,), window=(4, 5)), ValueError, r"one axis is window=\[\(left, right\)\]"),
    (dict(window=[(1, 2, 3), 4]), TypeError, r"window\[0\]: expected an int or a \(left, right\) pair"),
    (dict(window=[1.5, 4]), TypeError, r"window\[0\]: expected an int"),
    (dict(window="all"), TypeError, r"window: expected None, an int or a sequence, got 'all'"),
    (dict(window=True), TypeError, r"window: expected None, an int or a sequence, got True"),
    # key lengths
    (dict(key_lengths=LENGTHS.int()), TypeError, r"key_lengths: expected int64, got Int"),
    (dict(key_lengths=LENGTHS[:, :1]), ValueError, r"key_lengths: expected shape \[2\] or \[2, 2\]"),
    (dict(key_lengths=torch.tensor(3)), ValueError, r"key_lengths: expected shape"),
    (dict(key_lengths=LENGTHS + 122), ValueError, r"axis 1, batch entry 0: expected 0 to 128, got 129"),
    (dict(key_lengths=LENGTHS - 6), ValueError, r"axis 0, batch entry 0: expected 0 to 128, got -1"),
    (dict(key_lengths=torch.tensor([3, 200])), ValueError, r"batch entry 1: expected 0 to 128, got 200"),
    # names and scales
    (dict(reduce="max"), ValueError, r"reduce: expected one of product, sum, mean, got 'max'"),
    (dict(form="cubic"), ValueError, r"form: expected one of product, determinant, got 'cubic'"),
    (dict(normalizer="none"), ValueError, r"normalizer: expected one of softmax, .*got 'none'"),
    (dict(distinct="all"), ValueError, r"distinct: expected one of none, axes, with_query"),
    (dict(scale="big"), ValueError, r"scale: expected 'standard', 'unit', a number or a pair"),
    (dict(scale=(1, 2, 3)), ValueError, r"scale: expected \(s1, s2\), got 3 numbers"),
    (dict(scale=float("nan")), ValueError, r"logit_scale: expected a finite number, got nan"),
    (dict(scale=(1.0, float("inf"))), ValueError, r"output_scale: expected a finite number, got inf"),
    # reserved
    (dict(form="determinant"), NotImplementedError, r"form='determinant': not supported"),
    (dict(normalizer="relu"), NotImplementedError, r"normalizer but 'softmax': not supported"),
    (dict(distinct="axes"), NotImplementedError, r"distinct: not supported"),
    (dict(mask=Q), NotImplementedError, r"mask: not supported"),
    (dict(sink=Q), NotImplementedError, r"sink: not supported"),
    (dict(key_masks=[K, K]), NotImplementedError, r"key_masks: not supported"),
    (dict(cu_seqlens=LENGTHS), NotImplementedError, r"cu_seqlens: not supported"),
    (dict(augment=[1]), NotImplementedError, r"augment: not supported"),
    (dict(dropout_p=0.1), NotImplementedError, r"dropout_p: not supported"),
    (dict(seed=1), NotImplementedError, r"seed: not supported"),
]  # fmt: skip


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


def test_unknown_options_are_a_type_error():
    with pytest.raises(TypeError, match="windows"):
        call(windows=3)
