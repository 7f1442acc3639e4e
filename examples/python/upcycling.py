"""From a trained ordinary model to a simplicial one, on Match3 or on a text.

    python examples/python/upcycling.py                                       # some seconds
    python examples/python/upcycling.py --seeds 3 --before 1000 --steps 1500  # paired seeds
    python examples/python/upcycling.py --text FILE --layers 4 --dim 128 --before 1000 --steps 1000

A Llama-shaped model learns the task. Then the same model is trained on, once as it is and once with
pairs of keys in its last layer. Both see the same sequences.

Match3: token i of a sequence over Z_M has label 1 if x_i + x_j + x_k = 0 (mod M) for some
j, k <= i. The score is the accuracy. A text is read as bytes, and its last tenth is held out. The
score is the loss there in nats per byte.
"""

import argparse
import copy
import math
import statistics
from pathlib import Path

import torch
from torch.nn import functional as F

try:
    from transformers import LlamaConfig, LlamaForCausalLM

    from nsimplex.transformers import convert, order_shares
except ImportError as missing:
    raise SystemExit(f"this example needs transformers: {missing}") from None

T_QUANTILES = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571}  # 0.975, seeds - 1 degrees


class Match3:
    modulus, length = 37, 8
    vocabulary = modulus + 2  # the answers are the logits of two tokens that no sequence has
    score = "accuracy"

    def batch(self, count, generator):
        x = torch.randint(self.modulus, (count, self.length), generator=generator)
        found = (x[:, :, None, None] + x[:, None, :, None] + x[:, None, None, :]) % self.modulus
        past = torch.ones(self.length, self.length, dtype=torch.bool).tril()
        labels = ((found == 0) & past[:, :, None] & past[:, None, :]).flatten(2).any(2)
        return x, labels.long()

    held_out = batch

    def logits(self, model, x):
        return model(x, use_cache=False).logits[..., self.modulus :]

    def measure(self, logits, labels):
        return (logits.argmax(-1) == labels).float().mean().item()

    def describe(self):
        _, labels = self.batch(4096, torch.Generator().manual_seed(10**6))
        ones = labels.float().mean(0)
        return f"the position alone: {torch.maximum(ones, 1 - ones).mean().item():.3f}"


class Text:
    vocabulary, length = 256, 64
    score = "loss"

    def __init__(self, file):
        data = torch.frombuffer(bytearray(Path(file).read_bytes()), dtype=torch.uint8).long()
        self.training, self.rest = data.tensor_split([len(data) * 9 // 10])
        if len(self.rest) <= self.length + 1:
            least = 10 * (self.length + 2)
            raise SystemExit(f"--text: at least {least} bytes expected, {file} has {len(data)}")

    def windows(self, data, count, generator):
        starts = torch.randint(len(data) - self.length, (count, 1), generator=generator)
        tokens = data[starts + torch.arange(self.length + 1)]
        return tokens[:, :-1], tokens[:, 1:]

    def batch(self, count, generator):
        return self.windows(self.training, count, generator)

    def held_out(self, count, generator):
        return self.windows(self.rest, count, generator)

    def logits(self, model, x):
        return model(x, use_cache=False).logits

    def measure(self, logits, labels):
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten()).item()

    def describe(self):
        return f"{len(self.training)} bytes to train on, {len(self.rest)} held out"


def train(task, model, steps, options, generator):
    # The tuples' first gradients are tiny. A small eps lets them count.
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, eps=1e-15)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = options.rate * (1 - step / steps)
        x, labels = (t.to(options.device) for t in task.batch(options.batch, generator))
        loss = F.cross_entropy(task.logits(model, x).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@torch.no_grad()
def score(task, model, options):
    generator = torch.Generator().manual_seed(10**6)
    parts = []
    for _ in range(8):  # of equal size, so that the mean of the parts is that of all
        x, labels = (t.to(options.device) for t in task.held_out(512, generator))
        parts.append(task.measure(task.logits(model, x), labels))
    return statistics.mean(parts)


def run(task, seed, options):
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=task.vocabulary,
        hidden_size=options.dim,
        intermediate_size=2 * options.dim,
        num_hidden_layers=options.layers,
        num_attention_heads=4,
        max_position_embeddings=task.length,
    )
    ordinary = LlamaForCausalLM(config).to(options.device)
    train(task, ordinary, options.before, options, torch.Generator().manual_seed(seed))
    before = score(task, ordinary, options)
    x = task.batch(64, torch.Generator().manual_seed(seed))[0].to(options.device)
    simplicial = convert(
        copy.deepcopy(ordinary), every=options.layers, window=task.length, sample=x
    )
    assert abs(score(task, simplicial, options) - before) < 1e-3  # the same function
    for model in (ordinary, simplicial):  # the same sequences for both
        generator = torch.Generator().manual_seed(seed + 1000)
        train(task, model, options.steps, options, generator)
    after = [score(task, model, options) for model in (ordinary, simplicial)]
    return before, *after, torch.cat(order_shares(simplicial, x)).tolist()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", help="a file; default: Match3")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--before", type=int, default=5, help="steps of the ordinary model")
    parser.add_argument("--steps", type=int, default=5, help="further steps of both")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    task = Text(options.text) if options.text else Match3()
    print(task.describe(), flush=True)
    differences = []
    for seed in range(options.seed, options.seed + options.seeds):
        before, ordinary, simplicial, shares = run(task, seed, options)
        differences.append(simplicial - ordinary)
        print(
            f"seed {seed}: {task.score} before {before:.4f}, ordinary {ordinary:.4f}, simplicial "
            f"{simplicial:.4f}, shares {' '.join(f'{share:.3f}' for share in shares)}",
            flush=True,
        )
    if (count := len(differences)) in T_QUANTILES:
        mean, deviation = statistics.mean(differences), statistics.stdev(differences)
        half = T_QUANTILES[count] * deviation / math.sqrt(count)
        interval = f"[{mean - half:+.4f}, {mean + half:+.4f}]"
        print(f"simplicial minus ordinary: {mean:+.4f}, 95 % interval {interval}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
