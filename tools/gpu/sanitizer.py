"""compute-sanitizer's memcheck and racecheck on a few shapes, forward and backward.

Run as a program, it makes one call: what the sanitizer watches.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

SHAPES = [
    "bf16 plain: six heads, D 24, Dv 8",
    "bf16 plain: grouped heads, windows",
    "fp32 plain: two-sided windows",
    "bf16 plain: forty heads in a group",
    "bf16 long: sink",
]
PLACES = ["/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/cuda/bin"]


def items(setup) -> list[str]:
    tools = ("memcheck", "racecheck")
    return [f"{tool} {shape}" for shape in SHAPES[: 4 if setup.plain else 5] for tool in tools]


def command(tool: str, setup) -> list[str]:
    if setup.rehearse:
        return []
    path = os.pathsep.join([os.environ.get("PATH", ""), *PLACES])
    found = shutil.which("compute-sanitizer", path=path)
    if not found:
        raise RuntimeError("no compute-sanitizer on this machine")
    return [found, "--tool", tool, "--error-exitcode", "9", "--print-limit", "20"]


def run(item: str, setup) -> dict:
    tool, _, shape = item.partition(" ")
    # Without a cache in the allocator every tensor has bounds of its own.
    env = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    done = subprocess.run(
        [*command(tool, setup), sys.executable, __file__, shape],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(done.stdout[-20000:], file=sys.stderr)
    last = [line for line in done.stdout.splitlines() if "SUMMARY" in line]
    record = {"ok": done.returncode == 0, "summary": (last or [""])[-1].strip("= ")}
    if not record["ok"]:
        first = re.search(r"(Invalid|Error:|Race|hazard|Traceback).*", done.stdout)
        record["error"] = f"status {done.returncode}: {first.group(0) if first else ''}"
    return record


def lines(records: list[dict]) -> list[str]:
    said = {True: "clean", False: "NOT CLEAN", None: "no time"}
    return [f"{r['item']}: {said[r['ok']]} {r.get('summary', '')}" for r in records]


def main() -> None:
    import cases
    import correctness
    import setups

    import nsimplex

    setup = setups.make()
    label, _, name = sys.argv[1].partition(" ")
    problem = cases.builders(setup)[name]()
    correctness.outcome(problem, correctness.DTYPES[label], setup.device, nsimplex.attention)
    setup.synchronize()


if __name__ == "__main__":
    main()
