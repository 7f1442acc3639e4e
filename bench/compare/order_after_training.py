"""Language models whose order is changed after training.

    python bench/compare/order_after_training.py --text some.txt
    python bench/compare/order_after_training.py --text some.txt --steps 1000 --seeds 3

Trains a model with simplicial layers of order 2 for each scale, and one of order 1, on the same
batches. Then the order of the trained layers goes down from 2 to 1 without training: the last key
and value are blended with ones (nsimplex.continuous_order). One line of JSON per model and order
has the loss on held-out text in nats per byte. With scale unit the factors follow the order, with
scale standard they stay as they are.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

import nsimplex
from nsimplex.nn import LanguageModel, LanguageModelOptions, SimplicialAttention

ORDERS = (2.0, 1.95, 1.9, 1.75, 1.5, 1.25, 1.0)


def batch_of(data, size, context, generator):
    starts = torch.randint(len(data) - context - 1, (size,), generator=generator)
    return torch.stack([data[start : start + context + 1] for start in starts])


def trained_model(arguments, data, order, scale, seed):
    options = LanguageModelOptions(
        layers=arguments.layers,
        dim=arguments.dim,
        heads=arguments.heads,
        context=arguments.context,
        order=order,
        every=2,
        window=[arguments.window],
        scale=scale,
        norm=arguments.norm,
    )
    model = LanguageModel(options, torch.Generator().manual_seed(seed))
    optimizer = torch.optim.AdamW(model.parameters(), arguments.rate, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, arguments.rate, arguments.steps, pct_start=0.1
    )
    generator = torch.Generator().manual_seed(seed)
    for _ in range(arguments.steps):
        tokens = batch_of(data, arguments.batch, arguments.context, generator)
        loss = model.loss(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model


class AtOrder(torch.nn.Module):
    """A trained layer at an order from N - 1 to N."""

    def __init__(self, layer: SimplicialAttention, order: float, scale: str) -> None:
        super().__init__()
        self.layer, self.at, self.scale = layer, order, scale

    def forward(self, x):
        query, keys, values = self.layer._heads_of(x)
        keys, values, unit = nsimplex.continuous_order(keys, values, self.at)
        options = dict(self.layer.attention_options)
        if self.scale == "unit":
            options["scale"] = unit
        return self.layer._join_heads(nsimplex.attention(query, keys, values, **options))


@torch.no_grad()
def loss_at(model, order, tokens):
    x = model.embedding(tokens[:, :-1])
    for block in model.blocks:
        layer = block.attention
        if layer.order > 1:
            layer = AtOrder(layer, order, model.options.scale)
        x = x + layer(block.attention_norm(x))
        x = x + block.mlp(block.mlp_norm(x))
    logits = model.norm(x) @ model.embedding.weight.T
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).item()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", required=True)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--window", type=int, default=16)
    parser.add_argument("--norm", default="qkv")
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    bytes_ = bytearray(Path(arguments.text).read_bytes())
    data = torch.frombuffer(bytes_, dtype=torch.uint8).long()
    cut = len(data) * 9 // 10
    held_out = batch_of(data[cut:], 64, arguments.context, torch.Generator().manual_seed(0))
    for seed in range(1, arguments.seeds + 1):
        for order, scale in [(2, "unit"), (2, "standard"), (1, "unit"), (1, "standard")]:
            model = trained_model(arguments, data[:cut], order, scale, seed)
            for now in ORDERS if order > 1 else (1.0,):
                loss = round(loss_at(model, now, held_out), 4)
                line = {"seed": seed, "trained": order, "scale": scale, "order": now, "loss": loss}
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
