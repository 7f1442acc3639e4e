"""Does the best learning rate stay the same as a model grows? Three recipes, orders 1 and 2.

    python bench/compare/rate_transfer.py --text some.txt
    python bench/compare/rate_transfer.py --text some.txt --seeds 3 --steps 300
    python bench/compare/rate_transfer.py --text some.txt --seeds 3 --steps 300 --bf16-gradients

Small language models, all of whose layers have order N, grow by the width of their heads. Recipes:

- `adamw`: AdamW with one rate, scales `standard`;
- `mup`: AdamW with the rate of matrices in the blocks and of the output divided by the growth of
  the width (and the first output weights too), scales `unit`, which are 1 / D for N = 1;
- `muon`: torch's Muon for the matrices in the blocks, whose steps have a spectral norm of
  rate * sqrt(max(1, rows / columns)) at every width, scales `unit`; embedding, output and gains
  by AdamW as in `mup`.

One line of JSON per model and rate has the losses of the seeds on held-out text in nats per byte,
their mean, and the number of seeds that diverged: whose loss is not finite or above that of even
odds, ln 256. Then one line per model has its best rate, the losses there, and how many steps of the
ladder it lies from that of the smallest model.

`--bf16-gradients` rounds every gradient to bfloat16 before it is clipped and used.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import torch

from nsimplex.nn import LanguageModel, LanguageModelOptions

HEADS = 2
BETAS = (0.9, 0.99)
EVEN_ODDS = math.log(256)  # nats per byte of a model that knows nothing


def batch_of(data, size, context, generator):
    starts = torch.randint(len(data) - context - 1, (size,), generator=generator)
    return torch.stack([data[start : start + context + 1] for start in starts])


def optimizers_of(recipe, model, rate, growth):
    blocks = [p for n, p in model.named_parameters() if n.startswith("blocks.") and p.dim() == 2]
    others = [p for n, p in model.named_parameters() if p.dim() == 1 or n == "embedding.weight"]
    head = [model.head.weight]
    adamw = lambda groups: torch.optim.AdamW(groups, lr=rate, betas=BETAS, weight_decay=0.0)
    if recipe == "adamw":
        return [adamw([{"params": blocks + others + head}])]
    if recipe == "mup":
        return [adamw([{"params": others}, {"params": blocks + head, "lr": rate / growth}])]
    return [
        torch.optim.Muon(blocks, lr=rate, weight_decay=0.0, adjust_lr_fn="original"),
        adamw([{"params": others}, {"params": head, "lr": rate / growth}]),
    ]


def loss_of(arguments, data, held_out, recipe, order, width, rate, seed):
    growth = width / arguments.widths[0]
    options = LanguageModelOptions(
        layers=2,
        dim=width,
        heads=HEADS,
        context=arguments.context,
        order=order,
        every=1,
        window=[arguments.window],
        scale="standard" if recipe == "adamw" else "unit",
        tied=False,
    )
    model = LanguageModel(options, torch.Generator().manual_seed(seed))
    if recipe != "adamw":
        with torch.no_grad():
            model.head.weight /= growth
    optimizers = optimizers_of(recipe, model, rate, growth)
    first = [[group["lr"] for group in each.param_groups] for each in optimizers]
    generator = torch.Generator().manual_seed(seed)
    warmup = max(arguments.steps // 10, 1)
    for step in range(arguments.steps):
        factor = min((step + 1) / warmup, (arguments.steps - step) / (arguments.steps - warmup))
        for optimizer, rates in zip(optimizers, first):
            for group, own in zip(optimizer.param_groups, rates):
                group["lr"] = own * factor
        tokens = batch_of(data, arguments.batch, arguments.context, generator)
        loss = model.loss(tokens[:, :-1], tokens[:, 1:])
        model.zero_grad()
        loss.backward()
        if arguments.bf16_gradients:
            for weight in model.parameters():
                weight.grad = weight.grad.bfloat16().float()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
    with torch.no_grad():
        return model.loss(held_out[:, :-1], held_out[:, 1:]).item()


def shown(loss):
    return round(loss, 4) if math.isfinite(loss) else None  # JSON has no NaN


def main() -> None:
    numbers = lambda kind: lambda text: [kind(each) for each in text.split(",")]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", required=True)
    parser.add_argument("--recipes", type=lambda text: text.split(","), default="adamw,mup,muon")
    parser.add_argument("--orders", type=numbers(int), default="1,2")
    parser.add_argument("--widths", type=numbers(int), default="32,64,128")
    parser.add_argument(
        "--rates", type=numbers(float), default="0.002,0.004,0.008,0.016,0.032,0.064,0.128"
    )
    parser.add_argument("--context", type=int, default=32)
    parser.add_argument("--window", type=int, default=8)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--bf16-gradients", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    text = bytearray(Path(arguments.text).read_bytes())
    data = torch.frombuffer(text, dtype=torch.uint8).long()
    cut = len(data) * 9 // 10
    held_out = batch_of(data[cut:], 64, arguments.context, torch.Generator().manual_seed(0))
    best = {}
    for recipe in arguments.recipes:
        for order in arguments.orders:
            for width in arguments.widths:
                cell = {"recipe": recipe, "order": order, "width": width}
                means, runs = [], []
                for rate in arguments.rates:
                    losses = [
                        loss_of(arguments, data[:cut], held_out, **cell, rate=rate, seed=seed)
                        for seed in range(1, arguments.seeds + 1)
                    ]
                    mean = sum(losses) / len(losses)
                    means.append(mean if math.isfinite(mean) else math.inf)
                    runs.append([shown(loss) for loss in losses])
                    diverged = sum(not loss <= EVEN_ODDS for loss in losses)
                    line = {"rate": rate, "loss": shown(mean), "losses": runs[-1]}
                    print(json.dumps(cell | line | {"diverged": diverged}), flush=True)
                place = means.index(min(means))
                smallest = best.setdefault((recipe, order), place)
                found = {"best_rate": arguments.rates[place], "best_loss": shown(means[place])}
                found |= {"best_losses": runs[place]}
                print(json.dumps(cell | found | {"moved": place - smallest}), flush=True)


if __name__ == "__main__":
    main()
