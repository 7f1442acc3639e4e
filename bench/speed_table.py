"""The speed table of docs/attention/performance.md: every shape of bench/cases/attention_speed.txt,
forward and backward, on one thread, beside the machine's own matrix product in the same dtype, in
turns.

    python bench/speed_table.py                        # all
    python bench/speed_table.py order2-2048 order3-2048 --repeats 9
    NSIMPLEX_SIMD=AVX2 python bench/speed_table.py order2-2048

`ratio` is the operator's GFLOP/s over the matrix product's (2 (D + Dv) flops a tuple, three times
that backward).
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "bench" / "cases" / "attention_speed.txt"


def measure(arguments, case: str, pass_name: str) -> dict:
    command = [
        str(arguments.nsimplex),
        "bench",
        "attention",
        "--json",
        "--case",
        case,
        "--pass",
        pass_name,
    ]
    command += ["--threads", str(arguments.threads), "--repeats", str(arguments.repeats)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    lines = [line.split() for line in CASES.read_text().splitlines()]
    names = [words[0] for words in lines if words and not words[0].startswith("#")]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", nargs="*", help=f"of {', '.join(names)}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--nsimplex", type=Path, default=ROOT / "build/release/bin/nsimplex")
    arguments = parser.parse_args()
    if unknown := set(arguments.case) - set(names):
        parser.error(f"case: no case is called '{unknown.pop()}'")
    print("| case | pass | ms | GFLOP/s | matrix product | ratio | workspace |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in arguments.case or names:
        for pass_name in ("forward", "backward"):
            row = measure(arguments, name, pass_name)
            print(
                f"| {name} | {pass_name} | {row['milliseconds']:.4g} | {row['gflops']:.1f} | "
                f"{row['sgemm_gflops']:.1f}"
                f" | {row['ratio']:.2f} | {row['workspace_bytes'] / 2**20:.1f} MiB |",
                flush=True,
            )


if __name__ == "__main__":
    main()
