"""Layers and models under context_parallel: losses and gradients of one process."""

from __future__ import annotations

import pytest
import torch
from ranks import run_on_ranks

#: Layers by their arguments.
LAYERS = {
    "windows": dict(window=[3, 9]),
    "unbounded": dict(window=[3, -1]),
    "sink": dict(window=[3, 9], normalizer="softmax_sink"),
    "determinant, rotary": dict(window=[3, 9], form="determinant", head_dim=6, rotary=True),
    "orders": dict(window=4, orders=[1, 1, 2, 2], rotary=True, kv_heads=2, head_dim=4),
    "face": dict(window=[3, 5], face=True),
    "linear": dict(select="Linear()"),
    "topk": dict(select="TopK(4, loss=0.5)"),
    "topk per axis": dict(select="TopK([2, 4], loss=0.5)"),
    "path": dict(select="Path(3, loss=0.5)"),
    "union": dict(select="Window(3) | Sinks(2) | TopK(2)"),
    "learned reducer": dict(select="TopK(3)", reduce="mlp"),
}

#: Language models by their options.
MODELS = {
    "window": dict(window=[4, 8]),
    "determinant": dict(window=[4, 8], form="determinant", rotary=True, heads=2, dim=12),
    "topk": dict(sparse="topk", topk=4),
    "linear": dict(sparse="linear"),
}


def gradients(model):
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def difference(got, want):
    assert got.keys() == want.keys(), (sorted(got), sorted(want))
    return max(
        ((got[name] - want[name]).abs().max() / (1e-3 + want[name].abs().max())).item()
        for name in want
    )


def averaged(found, ranks):
    for gradient in found.values():
        torch.distributed.all_reduce(gradient)
        gradient /= ranks
    return found


def layers(rank, ranks):
    from torch.distributed.device_mesh import init_device_mesh

    import nsimplex.distributed
    from nsimplex import nn

    mesh, found = init_device_mesh("cpu", (ranks,)), {}
    for name, options in LAYERS.items():
        torch.manual_seed(0)
        options = dict(options)
        if "select" in options:
            options["select"] = eval(options["select"], vars(nn))
        layer = nn.SimplicialAttention(12, 4, causal=True, **options).double()
        x = torch.randn(2, 24, 12).double().requires_grad_()
        weight, results = torch.randn(2, 24, 12).double(), []
        with nsimplex.distributed.context_parallel(mesh) as context:
            own = context.shard(x.detach()).clone().requires_grad_()
            part = context.shard(weight)
            for inside, tokens, w in ((False, x, weight), (True, own, part)):
                layer.zero_grad()
                if inside:
                    out = layer(tokens)
                else:
                    before = nsimplex._sequence_shards.set_sequence_shards(None)
                    out = layer(tokens)
                    nsimplex._sequence_shards.set_sequence_shards(before)
                loss = (out * w).sum(1).mean() * (ranks if inside else 1)
                extra = getattr(layer, "auxiliary_loss", None)
                if extra is not None:
                    loss = loss + extra
                loss.backward()
                results.append((out.detach(), tokens.grad, gradients(layer)))
            (out, grad, wanted), (own_out, own_grad, got) = results
            errors = [
                (own_out - context.shard(out)).abs().max().item(),
                (own_grad / ranks - context.shard(grad)).abs().max().item(),
                difference(averaged(got, ranks), wanted),
            ]
        found[name] = max(errors)
    return found


@pytest.mark.parametrize("ranks", [2, 3])
def test_layers_equal_one_process(ranks):
    for found in run_on_ranks(ranks, layers):
        assert {name: error for name, error in found.items() if not error < 1e-9} == {}


def models(rank, ranks):
    from torch.distributed.device_mesh import init_device_mesh

    import nsimplex.distributed
    from nsimplex import nn

    mesh, found = init_device_mesh("cpu", (ranks,)), {}
    for name, given in MODELS.items():
        options = dict(vocabulary=11, layers=2, every=2, dim=16, heads=2, context=24) | given
        torch.manual_seed(0)
        model = nn.LanguageModel(nn.LanguageModelOptions(**options))
        text = torch.randint(11, (2, 25))
        tokens, targets = text[:, :-1], text[:, 1:]
        losses, results = [], []
        for inside in (False, True):
            model.zero_grad()
            if inside:
                with nsimplex.distributed.context_parallel(mesh) as context:
                    loss = model.loss(context.shard(tokens), context.shard(targets))
                    loss.backward()
            else:
                loss = model.loss(tokens, targets)
                loss.backward()
            losses.append(loss.detach())
            results.append(gradients(model))
        torch.distributed.all_reduce(losses[1])
        found[name] = max(
            abs(losses[1] / ranks - losses[0]).item(),
            difference(averaged(results[1], ranks), results[0]),
        )
    return found


def test_language_models_have_the_loss_and_gradients_of_one_process():
    for found in run_on_ranks(4, models):
        assert {name: error for name, error in found.items() if not error < 2e-5} == {}
