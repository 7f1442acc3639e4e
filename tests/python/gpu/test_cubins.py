"""Compiled GPU kernels: what the C++ host launches is what the Python host launches."""

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cubin_launches as cubins
import pytest
import torch

pytest.importorskip("triton")

WINDOWS = {
    1: [(-1, 0), (40, 0), (-1, -1)],
    2: [(8, 0, 64, 0), (64, 0, 8, 0), (-1, 0, -1, 0)],
    3: [(4, 0, 4, 0, 64, 0)],
}


@pytest.fixture(scope="module")
def tool(root):
    return cubins.load_tool(root)


def test_the_replayed_launches_give_the_same_bits(build, root, tmp_path, subprocess_env):
    """A case of each pass; cubin_replay.py without numbers does all of them."""
    probe = build / "lib" / "libnsimplex_cubins_probe.so"
    if not probe.exists():
        pytest.skip(f"{probe.name} is not built")
    script = str(Path(__file__).with_name("cubin_replay.py"))
    run = subprocess.run(
        [sys.executable, script, str(root), str(probe), str(tmp_path), "1"],
        env=subprocess_env | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert [line.split()[:2] for line in run.stdout.splitlines()] == [
        ["same", each] for each in ("forward", "backward", "backward")
    ]


def launches_of(tool, problem, forward):
    """What the Python host launches for tensors without data."""
    tensors = {
        name: torch.empty_strided(
            sizes, problem.strides(sizes), dtype=problem.element(name), device="meta"
        )
        for name, sizes in problem.sizes().items()
    }
    with tool.tiles_for(f"sm_{problem.arch}"), tool.recorded_launches() as launches:
        tool.run_host(problem.order, forward, tensors, problem.numbers())
    return launches


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_program_is_the_host_for_every_call_that_it_serves(tool, order):
    """Of random calls those are compared that satisfy the conditions of another call's program."""
    from cubin_programs import COMPARE, evaluate  # beside the tool

    draw = random.Random(order)
    served = 0
    for window in WINDOWS[order]:
        problem = tool.Problem(90, "bf16", order, 64, window, draw.choice([1, 4, 16]), 700, 4, 4)
        for forward in (True, False):
            collection = tool.Collection()
            collection.add(problem, forward)
            index = collection.index()
            (program,) = index["programs"]
            for _ in range(12):
                other = replace(
                    problem,
                    length=draw.choice([700, 701, 1500, 4096]) + draw.randrange(40),
                    batch=draw.choice([3, 4, 5]),
                    kv_heads=draw.choice([2, 4, 8]),
                )
                numbers = other.numbers()

                def value(place, numbers=numbers, formulas=index["formulas"]):
                    formula = formulas[place]
                    if isinstance(formula, list):
                        formula = [formula[0], *(value(each) for each in formula[1:])]
                    return evaluate(formula, numbers)

                conditions = program["conditions"]
                if not all(COMPARE[name](value(a), value(b)) for name, a, b in conditions):
                    continue
                served += 1
                steps = [step for step in program["steps"] if "launch" in step]
                launches = launches_of(tool, other, forward)
                assert len(steps) == len(launches)
                for step, launch in zip(steps, launches, strict=True):
                    kernel = index["kernels"][step["launch"]]
                    special = tool.Specialisation.of(launch)
                    assert kernel["constants"] == special.named
                    assert [value(n) for n in step["grid"]] == [*launch.grid, 1, 1][:3]
                    for argument, place, want in zip(
                        kernel["arguments"],
                        step["arguments"],
                        cubins.runtime_values(tool, launch),
                        strict=True,
                    ):
                        if not argument["type"].startswith("*"):
                            assert value(place) == want, argument
    assert served >= 10


def test_arguments_are_compared_with_the_compiled_kernel(tool):
    ptx = ".visible .entry kernel(\n\t.param .u64 .ptr .global .align 1 kernel_param_0,\n"
    ptx += "\t.param .u32 kernel_param_1,\n\t.param .f32 kernel_param_2,\n"
    ptx += "\t.param .u64 .ptr .global .align 1 kernel_param_3,\n"
    ptx += "\t.param .u64 .ptr .global .align 1 kernel_param_4\n)\n{\n}"
    parameters = tool.parameters_of(ptx, "kernel")
    arguments = [{"type": kind} for kind in ("*bf16", "i32", "fp32")]
    tool.check_parameters(arguments, parameters)
    for wrong in (arguments[:2], arguments[::-1], [*arguments, {"type": "i32"}]):
        with pytest.raises(ValueError, match="expected the parameters"):
            tool.check_parameters(wrong, parameters)


def test_a_kernel_is_compiled_and_found_in_the_file(tmp_path, root, subprocess_env):
    """One kernel for one architecture: its parameters are those of the index."""
    program = """
import sys
import cubin_launches as cubins
from pathlib import Path
tool = cubins.load_tool(Path(sys.argv[1]))
collection = tool.Collection()
collection.add(tool.Problem(80, "bf16", 1, 64, (-1, 0), 1, 512, 8, 8), forward=True)
collection.write(sys.argv[2])
"""
    path = tmp_path / "one.zip"
    environment = {k: v for k, v in subprocess_env.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent)
    environment["TRITON_CACHE_DIR"] = str(tmp_path / "cache")
    command = [sys.executable, "-c", program, str(root), str(path)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert path.stat().st_size > 10000
