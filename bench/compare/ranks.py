"""What two ranks of one machine cost and gain: a data-parallel step, and context parallel.

    python bench/compare/ranks.py --part data
    python bench/compare/ranks.py --part context

data: `nsimplex lm train` on two ranks beside one process with half the batch, so that every rank
does what the process does. The ratio of their steps has two causes: ranks wait for each other, and
two processes share the machine. The control shows the second alone: two such processes at once
that know nothing of each other, of which the slower counts.
context: forward and backward of one attention layer of order 2, windows 32 x 512, on a sequence of
16,384 tokens, on two ranks beside one process; efficiency = time of one / (2 x time of two).

The sides run in turns, each in processes of their own with one thread per rank; medians of
--rounds. One JSON object a line.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial

MODEL = dict(layers=4, heads=4, width=128, context=64, every=4, window="16,256")
WINDOW = (32, 512)


def start(ranks: int, program: list[str]) -> subprocess.Popen:
    """Starts a program on so many ranks."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(ranks), *program]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)


def finish(process: subprocess.Popen) -> list[dict]:
    """The JSON lines that a program prints."""
    output, _ = process.communicate()
    if process.returncode != 0:
        sys.exit(f"failed: {' '.join(process.args)}")
    return [json.loads(line) for line in output.splitlines()]


def train(ranks: int, arguments, processes: int = 1) -> float:
    """Seconds of a training step whose every rank has --batch windows; of several such trainings
    at once, those of the slowest."""
    words = ["-m", "nsimplex.lm", "train", "--json", "--threads", "1"]
    words += ["--text", *arguments.text, "--eval-tokens", "1024", "--eval-every", "0"]
    words += ["--steps", str(arguments.steps), "--log-every", str(max(arguments.steps // 10, 1))]
    words += ["--batch", str(ranks * arguments.batch)]
    for name, value in MODEL.items():
        words += [f"--{name}", str(value)]
    with tempfile.TemporaryDirectory() as folder:
        outs = [f"{folder}/{i}" for i in range(processes)]
        runs = [finish(run) for run in [start(ranks, [*words, "--out", out]) for out in outs]]
    slowest = min(
        # The first line holds the warm-up.
        statistics.median([line["tokens_per_second"] for line in run if "step" in line][1:])
        for run in runs
    )
    return ranks * arguments.batch * MODEL["context"] / slowest


def attend(ranks: int, arguments) -> float:
    """Seconds of forward and backward of the layer, on the slowest rank."""
    words = [__file__, "--rank", "--tokens", str(arguments.tokens)]
    return finish(start(ranks, words))[0]["seconds"]


def attend_on_rank(tokens: int) -> None:
    """A rank of attend()."""
    import torch
    import torch.distributed as dist

    import nsimplex
    import nsimplex.distributed
    from nsimplex.nn import SimplicialAttention

    dist.init_process_group("gloo")
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    layer = SimplicialAttention(128, 2, order=2, window=WINDOW, causal=True)
    x = torch.randn(1, tokens, 128)
    times = []
    for _ in range(3):  # the first is a warm-up
        with nsimplex.distributed.context_parallel(mesh) as context:
            shard = context.shard(x).requires_grad_()
            dist.barrier()
            begin = time.perf_counter()
            layer(shard).sum().backward()
            times.append(time.perf_counter() - begin)
    slowest = torch.tensor(statistics.median(times[1:]))
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print(json.dumps({"seconds": slowest.item()}), flush=True)
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=["data", "context"], default="data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=12, help="windows of every rank (data)")
    parser.add_argument("--steps", type=int, default=100, help="of a training (data)")
    parser.add_argument("--tokens", type=int, default=16384, help="of the sequence (context)")
    parser.add_argument(
        "--text",
        nargs="+",
        default=[argparse.__file__, json.__file__, tempfile.__file__, subprocess.__file__],
    )
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank:
        attend_on_rank(arguments.tokens)
        return
    sides = [partial(attend, 1, arguments), partial(attend, 2, arguments)]
    if arguments.part == "data":
        sides = [partial(train, 1, arguments), partial(train, 2, arguments)]
        sides.append(partial(train, 1, arguments, processes=2))
    rounds = [[side() for side in sides] for _ in range(arguments.rounds)]
    one, two, *control = (statistics.median(side) for side in zip(*rounds, strict=True))
    result = {"part": arguments.part, "one_milliseconds": 1e3 * one, "two_milliseconds": 1e3 * two}
    if arguments.part == "data":
        result |= {"control_milliseconds": 1e3 * control[0], "batch_of_a_rank": arguments.batch}
        result |= {"ratio": two / one, "ratio_to_control": two / control[0]}
    else:
        result |= {"tokens": arguments.tokens, "windows": WINDOW, "efficiency": one / (2 * two)}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
