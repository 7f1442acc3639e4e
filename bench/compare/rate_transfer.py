"""Does the best learning rate stay the same as a model grows? Three recipes, any order.

    python bench/compare/rate_transfer.py --text some.txt
    python bench/compare/rate_transfer.py --text some.txt --seeds 3 --steps 300
    python bench/compare/rate_transfer.py --text some.txt --seeds 3 --steps 300 --bf16-gradients

Small language models, all of whose layers have order N, grow by the width of their heads. Recipes:

- `adamw`: AdamW with one rate, scales `standard`;
- `mup` and `muon`: the recipes of `nsimplex.nn.parameter_groups`, with the first output weights
  divided by the growth of the width. Scales are `unit`, which are 1 / D for N = 1.

One line of JSON per model and rate has the losses of the seeds on held-out text in nats per byte,
their mean, and the number of seeds that diverged: whose loss is not finite or above that of even
odds, ln 256. Then one line per model has its best rate, the losses there, and how many steps of the
ladder it lies from that of the smallest model.

`--bf16-gradients` rounds every gradient to bfloat16 before it is clipped and used.
`--float32-muon` makes the products of Muon in float32. torch makes them in bfloat16, which takes
ten times as long on processors without such products.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path

import torch

from nsimplex.nn import LanguageModel, LanguageModelOptions, parameter_groups

HEADS = 2
BETAS = (0.9, 0.99)
EVEN_ODDS = math.log(256)  # nats per byte of a model that knows nothing


def batch_of(data, size, context, generator):
    starts = torch.randint(len(data) - context - 1, (size,), generator=generator)
    return torch.stack([data[start : start + context + 1] for start in starts])


def optimizers_of(recipe, model, base, rate):
    adamw = lambda groups: torch.optim.AdamW(groups, lr=rate, betas=BETAS, weight_decay=0.0)
    if recipe == "adamw":
        return [adamw(model.parameters())]
    groups = parameter_groups(model, base, recipe=recipe, lr=rate)
    muon = [torch.optim.Muon(groups.muon)] if groups.muon else []
    return [*muon, adamw(groups.adamw)]


def orthogonal(gradient, coefficients, steps, eps):
    """The orthogonalisation of torch.optim.Muon, in float32."""
    a, b, c = coefficients
    tall = gradient.size(0) > gradient.size(1)
    x = gradient.T if tall else gradient
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if tall else x


def loss_of(arguments, data, held_out, recipe, order, width, rate, seed):
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
    base = LanguageModel(replace(options, dim=arguments.widths[0]))
    if recipe != "adamw":
        with torch.no_grad():
            model.head.weight *= arguments.widths[0] / width
    optimizers = optimizers_of(recipe, model, base, rate)
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
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--bf16-gradients", action="store_true")
    parser.add_argument("--float32-muon", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.float32_muon:
        torch.optim._muon._zeropower_via_newtonschulz = orthogonal
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
                        for seed in range(arguments.seed, arguments.seed + arguments.seeds)
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
