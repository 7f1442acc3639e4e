"""Fixture of the tests of derivatives."""

import pytest
import torch


@pytest.fixture
def double():
    """Computes in float64 and draws from seed 1."""
    torch.manual_seed(1)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)
