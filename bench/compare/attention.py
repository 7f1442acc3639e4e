"""The dense operator beside plain PyTorch: one process, taking turns, medians; one JSON object a
line.

    python bench/compare/attention.py --threads 1
    python bench/compare/attention.py --case order2-2048 --pass forward --peer composite

Shapes come from bench/cases/attention_speed.txt. The pass "backward" is forward and backward
together, on both sides, since a peer that kept its graph would need gigabytes. Peak memory is what
a fresh process needed above its inputs.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

import peers
import torch
from turns import medians

import nsimplex

CASES = Path(__file__).resolve().parent.parent / "cases" / "attention_speed.txt"
PEERS = {
    "composite": [peers.windowed_views, peers.banded_blocks],  # the faster one counts
    "naive einsum": [peers.naive_einsum],
    "scaled_dot_product_attention": [peers.sdpa],
}


def read_cases() -> dict[str, argparse.Namespace]:
    parser = argparse.ArgumentParser()
    for flag in ("order", "heads", "seq", "width"):
        parser.add_argument(f"--{flag}", type=int)
    parser.add_argument(
        "--window", type=lambda text: [int(w) for w in text.split(",")], default=[-1]
    )
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--dtype", type=lambda name: getattr(torch, name), default=torch.float32)
    cases = {}
    for line in CASES.read_text().splitlines():
        words = shlex.split(line, comments=True)
        if words:
            case, unknown = parser.parse_known_args(words[1:])
            if case.causal and not unknown:  # what the peers can compute
                cases[words[0]] = case
    return cases


def make_inputs(case, gradients: bool):
    generator = torch.Generator().manual_seed(1)

    def draw(grad: bool):
        shape = (1, case.heads, case.seq, case.width)
        return torch.randn(shape, generator=generator).to(case.dtype).requires_grad_(grad)

    query = draw(gradients)
    keys, values = ([draw(gradients) for _ in range(case.order)] for _ in range(2))
    return query, keys, values, draw(False) if gradients else None


def ours(query, keys, values, windows, grad_out):
    window = None if windows == [-1] else windows
    if grad_out is None:
        with torch.no_grad():
            return nsimplex.attention(query, keys, values, causal=True, window=window)
    out = nsimplex.attention(query, keys, values, causal=True, window=window)
    return torch.autograd.grad(out, [query, *keys, *values], grad_out)


def contestants(case, peer: str, gradients: bool) -> dict:
    query, keys, values, grad_out = make_inputs(case, gradients)
    calls = {"nsimplex": lambda: ours(query, keys, values, case.window, grad_out)}
    for function in PEERS[peer]:
        calls[function.__name__] = lambda function=function: peers.run(
            function, query, keys, values, case.window, grad_out
        )
    return calls


def check_agreement(calls: dict) -> None:
    """A comparison counts only when both compute the same; these calls are the warm-up too.

    In bf16 it is the peer that is off: windowed views add up overlapping gradients of keys and
    values in bf16. Beside float64 (windows 32 x 256, T = 384, level AVX2) their gradients were off
    by up to 2.3e-2, those of banded blocks by 9e-3, those of this operator by 2e-3.
    """
    results = [
        [r] if isinstance(r, torch.Tensor) else r for r in (call() for call in calls.values())
    ]
    for other in results[1:]:
        for a, b in zip(results[0], other):
            error = ((a - b).float().norm() / b.float().norm()).item()
            assert error < (1e-4 if b.dtype == torch.float32 else 5e-2), (
                f"results differ by {error:.1e}"
            )


def peak_of(arguments, case_name: str, pass_name: str, peer: str, contestant: str) -> int:
    """Peak memory of one call above what was there before, in a process of its own."""
    command = [sys.executable, __file__, "--case", case_name, "--pass", pass_name, "--peer", peer]
    command += ["--threads", str(arguments.threads), "--heads", str(arguments.heads)]
    command += ["--peak-of", contestant]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def resident(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split(field + ":")[1].split()[0])


def print_peak(case, peer: str, gradients: bool, contestant: str) -> None:
    small = argparse.Namespace(**vars(case) | {"seq": 64})
    contestants(small, peer, gradients)[contestant]()  # threads and the code of libraries are there
    call = contestants(case, peer, gradients)[contestant]
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again from here
    before = resident("VmRSS")
    call()
    print(max(resident("VmHWM") - before, 0))


def compare(arguments, name: str, case, peer: str, pass_name: str) -> dict:
    gradients = pass_name == "backward"
    calls = contestants(case, peer, gradients)
    check_agreement(calls)
    repeats = min(arguments.repeats, 3) if peer == "naive einsum" else arguments.repeats
    times = medians(calls, repeats)
    best = min((n for n in times if n != "nsimplex"), key=times.get)
    return {
        "operator": "attention",
        "case": name,
        "order": case.order,
        "pass": pass_name,
        "heads": case.heads,
        "seq": case.seq,
        "dim": case.width,
        "window": case.window,
        "dtype": str(case.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "peer": peer,
        "peer_form": best,
        "form_milliseconds": {name: ms for name, ms in times.items() if name != "nsimplex"},
        "milliseconds": times["nsimplex"],
        "peer_milliseconds": times[best],
        "speedup": times[best] / times["nsimplex"],
        "peak_bytes": peak_of(arguments, name, pass_name, peer, "nsimplex"),
        "peer_peak_bytes": peak_of(arguments, name, pass_name, peer, best),
    }


def peers_of(case) -> list[str]:
    """What can be compared: sdpa at order 1, the composites at order 2."""
    if case.order == 1:
        return ["scaled_dot_product_attention"]
    return ["composite", "naive einsum"] if case.order == 2 else []


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cases = read_cases()
    parser.add_argument(
        "--case", action="append", choices=cases, help="default: all that have a peer"
    )
    parser.add_argument("--pass", dest="passes", action="append", choices=["forward", "backward"])
    parser.add_argument("--peer", action="append", choices=PEERS)
    parser.add_argument("--heads", type=int, default=0, help="in place of the case's")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for name in arguments.case or cases:
        case = cases[name]
        case.heads = arguments.heads or case.heads
        for peer in arguments.peer or peers_of(case):
            for pass_name in arguments.passes or ["forward", "backward"]:
                if arguments.peak_of:
                    print_peak(case, peer, pass_name == "backward", arguments.peak_of)
                elif peer in peers_of(case):
                    print(json.dumps(compare(arguments, name, case, peer, pass_name)), flush=True)


if __name__ == "__main__":
    main()
