"""Attention layers with every selection, and their inputs."""

from __future__ import annotations

import torch

from nsimplex import nn

T, DIM, HEADS = 7, 24, 4

EDGES = torch.tensor([[0, 1], [1, 0], [1, 4], [2, 2], [3, 6], [4, 3], [5, 0], [6, 5], [0, 6]])


def graph() -> torch.Tensor:
    """bool [T, T], the adjacency of EDGES."""
    dense = torch.zeros(T, T, dtype=torch.bool)
    dense[EDGES[:, 0], EDGES[:, 1]] = True
    return dense


LIGHT = dict(heads=2, index_dim=4)

#: By name: what ``select`` is, freshly made.
SELECTIONS = {
    "window": lambda: None,
    "topk": lambda: nn.TopK(3, LIGHT, loss=0.5),
    "topk per axis": lambda: nn.TopK((2, 4), LIGHT, loss=0.5),
    "path": lambda: nn.Path(3, LIGHT, loss=0.5),
    "neighbours": lambda: nn.Neighbours(graph()),
    "linear": lambda: nn.Linear("elu"),
    "union": lambda: nn.Window(2) | nn.Sinks(1) | nn.TopK(2, LIGHT, loss=0.5),
    "union per axis": lambda: nn.Window(2) | nn.TopK((1, 3), LIGHT, loss=0.5),
}


def layer(name: str, dtype=torch.float64, seed: int = 1, **options) -> nn.SimplicialAttention:
    torch.manual_seed(seed)
    causal = options.pop("causal", name != "neighbours")
    made = nn.SimplicialAttention(
        DIM, HEADS, select=SELECTIONS[name](), causal=causal, dtype=dtype, **options
    )
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made


def tokens(batch: int = 2, dtype=torch.float64, seed: int = 0, length: int = T) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, length, DIM, generator=generator, dtype=torch.float64).to(dtype)


def loss_of(module: nn.SimplicialAttention, out: torch.Tensor) -> torch.Tensor:
    loss = (out - 0.3).float().square().mean()
    auxiliary = getattr(module, "auxiliary_loss", None)
    return loss if auxiliary is None else loss + auxiliary.float()


#: Further layers, by name.
MORE = {
    "orders": lambda: nn.SimplicialAttention(DIM, HEADS, orders=[1, 1, 2, 2], causal=True),
    "faces": lambda: nn.SimplicialAttention(DIM, HEADS, face=True, causal=True),
    "sink": lambda: nn.SimplicialAttention(
        DIM, HEADS, normalizer="softmax_sink", augment=True, bias=True, causal=True
    ),
    "reducer": lambda: nn.SimplicialAttention(
        DIM, HEADS, reduce="mlp", select=SELECTIONS["topk"](), causal=True
    ),
    "softmax indexer": lambda: nn.SimplicialAttention(
        DIM,
        HEADS,
        select=nn.TopK(3, dict(scores="softmax", heads=3, index_dim=4), loss=1.0),
        causal=True,
    ),
    "expert choice": lambda: nn.TransformerBlock(
        nn.ExpertChoice(nn.SimplicialAttention(DIM, HEADS, rotary=True, order=1), tokens=4),
        nn.FeedForward(DIM),
    ),
}


def make(name: str, dtype=torch.float32) -> torch.nn.Module:
    torch.manual_seed(1)
    return (layer(name) if name in SELECTIONS else MORE[name]()).to(dtype)


def grads_of(module, run, x):
    module.zero_grad()
    loss = loss_of(module, run(x))
    loss.backward()
    return loss.detach(), {n: p.grad.clone() for n, p in module.named_parameters()}


def assert_same_step(ours, expected, **near):
    torch.testing.assert_close(ours[0], expected[0], **near)
    for name, grad in expected[1].items():
        torch.testing.assert_close(ours[1][name], grad, msg=lambda m, n=name: f"{n}: {m}", **near)


def heads_by_hand(module: nn.SimplicialAttention, x: torch.Tensor):
    """(q, keys, values), from the weights."""
    q, k, d, n = module.heads, module.kv_heads, module.head_dim, module.order
    rows = torch.nn.functional.linear(x, module.qkv.weight, module.qkv.bias)
    parts = rows.split([q * d] + [k * d] * (2 * n), -1)
    parts = [part.unflatten(-1, (-1, d)).transpose(1, 2) for part in parts]
    return parts[0], parts[1 : n + 1], parts[n + 1 :]


def joined_by_hand(module: nn.SimplicialAttention, out: torch.Tensor) -> torch.Tensor:
    return module.output(out.transpose(1, 2).flatten(2))
