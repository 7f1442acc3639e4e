"""Positions of the queries among the keys: fixed slots and texts of different lengths."""

import pytest
import torch
from definition import definition
from problems import random_problem

import nsimplex

SIZES = dict(batch=3, heads=4, kv_heads=2, queries=5, dim=6, value_dim=3)
ROWS = torch.tensor([[0, 1, 2, 3, 4], [7, 7, 9, 12, 12], [-3, -1, 0, 6, 40]])
FIRST = torch.tensor([0, 11, -2])

CASES = {
    "one axis, causal": ([14], dict(causal=True, query_positions=ROWS)),
    "first positions": ([14, 9], dict(causal=True, query_positions=FIRST)),
    "windows": ([14, 9], dict(window=[(4, 0), (3, 2)], query_positions=ROWS)),
    "wide windows": ([14, 9], dict(window=[(100, 100), (2, 60)], query_positions=ROWS)),
    "order 3": ([6, 14, 9], dict(causal=True, window=[(9, -1)] * 3, query_positions=ROWS)),
    "own key left out": ([14, 9], dict(distinct="with_query", query_positions=ROWS)),
    "with lengths": (
        [14, 9],
        dict(causal=True, key_lengths=torch.tensor([[14, 6, 3], [2, 9, 0]]), query_positions=ROWS),
    ),
    "sigmoid": (
        [14, 9],
        dict(causal=True, normalizer="sigmoid", reduce="sum", query_positions=FIRST),
    ),
    "determinant": ([14, 9], dict(form="determinant", causal=True, query_positions=ROWS)),
    "positions alone": ([14, 9], dict(query_positions=ROWS)),
}


@pytest.mark.parametrize("function", [nsimplex.attention, nsimplex.reference])
@pytest.mark.parametrize("name", CASES)
def test_definition(name, function):
    lengths, options = CASES[name]
    problem = random_problem(len(lengths), **SIZES, lengths=lengths, **options).to(torch.float64)
    expected = problem.outcome(definition)
    for key, ours in problem.outcome(function).items():
        torch.testing.assert_close(ours, expected[key], msg=lambda text: f"{key}: {text}")


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_positions_at_the_end_change_nothing(order, dtype):
    """The alignment that a call has without them, to the bit, in both passes."""
    lengths = [300, 300][:order]
    problem = random_problem(order, batch=2, queries=200, lengths=lengths, dim=16).to(dtype)
    problem.options = dict(causal=True, window=[(70, 0), (16, 0)][:order])
    plain = problem.outcome()
    for positions in (torch.full((2,), 100), (100 + torch.arange(200)).expand(2, -1).int()):
        problem.options["query_positions"] = positions
        for name, ours in problem.outcome().items():
            assert torch.equal(ours, plain[name]), name


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_many_queries_of_ragged_rows(order, dtype):
    """Enough queries for several tasks and segments, with entries at very different places."""
    lengths = {1: [400], 2: [300, 200], 3: [50, 40, 30]}[order]
    queries = 130 if order < 3 else 40
    problem = random_problem(order, batch=3, queries=queries, lengths=lengths, dim=8).to(dtype)
    rises = torch.randint(0, 3, (3, queries), generator=torch.Generator().manual_seed(1)).cumsum(1)
    problem.options = dict(
        causal=True,
        window=[(40, 0), (9, 0), (5, 0)][:order],
        query_positions=rises + torch.tensor([[0], [lengths[-1] // 2], [lengths[-1] // 5]]),
    )
    expected = problem.to(torch.float64).outcome(nsimplex.reference)
    tolerance = 1e-10 if dtype == torch.float64 else 2e-4
    for name, ours in problem.outcome().items():
        torch.testing.assert_close(ours.double(), expected[name], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_decoding_a_ragged_batch_is_decoding_each_alone(order):
    """64 sequences in fixed slots: what lies behind a sequence's end is never read."""
    batch, slots, windows = 64, 48, [(-1, -1), (9, 0), (4, 0)][:order]
    problem = random_problem(order, batch=batch, queries=1, lengths=[slots] * order, dim=8)
    query, *rest = problem.inputs
    lengths = torch.randint(1, slots + 1, (batch,), generator=torch.Generator().manual_seed(2))
    behind = torch.arange(slots)[None, None, :, None] >= lengths[:, None, None, None]
    rest = [tensor.masked_fill(behind, torch.nan) for tensor in rest]
    options = dict(causal=True, window=windows, return_lse=True)
    ours = nsimplex.attention(
        query, rest[:order], rest[order:], query_positions=lengths - 1, **options
    )
    for b, length in enumerate(lengths):
        alone = [tensor[b : b + 1, :, :length] for tensor in rest]
        expected = nsimplex.attention(query[b : b + 1], alone[:order], alone[order:], **options)
        for got, wanted in zip(ours, expected):
            torch.testing.assert_close(got[b : b + 1], wanted)


def test_queries_before_all_keys_or_behind_their_window_see_nothing():
    problem = random_problem(2, batch=2, queries=2, lengths=[6, 6])
    problem.options = dict(
        causal=True, window=3, query_positions=torch.tensor([[-5, -1], [9, 2**53]])
    )
    out, lse = problem.run()
    assert not out.any() and lse.isneginf().all()


def test_flops_count_what_is_seen():
    query, key = torch.randn(2, 1, 1, 4), torch.randn(2, 1, 10, 4)
    with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        nsimplex.attention(query, [key], [key], query_positions=torch.tensor([1, 4]))
    assert counter.get_total_flops() == 2 * 8 * 2 * 10  # sizes alone: an upper bound


BAD = [
    (torch.zeros(3), TypeError, r"query_positions: expected int64 or int32, got Float"),
    (torch.zeros(2, 1).long(), ValueError, r"query_positions: expected shape \[2\] or \[2, 3\]"),
    (torch.zeros(3).long(), ValueError, r"query_positions: expected shape \[2\] or \[2, 3\], got"),
    # On a GPU values are not read back to be checked.
    pytest.param(
        torch.tensor([[0, 1, 2], [5, 4, 6]]),
        ValueError,
        r"query_positions: expected numbers that do not fall .*, got 5 before 4 in batch entry 1$",
        marks=pytest.mark.cpu_kernel,
    ),
    pytest.param(
        torch.tensor([0, 2**62]),
        ValueError,
        r"query_positions: expected -2\^53 to 2\^53, got 4611686018427387904 in batch entry 1$",
        marks=pytest.mark.cpu_kernel,
    ),
]


@pytest.mark.parametrize("positions, kind, message", BAD)
def test_wrong_positions_are_refused(positions, kind, message):
    query, key = torch.randn(2, 1, 3, 4), torch.randn(2, 1, 9, 4)
    with pytest.raises(kind, match=message) as error:
        nsimplex.attention(query, [key], [key], causal=True, query_positions=positions)
    assert "\n" not in str(error.value)


def test_documents_have_positions_of_their_own():
    query = torch.randn(1, 1, 4, 4)
    with pytest.raises(ValueError, match="expected query_positions or cu_seqlens"):
        nsimplex.attention(
            query,
            [query],
            [query],
            cu_seqlens=torch.tensor([0, 4]),
            query_positions=torch.tensor([0]),
        )
