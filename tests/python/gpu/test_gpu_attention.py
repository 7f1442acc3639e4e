"""The kernels of dense attention in Triton's interpreter, on hostile shapes in every precision."""

from __future__ import annotations

import pytest
import torch
from gpu_cases import CASES, QUICK_CASES, SHORT, draw
from kernel_calls import PRECISIONS, chosen, options_of, outcome
from oracle import errors, exact

pytestmark = pytest.mark.interpreted

GRID = [("fp32", name) for name in CASES] + [
    (precision, name) for precision in ("tf32x3", "bf16", "fp16") for name in SHORT
]
#: One case of each kind; the others take minutes.
QUICK = {("fp32", name) for name in QUICK_CASES} | {("tf32x3", SHORT[0]), ("bf16", SHORT[0])}


def parameters():
    for precision, name in GRID:
        marks = () if (precision, name) in QUICK else pytest.mark.slow
        yield pytest.param(precision, name, id=f"{precision}-{name}", marks=marks)


@pytest.mark.parametrize("precision, name", list(parameters()))
def test_results_and_gradients(precision, name, bench):
    """Right, inside the tensors, without races, and the same bits when programs run in another
    order."""
    dtype, products, limit = PRECISIONS[precision]
    case = CASES[name]
    given = draw(case, dtype)
    kernels, formula = options_of(case)
    with chosen(case.tiles, products, case.split):
        found = outcome(given, kernels)
        bench.settings.order = 7
        again = outcome(given, kernels)
    expected = exact(given, **formula)
    differences = errors(found, expected)
    if case.factor > 1:
        # Hard maxima: gradients of scores are differences of nearly equal numbers. Products in
        # another order change a logit x by a few |x| 2^-24, and a weight by as much.
        limit = max(20 * limit, float(expected["lse"].abs().max()) * 2.0**-22)
    assert max(differences.values()) < limit, differences
    other = [name for name in found if not torch.equal(found[name], again[name])]
    assert not other, f"{other} depend on the order of programs"
