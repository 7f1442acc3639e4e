"""Tokens per second of training: the program, the Python model, the same model in plain PyTorch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import torch
from setups import Launches, Setup
from torch import nn
from torch.nn import functional as F

import nsimplex
from nsimplex.nn import LanguageModel, LanguageModelOptions

WARM = "optional"
WORDS = "the king of men and his old friend speak now to all good people in this dark hour".split()


def text(letters: int) -> str:
    """Lines of words in a fixed random order."""
    generator = torch.Generator().manual_seed(4)
    picks = torch.randint(len(WORDS), (letters // 4,), generator=generator).tolist()
    lines = [" ".join(WORDS[i] for i in picks[at : at + 8]) for at in range(0, len(picks), 8)]
    return ".\n".join(lines)[:letters]


def shape(setup: Setup) -> dict:
    return dict(
        layers=setup.size(8, 2),
        dim=setup.size(1024, 32),
        heads=setup.size(16, 2),
        context=setup.size(1024, 24),
    )


class Block(nn.Module):
    """A block of the plain transformer: RMSNorm, causal attention, SwiGLU."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        hidden = 64 * -(-8 * dim // 3 // 64)
        self.gate, self.up = (nn.Linear(dim, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(self.first(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True)
                         .transpose(1, 2).flatten(2))  # fmt: skip
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Plain(nn.Module):
    def __init__(self, layers: int, dim: int, heads: int, context: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(dim)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.embedding.weight)


def simplicial(setup: Setup, **options) -> LanguageModel:
    window = options.pop("window", (setup.size(16, 4), setup.size(256, 8)))
    return LanguageModel(LanguageModelOptions(**shape(setup), window=window, **options))


MODELS = {
    "plain PyTorch, SDPA": lambda setup: Plain(**shape(setup)),
    "LanguageModel, no simplicial layer": lambda setup: simplicial(setup, every=0),
    "LanguageModel, every 4th, 16 x 256": lambda setup: simplicial(setup, every=4),
    "LanguageModel, every layer, 16 x 256": lambda setup: simplicial(setup, every=1),
    "LanguageModel, every 4th, topk": lambda setup: simplicial(
        setup, every=4, sparse="topk", topk=setup.size(64, 4)
    ),
    "LanguageModel, every 4th, linear": lambda setup: simplicial(setup, every=4, sparse="linear"),
}
COMMANDS = {
    "lm train, no simplicial layer": ["--every", "0"],
    "lm train, every 4th, 16 x 256": ["--every", "4"],
}


def items(setup: Setup) -> list[str]:
    names = [*MODELS, *COMMANDS]
    first = ["plain PyTorch, SDPA", "LanguageModel, every 4th, 16 x 256", names[-1]]
    return first + [name for name in names if name not in first]


def train(make, setup: Setup, steps: int) -> dict:
    torch.manual_seed(0)
    model = make(setup).to(setup.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    data = torch.frombuffer(bytearray(text(1 << 16).encode()), dtype=torch.uint8).long()
    context, batch = shape(setup)["context"], setup.size(8, 2)
    starts = torch.arange(batch) * 512
    windows = torch.stack([data[s : s + context + 1] for s in starts]).to(setup.device)
    losses = []

    def step():
        with torch.autocast(setup.device, dtype=torch.bfloat16):
            logits = model(windows[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    with Launches() as launches:
        step()
    step()
    setup.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    setup.synchronize()
    seconds = (time.perf_counter() - begin) / steps
    first, last = float(losses[0]), float(losses[-1])
    return {
        "ok": last < first,
        "tokens_per_second": round(batch * context / seconds),
        "losses": [first, last],
        "parameters": sum(p.numel() for p in model.parameters()),
        "memory": torch.cuda.max_memory_allocated() / 1e9 if setup.device == "cuda" else 0,
        "launches": dict(launches.names),
    }


def command(extra: list[str], setup: Setup) -> dict:
    """What `nsimplex lm train` says at the end of a few steps."""
    program = Path(nsimplex.__file__).parent / "bin" / "nsimplex"
    folder = Path("/tmp/gpu-day-training")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "text.txt").write_text(text(1 << 18))
    torch_libraries = str(Path(torch.__file__).parent / "lib")
    env = {**os.environ, "LD_LIBRARY_PATH": torch_libraries, "OMP_NUM_THREADS": "8"}
    words = [program, "lm", "train", "--text", folder / "text.txt", "--out", folder / "run"]
    words += ["--device", setup.device, "--steps", str(setup.size(40, 4)), "--bf16", "--json"]
    words += ["--batch", str(setup.size(8, 2)), "--eval-every", "0", "--log-every", "2"]
    words += ["--eval-tokens", "1024", "--warmup", "2"]
    sizes = shape(setup)
    sizes["width"] = sizes.pop("dim")
    words += [f"--{name}={value}" for name, value in sizes.items()]
    words += ["--window", f"{setup.size(16, 4)},{setup.size(256, 8)}", *extra]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    file = folder / "run" / "metrics.jsonl"
    metrics = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    rates = [r["tokens_per_second"] for r in metrics if r.get("tokens_per_second")]
    rates = sorted(rates[len(rates) // 3 :])  # the first steps compile and allocate
    record = {
        "ok": done.returncode == 0,
        "tokens_per_second": round(rates[len(rates) // 2]) if rates else None,
    }
    if not record["ok"]:
        record["error"] = (done.stderr or done.stdout)[-500:]
    print(done.stdout[-3000:], done.stderr[-3000:])
    return record


def warm(item: str, setup: Setup) -> dict:
    """Compiles the kernels. Two steps need not lower the loss."""
    return train(MODELS[item], setup, 1) | {"ok": True} if item in MODELS else {}


def run(item: str, setup: Setup) -> dict:
    if item in MODELS:
        return train(MODELS[item], setup, setup.size(10, 2))
    return command(COMMANDS[item], setup)


def lines(records: list[dict]) -> list[str]:
    rates = {r["item"]: r.get("tokens_per_second") for r in records}
    plain = rates.get("plain PyTorch, SDPA")
    table = []
    for item, rate in rates.items():
        if rate:
            share = f", {rate / plain:.2f} of plain PyTorch" if plain else ""
            table.append(f"{item}: {rate} tokens/s{share}")
    return table
