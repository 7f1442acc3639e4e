"""From a trained ordinary model to a simplicial one, on Match3.

    python examples/python/upcycling.py                                       # some seconds
    python examples/python/upcycling.py --seeds 3 --before 1000 --steps 1500  # paired seeds

A Llama-shaped model learns the task. Then the same model is trained on, once as it is and once with
pairs of keys in its last layer. Token i of a sequence over Z_M has label 1 if
x_i + x_j + x_k = 0 (mod M) for some j, k <= i.
"""

import argparse
import copy

import torch
from torch.nn import functional as F

try:
    from transformers import LlamaConfig, LlamaForCausalLM

    from nsimplex.transformers import convert, order_shares
except ImportError as missing:
    raise SystemExit(f"this example needs transformers: {missing}") from None

MODULUS, LENGTH = 37, 8


def sequences(count, generator):
    x = torch.randint(MODULUS, (count, LENGTH), generator=generator)
    found = (x[:, :, None, None] + x[:, None, :, None] + x[:, None, None, :]) % MODULUS == 0
    past = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    labels = (found & past[:, :, None] & past[:, None, :]).flatten(2).any(2)
    return x, labels.long()


def logits_of(model, x):
    """Two logits per token, on the places of two tokens that no sequence has."""
    return model(x, use_cache=False).logits[..., MODULUS:]


def train(model, steps, rate, batch, generator):
    # The tuples' first gradients are tiny. A small eps lets them count.
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, eps=1e-15)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - step / steps)
        x, labels = sequences(batch, generator)
        loss = F.cross_entropy(logits_of(model, x).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@torch.no_grad()
def accuracy(model):
    x, labels = sequences(4096, torch.Generator().manual_seed(10**6))
    return (logits_of(model, x).argmax(-1) == labels).float().mean().item()


def guess():
    """Accuracy of the best answer that knows the position alone."""
    _, labels = sequences(4096, torch.Generator().manual_seed(10**6))
    ones = labels.float().mean(0)
    return torch.maximum(ones, 1 - ones).mean().item()


def run(seed, options):
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=MODULUS + 2,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=options.layers,
        num_attention_heads=4,
        max_position_embeddings=LENGTH,
    )
    ordinary = LlamaForCausalLM(config)
    train(
        ordinary, options.before, options.rate, options.batch, torch.Generator().manual_seed(seed)
    )
    before = accuracy(ordinary)
    x, _ = sequences(64, torch.Generator().manual_seed(seed))
    simplicial = convert(copy.deepcopy(ordinary), every=options.layers, window=LENGTH, sample=x)
    assert abs(accuracy(simplicial) - before) < 1e-3  # the same function
    for model in (ordinary, simplicial):  # the same sequences for both
        generator = torch.Generator().manual_seed(seed + 1000)
        train(model, options.steps, options.rate, options.batch, generator)
    shares = torch.cat(order_shares(simplicial, x))
    return before, accuracy(ordinary), accuracy(simplicial), shares


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--before", type=int, default=5, help="steps of the ordinary model")
    parser.add_argument("--steps", type=int, default=5, help="further steps of both")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=3e-3)
    options = parser.parse_args()
    print(f"the position alone: {guess():.3f}", flush=True)
    for seed in range(options.seeds):
        before, ordinary, simplicial, shares = run(seed, options)
        print(
            f"seed {seed}: before {before:.3f}, ordinary {ordinary:.3f}, simplicial "
            f"{simplicial:.3f}, shares {' '.join(f'{share:.3f}' for share in shares.tolist())}",
            flush=True,
        )


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
