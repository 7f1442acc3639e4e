"""Training a language model beside the same model in plain PyTorch: tokens per second and peak
memory.

    python bench/compare/language_model.py --setting ordinary
    python bench/compare/language_model.py --setting simplicial

The peer has the modules of nsimplex.nn, which are plain PyTorch but for attention, and attention as
PyTorch has it: scaled_dot_product_attention for ordinary layers, the best composite (peers.py) for
simplicial ones; fused AdamW, the same clipping, the same batch. `nsimplex lm train` and the peer
run in turns, each in a process of its own; medians of --rounds; peak memory is the largest resident
set of the process. One JSON object a line.
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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    # nanoGPT's CPU setting.
    "ordinary": dict(layers=4, heads=4, width=128, context=64, batch=12, every=0, steps=200),
    "interleaved": dict(layers=4, heads=4, width=128, context=64, batch=12, every=4, steps=200),
    # A simplicial fourth layer where tuples are many.
    "simplicial": dict(layers=4, heads=4, width=128, context=512, batch=12, every=4, steps=8),
}
WINDOW = [16, 256]


def train_peer(arguments) -> None:
    """The peer's process: trains and prints its tokens per second."""
    import peers
    import torch
    from torch.nn import functional as F

    import nsimplex
    from nsimplex.nn import LanguageModel, LanguageModelOptions, selecting

    def composite(form, query, keys, values, window):
        length = query.size(2)
        windows = [min(w, length) for w in window]
        size = peers.block_size(form, query, windows)
        blocks = [
            form(query, keys, values, windows, first, min(size, length - first))
            for first in range(0, length, size)
        ]
        return torch.cat(blocks, 2)

    def faster_form(shape):
        """Of the two composites the one that is faster here, forward and backward, after a
        warm-up."""
        times = {}
        for form in (peers.windowed_views, peers.banded_blocks) * 2:
            parts = [torch.randn(shape, requires_grad=True) for _ in range(5)]
            begin = time.perf_counter()
            composite(form, parts[0], parts[1:3], parts[3:], WINDOW).sum().backward()
            times[form] = time.perf_counter() - begin
        return min(times, key=times.get)

    def plain_attention(query, keys, values, *, window, causal, **_):
        if len(keys) == 1:
            return F.scaled_dot_product_attention(query, keys[0], values[0], is_causal=causal)
        return composite(form, query, keys, values, window)

    assert selecting.attention is nsimplex.attention  # the name that the layers call
    selecting.attention = plain_attention
    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    setting = SETTINGS[arguments.setting]
    head_dim = setting["width"] // setting["heads"]
    form = None
    if setting["every"]:
        # A quarter of the batch is enough to choose by, and does not set the peak of memory.
        form = getattr(peers, arguments.composite, None) or faster_form(
            (setting["batch"] // 4, setting["heads"], setting["context"], head_dim)
        )
    shape = {name: setting[name] for name in ("layers", "heads", "context", "every")}
    model = LanguageModel(LanguageModelOptions(window=WINDOW, dim=setting["width"], **shape))
    text = b"".join(Path(name).read_bytes() for name in arguments.text)
    tokens = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), fused=True)
    context, batch = setting["context"], setting["batch"]
    times = []
    for _ in range(arguments.steps):
        begin = time.perf_counter()
        starts = torch.randint(len(tokens) - context - 1, (batch,))
        windows = torch.stack([tokens[start : start + context + 1] for start in starts])
        with torch.autocast("cpu", torch.bfloat16, enabled=arguments.bf16):
            loss = model.loss(windows[:, :-1], windows[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        times.append(time.perf_counter() - begin)
    warm = times[max(len(times) // 10, 1) :]
    print(json.dumps({"tokens_per_second": context * batch * len(warm) / sum(warm)}))


def run(command: list[str], environment: dict) -> tuple[str, int]:
    """Standard output and peak resident bytes of a process."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=sys.stderr, env=environment, text=True
    ) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return output, 1024 * usage.ru_maxrss


def run_ours(arguments) -> tuple[float, int]:
    setting = SETTINGS[arguments.setting]
    with tempfile.TemporaryDirectory() as folder:
        command = [str(arguments.nsimplex), "lm", "train", "--json", "--out", f"{folder}/run"]
        command += ["--text", *arguments.text, "--threads", str(arguments.threads)]
        command += [
            "--window",
            ",".join(map(str, WINDOW)),
            "--eval-tokens",
            "1024",
            "--eval-every",
            "0",
        ]
        command += [
            "--log-every",
            str(max(arguments.steps // 10, 1)),
            "--steps",
            str(arguments.steps),
        ]
        for name in ("layers", "heads", "width", "context", "batch", "every"):
            command += [f"--{name}", str(setting[name])]
        if arguments.bf16:
            command.append("--bf16")
        output, peak = run(command, dict(os.environ))
    lines = [json.loads(line) for line in output.splitlines()]
    warm = [line["tokens_per_second"] for line in lines][1:]  # the first line holds the warm-up
    return statistics.median(warm), peak


def run_peer(arguments) -> tuple[float, int]:
    command = [
        sys.executable,
        __file__,
        "--peer",
        "--setting",
        arguments.setting,
        "--steps",
        str(arguments.steps),
    ]
    command += ["--threads", str(arguments.threads), "--composite", arguments.composite]
    command += ["--text", *arguments.text]
    if arguments.bf16:
        command.append("--bf16")
    output, peak = run(command, dict(os.environ))
    return json.loads(output)["tokens_per_second"], peak


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--setting", choices=SETTINGS, default="ordinary")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=0, help="of a run; 0: the setting's")
    parser.add_argument("--bf16", action="store_true", help="bfloat16 autocast on both sides")
    parser.add_argument(
        "--composite", choices=["faster", "windowed_views", "banded_blocks"], default="faster"
    )
    parser.add_argument("--nsimplex", type=Path, default=ROOT / "build/release/bin/nsimplex")
    parser.add_argument(
        "--text",
        nargs="+",
        default=[argparse.__file__, json.__file__, tempfile.__file__, subprocess.__file__],
    )
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    setting = SETTINGS[arguments.setting]
    arguments.steps = arguments.steps or setting["steps"]
    if arguments.peer:
        train_peer(arguments)
        return
    rounds = [(run_ours(arguments), run_peer(arguments)) for _ in range(arguments.rounds)]
    speed, peak, peer_speed, peer_peak = (
        statistics.median(side[part] for side in (pair[who] for pair in rounds))
        for who in (0, 1)
        for part in (0, 1)
    )
    tokens = setting["context"] * setting["batch"]
    label = (
        f"lm train step, {arguments.setting}: context {setting['context']}, batch "
        f"{setting['batch']}"
    )
    result = {
        "operator": "lm train",
        "setting": label + (f", windows {WINDOW[0]} × {WINDOW[1]}" if setting["every"] else ""),
        "bf16": arguments.bf16,
        "threads": arguments.threads,
        "peer": "same model",
        "composite": arguments.composite if setting["every"] else None,
        "tokens_per_second": speed,
        "peer_tokens_per_second": peer_speed,
        "milliseconds": 1e3 * tokens / speed,
        "peer_milliseconds": 1e3 * tokens / peer_speed,
        "speedup": speed / peer_speed,
        "peak_bytes": peak,
        "peer_peak_bytes": peer_peak,
    }
    print(json.dumps(result, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
