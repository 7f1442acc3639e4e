"""The command line of tools/gpu_day: see docs/gpu-day.md."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import parts
import prepare
import runner

ROOT = Path(__file__).resolve().parents[2]


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu_day", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("prepare", help="make the folder for the machine with the GPU")
    make.add_argument("--build", type=Path, default=ROOT / "build" / "cuda", help="build folder")
    make.add_argument("--into", type=Path, default=ROOT / "build" / "gpu-day", help="the folder")
    run = commands.add_parser("run", help="check and measure on this machine")
    run.add_argument(
        "--parts", default=",".join(parts.NAMES), help="which, and in which order; a+b together"
    )
    run.add_argument("--out", type=Path, default=ROOT / "gpu-day-results", help="results")
    run.add_argument("--minutes", type=float, default=9.0, help="after them nothing runs")
    run.add_argument("--done", type=Path, help="results.jsonl of an earlier run: skip its items")
    run.add_argument("--only", default="", help="items whose name contains this text")
    run.add_argument("--plain", action="store_true", help="no options, only the plain call")
    run.add_argument("--rehearse", action="store_true", help="tiny sizes, on the CPU")
    run.add_argument("--interpret", action="store_true", help="rehearse in Triton's interpreter")
    run.add_argument("--processes", type=int, default=0, help="0: one per processor, at most 16")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    start = time.monotonic()
    options = arguments(words)
    if options.command == "prepare":
        return prepare.prepare(options.build, options.into)
    unknown = set(options.parts.replace("+", ",").split(",")) - set(parts.NAMES)
    if unknown:
        print(f"gpu_day: no part {', '.join(sorted(unknown))}; parts are {', '.join(parts.NAMES)}")
        return 2
    return runner.run(options, ROOT, start)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
