"""What kernels take of a call's options."""

import pytest
import torch
from torch import Tensor, tensor

call_options = pytest.importorskip("nsimplex.gpu.call_options", reason="needs Triton")
axes = pytest.importorskip("nsimplex.gpu.axes", reason="needs Triton")


def mask_of(mask: Tensor) -> Tensor:
    heads = torch.zeros(1, 1, 1, 2)
    keys = [torch.zeros(1, 1, mask.shape[-1], 2)]
    known = axes.axes_of(1, 1, [mask.shape[-1]], causal=False, window=None)
    return call_options.mask_argument(mask, heads, keys, known)[1].flatten()


def test_only_infinity_excludes_a_tuple():
    """The smallest float64 is a finite number, and fp32 has none of its size."""
    lowest = torch.finfo(torch.float64).min
    mask = mask_of(tensor([[[[lowest, -torch.inf, 0.5, -lowest]]]], dtype=torch.float64))
    largest = torch.finfo(torch.float32).max
    assert mask.tolist() == [-largest, -torch.inf, 0.5, largest]


@pytest.mark.parametrize("name", ["keys[1]", "values[0]", "key_masks[0]", "mask", "sink"])
def test_a_tensor_on_another_device_is_refused_before_a_kernel_reads_it(name):
    """The dispatcher takes the GPU's kernel if one of the tensors lies there."""
    registration = pytest.importorskip("nsimplex.gpu.registration")
    head = torch.zeros(1, 1, 3, 4, device="meta")
    given = {
        "keys": [head, head],
        "values": [head, head],
        "key_masks": [torch.ones(1, 3, dtype=torch.bool, device="meta")] * 2,
        "mask": torch.zeros(1, 1, 3, 3, 3, device="meta"),
        "sink": torch.zeros(1, device="meta"),
    }
    options = {"normalizer": "softmax_sink"}

    def check():
        lists = {key: value for key, value in given.items() if key not in ("keys", "values")}
        operator = torch.ops.nsimplex.attention.default
        registration._check_arguments(
            operator, head, given["keys"], given["values"], options | lists
        )

    check()
    key, _, place = name.partition("[")
    if place:
        m = int(place[0])
        given[key] = [*given[key]]
        given[key][m] = torch.ones(given[key][m].shape, dtype=given[key][m].dtype)
    else:
        given[key] = torch.zeros(given[key].shape)
    with pytest.raises(ValueError) as refused:
        check()
    assert str(refused.value) == f"[attention] {name}: expected the query's device meta, got cpu"


@pytest.mark.parametrize(
    "heads, kv_heads, length, window, queries",
    [
        (32, 4, 8192, [32, 0, 512, 0], 8),
        (32, 8, 8192, [32, 0, 512, 0], 16),
        (128, 1, 8192, [32, 0, 512, 0], 1),
        (8, 8, 8192, [32, 0, 512, 0], None),  # the union of 64 windows is three times as long
        (8, 8, 1024, None, None),  # too few blocks for the multiprocessors
        (32, 4, 1, None, None),  # one query does not fill the rows
        (32, 4, 8192, [8, 0, 8, 0, 64, 0], None),  # products of leading keys are rounded once more
    ],
)
def test_blocks_of_queries_share_tuples_where_it_pays(heads, kv_heads, length, window, queries):
    from nsimplex.gpu import attention_heads, call_options, gpu_tiles
    from nsimplex.gpu.axes import axes_of

    order = len(window) // 2 if window else 2
    make = lambda h: torch.empty(1, h, length, 128, dtype=torch.bfloat16, device="meta")
    query, keys = make(heads), [make(kv_heads)] * order
    axes = axes_of(1, length, [length] * order, causal=True, window=window)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_tiles, "architecture", lambda device: "sm_90")
        taken = attention_heads.applies(query, keys, keys, call_options.Options(), axes)
        assert taken == (queries is not None)
        if taken:
            assert attention_heads.blocks(query, keys, keys, axes).queries == queries
