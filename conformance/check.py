"""Holds an implementation against the conformance files.

    python conformance/check.py mypackage.attention:forward
    python conformance/check.py --torch conformance/nsimplex_adapter.py:call --dtype float32
    python conformance/check.py --torch adapter.py:call --cases DIR --only order2

The callable is MODULE:NAME or FILE.py:NAME and is called as

    call(query, keys, values, options, tensors) -> (out, lse)     or out alone, lse is then not
    checked

with NumPy arrays (--torch: tensors, whose gradients are then checked too), `options` as in
cases.json and `tensors` holding key_lengths, cu_seqlens, key_mask.M, mask or sink where a case has
them. It may raise
NotImplementedError: such a case is counted as not supported. README.md describes the files. Needs
    NumPy alone.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import safetensors_file

HERE = Path(__file__).resolve().parent
#: Largest relative error in the 2-norm: (out and lse, gradients).
TOLERANCE = {
    "float64": (1e-12, 1e-11),
    "float32": (2e-5, 1e-4),
    "bfloat16": (2e-2, 4e-2),
    "float16": (4e-3, 1e-2),
}
#: Below float64 a logit of thousands is right to 1e-3 or so, and that is what comes on top from its
#: exponential.
EXTREME, EXTREME_TOLERANCE = 50.0, 1e-2


def load_callable(name: str):
    module_name, _, attribute = name.rpartition(":")
    if not module_name:
        raise SystemExit(f"check: callable: expected MODULE:NAME or FILE.py:NAME, got {name}")
    try:
        if module_name.endswith(".py"):
            spec = importlib.util.spec_from_file_location("checked", module_name)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(module_name)
        return getattr(module, attribute)
    except (ImportError, OSError, AttributeError) as error:
        raise SystemExit(f"check: callable: cannot load {name}: {error}") from None


def inputs_of(arrays: dict, order: int, dtype: str):
    given = {
        name.removeprefix("input."): x for name, x in arrays.items() if name.startswith("input.")
    }
    given = {name: x.astype(dtype) if x.dtype == np.float32 else x for name, x in given.items()}
    query = given.pop("query")
    keys, values = ([given.pop(f"{side}.{m}") for m in range(order)] for side in ("key", "value"))
    grads = given.pop("grad_out"), given.pop("grad_lse")
    return query, keys, values, given, grads


def run_numpy(call, entry: dict, arrays: dict, dtype: str) -> dict[str, np.ndarray]:
    query, keys, values, tensors, _ = inputs_of(arrays, entry["order"], dtype)
    result = call(query, keys, values, entry["options"], tensors)
    result = result if isinstance(result, tuple) else (result,)
    return dict(zip(("out", "lse"), map(np.asarray, result)))


def run_torch(call, entry: dict, arrays: dict, dtype: str) -> dict[str, np.ndarray]:
    import torch

    def tensor(array):
        result = torch.tensor(array)
        return (
            result.to(getattr(torch, dtype)).requires_grad_()
            if result.is_floating_point()
            else result
        )

    order = entry["order"]
    query, keys, values, tensors, grads = inputs_of(arrays, order, "float64")
    query, keys, values = tensor(query), [tensor(x) for x in keys], [tensor(x) for x in values]
    tensors = {name: tensor(x) for name, x in tensors.items()}
    result = call(query, keys, values, entry["options"], tensors)
    result = result if isinstance(result, tuple) else (result,)
    leaves = {"query": query, **{f"key.{m}": x for m, x in enumerate(keys)}}
    leaves |= {f"value.{m}": x for m, x in enumerate(values)}
    leaves |= {name: x for name, x in tensors.items() if x.is_floating_point()}
    found = dict(zip(("out", "lse"), result))
    # Without lse its share of the gradients is missing: they are compared only where both are
    # there.
    if len(result) == 2 and result[0].requires_grad:
        outputs = [(x, torch.tensor(g).to(x)) for x, g in zip(result, grads) if x.requires_grad]
        gradients = torch.autograd.grad(
            [x for x, _ in outputs],
            list(leaves.values()),
            [g for _, g in outputs],
            allow_unused=True,
        )
        for (name, leaf), gradient in zip(leaves.items(), gradients):
            found[f"grad.{name}"] = torch.zeros_like(leaf) if gradient is None else gradient
    return {name: x.detach().double().numpy() for name, x in found.items()}


def deviation(found: np.ndarray, expected: np.ndarray, floor: float = 1e-3) -> float:
    """Error relative to the norm, which counts as ``floor`` at least; infinite where the shape
    differs, or the minus infinities of lse."""
    found = np.asarray(found, np.float64)
    if found.shape != expected.shape:
        return np.inf
    infinite = np.isneginf(expected)
    if not np.array_equal(infinite, np.isneginf(found)) or np.isnan(found).any():
        return np.inf
    difference = np.linalg.norm(np.where(infinite, 0, found - np.where(infinite, 0, expected)))
    return difference / max(np.linalg.norm(np.where(infinite, 0, expected)), floor)


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def check_case(run, call, folder: Path, entry: dict, dtype: str) -> tuple[str, str]:
    """("passed" | "failed" | "not supported", what was seen)"""
    arrays = safetensors_file.read(folder / entry["file"])
    try:
        found = run(call, entry, arrays, dtype)
    except NotImplementedError as error:
        return "not supported", first_line(error)
    except Exception as error:  # whatever a callable does wrong, the other cases are still checked
        return "failed", f"{type(error).__name__}: {first_line(error)}"
    lse = arrays["expected.lse"]
    extreme = np.abs(lse[np.isfinite(lse)]).max(initial=0) > EXTREME
    allowance = EXTREME_TOLERANCE if extreme and dtype != "float64" else 0.0
    worst = ("", 0.0, 1.0)
    for name, array in found.items():
        limit = TOLERANCE[dtype][name.startswith("grad")] + allowance
        # lse is a logarithm: its absolute error is the relative error of the sum it stands for.
        floor = np.sqrt(array.size) if name == "lse" else 1e-3
        error = deviation(array, arrays[f"expected.{name}"], floor)
        if error / limit >= worst[1] / worst[2]:
            worst = (name, error, limit)
    text = f"{worst[0]} {worst[1]:.1e} (limit {worst[2]:.0e})"
    return ("passed" if worst[1] <= worst[2] else "failed"), text


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("callable", metavar="MODULE:NAME")
    parser.add_argument("--torch", action="store_true", help="call with tensors, check gradients")
    parser.add_argument("--dtype", choices=TOLERANCE, default="float64")
    parser.add_argument("--cases", type=Path, default=HERE / "cases")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--quiet", action="store_true", help="only what did not pass")
    arguments = parser.parse_args()
    if arguments.dtype in ("bfloat16", "float16") and not arguments.torch:
        parser.error(f"--dtype {arguments.dtype}: only with --torch")
    sys.path.insert(0, "")
    call = load_callable(arguments.callable)
    try:
        entries = json.loads((arguments.cases / "cases.json").read_text())["cases"]
    except OSError as error:
        parser.error(f"--cases: {error} (python conformance/generate.py writes them)")
    entries = [entry for entry in entries if arguments.only in entry["name"]]
    if not entries:
        parser.error(f"--only: no case is named like '{arguments.only}'")
    counts = {"passed": 0, "failed": 0, "not supported": 0}
    for entry in entries:
        run = run_torch if arguments.torch else run_numpy
        outcome, text = check_case(run, call, arguments.cases, entry, arguments.dtype)
        counts[outcome] += 1
        if outcome != "passed" or not arguments.quiet:
            print(f"{entry['name']:32} {outcome:13} {text}")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
