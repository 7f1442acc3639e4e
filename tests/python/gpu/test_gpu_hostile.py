"""Hostile calls of the operator with the kernels under the CPU's key. They take minutes."""

from __future__ import annotations

import pytest
from test_hostile import (  # noqa: F401
    test_equal_maxima,
    test_expanded_inputs_and_gradients,
    test_logits_of_ten_thousand,
    test_nan_padding_never_shows,
    test_nan_stays_within_its_batch_entry_and_head,
    test_odd_channel_counts,
    test_one_tensor_may_be_everything,
    test_queries_without_a_tuple,
    test_windows_wider_than_the_sequence,
)

pytestmark = [pytest.mark.interpreted, pytest.mark.slow]


@pytest.fixture(autouse=True)
def on_cpu(bench):
    from kernels_on_cpu import put_under_cpu

    put_under_cpu()
    return bench
