"""Faults that are put into the kernels on purpose are found by the checks of the interpreter."""

from __future__ import annotations

import pytest
import torch
from gpu_cases import draw
from kernel_calls import PRECISIONS, chosen, options_of, outcome
from mutations import MUTATIONS, Mutation, mutated
from oracle import errors, exact

pytestmark = pytest.mark.interpreted

#: One fault of each kind; the others take longer together.
QUICK = [
    "keys beyond the end are loaded",
    "two segments share a part",
    "a sum has no order",
    "a product is rounded to bfloat16",
]


def found(mutation: Mutation, bench) -> str | None:
    """What the checks of test_gpu_attention say of the mutation's call, or None."""
    from triton.runtime.errors import InterpreterError

    dtype, products, limit = PRECISIONS["fp32"]
    case = mutation.case
    given = draw(case, dtype)
    kernels, formula = options_of(case)
    if mutation.key_masks:
        generator = torch.Generator().manual_seed(1)
        masks = [torch.rand(case.batch, n, generator=generator) < 0.6 for n in case.lengths]
        kernels["key_masks"] = formula["key_masks"] = masks
    bench.settings.order = 7
    try:
        with chosen(case.tiles, products, case.split):
            results = outcome(given, kernels)
    except (IndexError, RuntimeError, TypeError, InterpreterError) as error:
        return str(error)
    differences = errors(results, exact(given, **formula))
    wrong = {name: value for name, value in differences.items() if not value < limit}
    return f"wrong: {wrong}" if wrong else None


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in MUTATIONS]
)
def test_is_found(name, bench):
    """The call is right without the fault, and wrong with it."""
    mutation = MUTATIONS[name]
    assert found(mutation, bench) is None
    with mutated(mutation):
        said = found(mutation, bench)
    assert said is not None
    print(said)


def test_the_code_is_as_before(bench):
    from nsimplex.gpu import attention_forward, tuple_terms

    before = attention_forward.kernels.begin_of, attention_forward.forward
    with mutated(next(iter(MUTATIONS.values()))):
        assert attention_forward.kernels.begin_of is tuple_terms.begin_of is not before[0]
    assert (attention_forward.kernels.begin_of, attention_forward.forward) == before
