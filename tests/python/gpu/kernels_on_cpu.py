"""A plugin of pytest: CPU tensors run the kernels of nsimplex.gpu in Triton's interpreter.

TRITON_INTERPRET=1 is in the environment, and tests/python/gpu and the package on the path:

    TRITON_INTERPRET=1 NSIMPLEX_INTERPRETED_TUPLES=2000 \
        python -m pytest -p kernels_on_cpu tests/python/attention

The interpreter takes about a millisecond per tile. Calls with more than NSIMPLEX_INTERPRETED_TUPLES
admissible tuples, heads and batch counted, take the composite; without the variable there is no
limit. The last line of pytest's report says how many calls the kernels computed.
"""

import collections
import math
import os

import interpreter

calls = collections.Counter()


def pytest_configure(config) -> None:
    reason = interpreter.missing()
    if reason:
        raise RuntimeError(reason)
    put_under_cpu()
    limit = os.environ.get("NSIMPLEX_INTERPRETED_TUPLES")
    take_small_calls(math.inf if limit is None else int(limit))


def pytest_terminal_summary(terminalreporter) -> None:
    terminalreporter.write_line(
        f"Kernels of GPUs computed {calls[True]} of {calls.total()} calls on the CPU."
    )


def put_under_cpu() -> None:
    """Registers the kernels for CPU tensors, once a process."""
    interpreter.install()
    from nsimplex.gpu import register

    register("CPU", allow_override=True)


def take_small_calls(limit: float) -> None:
    """Keeps calls with more tuples than ``limit`` from the kernels, and counts all."""
    from nsimplex.gpu import registration

    refusal = registration._refusal

    def refusal_of_large_calls(query, keys, values, options):
        reason = refusal(query, keys, values, options)
        if reason is None and tuples(query, keys, options) > limit:
            reason = "is interpreted, and the call is large"
        calls[reason is None] += 1
        return reason

    registration._refusal = refusal_of_large_calls


def tuples(query, keys, options) -> int:
    """At most so many tuples has the call, over batch entries and heads."""
    window = options.get("window") or []
    sides = [window[2 * m : 2 * m + 2] for m in range(len(keys))]
    widths = [
        key.shape[2] if min(side, default=-1) < 0 else min(key.shape[2], sum(side) + 1)
        for key, side in zip(keys, sides, strict=True)
    ]
    return math.prod(query.shape[:3]) * math.prod(widths)
