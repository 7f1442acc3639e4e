"""The memory of a call on the CPU is that of its kernel."""

import pytest
import torch

import nsimplex

pytestmark = pytest.mark.cpu_kernel


def draw(length, dtype=torch.float32):
    return torch.randn(1, 2, length, 4, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_is_that_of_the_operator(dtype):
    query, key = draw(8, dtype), draw(9, dtype)
    ours = nsimplex.attention_workspace(query, [key], [key], causal=True, window=4)
    operator = torch.ops.nsimplex.attention_workspace(
        query, [key], [key], causal=True, window=[4, 0]
    )
    assert tuple(ours) == tuple(operator)
    assert min(ours) > 0


def test_layouts_have_the_same():
    query, key = draw(8), draw(9)
    swapped = [query.transpose(1, 2), [key.transpose(1, 2)], [key.transpose(1, 2)]]
    expected = nsimplex.attention_workspace(query, [key], [key])
    assert nsimplex.attention_workspace(*swapped, layout="bthd") == expected


def test_dropout_draws_no_seed():
    query = draw(8)
    torch.manual_seed(3)
    expected = torch.rand(())
    torch.manual_seed(3)
    nsimplex.attention_workspace(query, [query], [query], dropout_p=0.5)
    assert torch.rand(()) == expected


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="keys"):
        nsimplex.attention_workspace(draw(8), [], [])
