"""Calls by the C++ host of compiled GPU kernels, with Triton's interpreter in place of the GPU:

    TRITON_INTERPRET=1 python cubin_replay.py ROOT PROBE FOLDER

For each case the Python host computes the results; then the C++ host does, by the program that
build_cubins wrote of another, similar call, and each launch that reaches the driver is carried out
by the interpreter with the arguments that the driver got. The results must be the same bits. Prints
a line for each pass of a case.
"""

import sys
from dataclasses import replace
from pathlib import Path

import cubin_launches as cubins
import torch

import nsimplex  # noqa: F401  loads the library, which the probe needs

ROOT, PROBE, FOLDER = sys.argv[1:4]
tool = cubins.load_tool(Path(ROOT))
CASES = [
    # order, window, batch, length, key heads, heads per key head, heads inside rows, and another
    # length to trace
    (1, (-1, 0), 2, 37, 2, 2, False, 43),
    (2, (4, 0, 8, 0), 1, 21, 2, 2, True, 26),
    (2, (5, 0, 20, 0), 1, 37, 2, 3, False, 45),
    (2, (20, 0, 5, 0), 2, 33, 1, 4, True, 41),
    (2, (4, 0, 8, 0), 1, 21, 1, 16, True, 26),
    (2, (-1, -1, -1, -1), 1, 17, 1, 2, True, 18),
    (3, (3, 0, 3, 0, 16, 0), 1, 23, 1, 1, False, 29),
]


def tensors_of(problem):
    generator = torch.Generator().manual_seed(3)
    result = {}
    for name, sizes in problem.sizes().items():
        made = torch.randn(sizes, generator=generator)
        if problem.heads_inside and len(sizes) == 4:
            made = made.transpose(1, 2).contiguous().transpose(1, 2)
        result[name] = made
    return result


class Replay:
    """Does a launch of the driver as the recorded one of the Python host was done."""

    def __init__(self, entries, launches):
        self.entries, self.launches = entries, iter(launches)

    def __call__(self, made):
        launch = next(self.launches)
        special = tool.Specialisation.of(launch)
        entry = self.entries[made.code]
        assert entry["kernel"] == launch.kernel.__name__
        assert entry["constants"] == special.named, (entry["constants"], special.named)
        assert made.grid == (*launch.grid, 1, 1)[:3], (made.grid, launch.grid)
        expected = cubins.runtime_values(tool, launch)
        for argument, got, want in zip(entry["arguments"], made.values, expected, strict=True):
            if isinstance(want, int):
                assert got == want, (argument, got, want)
            elif isinstance(want, float):
                assert abs(got - want) <= 1e-6 * abs(want), (argument, got, want)
        constant, values = tool.constant_names(launch.kernel), iter(made.values)
        arguments = {
            name: value
            if name in constant or value is None
            else cubins.with_addresses(value, values)
            for name, value in launch.arguments.items()
        }
        launch.kernel[made.grid](**arguments, **launch.options)


def check(driver, problem, traced, forward):
    collection = tool.Collection()
    for each in traced:
        collection.add(each, forward)
    path = f"{FOLDER}/{abs(hash((problem, forward)))}.zip"
    entries = cubins.write_file(tool, path, collection)
    tensors, numbers = tensors_of(problem), problem.numbers()
    if not forward:
        with tool.tiles_for("cpu"):
            tensors["out"], tensors["lse"] = tool.run_host(problem.order, True, tensors, numbers)
    with tool.tiles_for("cpu"), tool.recorded_launches(run=True) as launches:
        expected = tool.run_host(problem.order, forward, tensors, numbers)
    driver.expect(entries, Replay(entries, launches))
    axes = range(problem.order)
    call = [path, tensors["query"], [tensors[f"keys.{m}"] for m in axes]]
    call.append([tensors[f"values.{m}"] for m in axes])
    if not forward:
        call += [tensors["out"], tensors["lse"], tensors["grad_out"], tensors.get("grad_lse")]
    run = torch.ops.nsimplex_cubins_probe
    scales = [numbers["logit_scale"], numbers["output_scale"]]
    got = (run.forward if forward else run.backward)(*call, list(problem.window), scales)
    if driver.failure is not None:
        raise driver.failure
    assert len(driver.made) == len(launches)
    for a, b in zip(got, expected, strict=True):
        assert a.stride() == b.stride() and torch.equal(a, b)
    print("same", "forward" if forward else "backward", problem, len(launches), flush=True)


def main():
    driver = cubins.FakeDriver(FOLDER)
    torch.ops.load_library(PROBE)
    chosen = sys.argv[4:]  # for people: forward or backward, and numbers of cases
    cases = [case for n, case in enumerate(CASES) if str(n) in chosen] or CASES
    for order, window, batch, length, kv_heads, group, inside, other in cases:
        problem = tool.Problem(
            90, "fp32", order, 16, window, group, length, batch, kv_heads, inside, tiles="cpu"
        )
        # The first program that fits is taken: that of another length, or of another batch, where
        # they lead to the same decisions.
        others = [replace(problem, length=other, batch=batch + 1), replace(problem, length=other)]
        passes = [(problem, others, True)]
        for grad_lse in (False, True):
            passes.append(
                (
                    replace(problem, grad_lse=grad_lse),
                    [replace(each, grad_lse=grad_lse) for each in others],
                    False,
                )
            )
        for of_pass, similar, forward in passes:
            if ("backward" if forward else "forward") not in chosen:
                check(driver, of_pass, [*similar, of_pass], forward)


if __name__ == "__main__":
    main()
