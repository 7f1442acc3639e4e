"""How many tuples a call has, from its sizes alone: pieces of polynomials instead of a loop over
queries."""

import itertools

import pytest
import torch

import nsimplex

count = torch.ops.nsimplex.attention_tuples


def visible(i, queries, length, causal, left, right):
    position = i + length - queries
    begin = max(0, position - left + 1) if left >= 0 else 0
    end = min(length, position + right + 1) if right >= 0 else length
    return max(0, min(end, position + 1 if causal else end) - begin)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("causal", [False, True])
def test_counts_what_each_query_sees(order, causal):
    windows = [(-1, -1), (1, -1), (3, 0), (4, 2), (-1, 3), (50, 50)]
    for queries, lengths in (
        (7, [7, 11, 4]),
        (13, [5, 13, 20]),
        (1, [9, 2, 1]),
        (0, [3, 3, 3]),
        (6, [0, 6, 6]),
    ):
        for offset in range(len(windows)):
            own = [windows[(offset + m) % len(windows)] for m in range(order)]
            expected = 0
            for i in range(queries):
                product = 1
                for length, (left, right) in zip(lengths, own):
                    product *= visible(i, queries, length, causal, left, right)
                expected += product
            flat = list(itertools.chain(*own))
            assert count(queries, lengths[:order], causal=causal, window=flat) == expected, (
                queries,
                lengths,
                own,
            )


def test_any_number_of_queries_takes_no_time():
    assert count(2**40, [4]) == 4 * 2.0**40
    assert count(2**40, [2**40], causal=True) == pytest.approx(2.0**79)
    assert count(2**40, [2**40] * 2, causal=True, window=[16, -1, 512, -1]) == pytest.approx(
        2.0**40 * 16 * 512
    )


@pytest.mark.parametrize(
    "call, words",
    [((2**62, [4]), "queries: expected 0 to 2\\^53"), ((4, [2**62]), "lengths: expected")],
)
def test_sizes_have_limits(call, words):
    with pytest.raises(ValueError, match=words):
        count(*call)


def expanded(length, width=8):
    return torch.randn(1, 1, 1, width).expand(1, 1, length, width)


@pytest.mark.cpu_kernel
@pytest.mark.parametrize("length", [2**41, 2**57, 2**59])
def test_an_axis_longer_than_any_memory_is_refused(length):
    """An expanded view has any length for nothing; the kernel's workspace does not."""
    query, key = torch.randn(1, 1, 1, 8), expanded(length)
    sets = torch.zeros(1, 1, 1, 1, dtype=torch.long)
    for call in (
        lambda: nsimplex.attention(query, [key], [key], causal=True, window=[1]),
        lambda: nsimplex.attention(query, [query, key], [query, key], window=[1, 1]),
        lambda: nsimplex.sparse_attention(query, [key], [key], sets, pattern="product"),
        lambda: nsimplex.topk_keys(query, key, 1, key_lengths=torch.tensor([1])),
        lambda: nsimplex.separable_attention(query, [key], [key], causal=True, features=None),
    ):
        with pytest.raises(ValueError, match="expected tensors of at most 2\\^40 numbers"):
            call()


@pytest.mark.cpu_kernel
@pytest.mark.parametrize("length", [2**41, 2**57])
def test_the_reference_refuses_such_an_axis_too(length):
    query, long = torch.randn(1, 1, 1, 8), expanded(length)
    short, double = (
        query.double(),
        torch.randn(1, 1, 1, 8, dtype=torch.float64).expand(1, 1, length, 8),
    )
    for call in (
        lambda: nsimplex.reference(long, [query], [query], window=[1]),
        lambda: nsimplex.reference(query, [long], [long], causal=True, window=[1]),
        lambda: nsimplex.attention(double, [short], [short], window=[1]),
    ):
        with pytest.raises(ValueError, match="expected tensors of at most 2\\^40 numbers"):
            call()


def test_numbers_of_queries_have_limits():
    for queries in (2**53 + 1, 2**62, -1):
        with pytest.raises(ValueError, match=r"queries: expected 0 to 2\^53"):
            count(queries, [4])
