"""Tensor parallel layers and models: losses, gradients and states of one process."""

from __future__ import annotations

import copy

import pytest
import torch
from ranks import run_on_ranks

#: Layers by their arguments, all with 12 channels.
LAYERS = {
    "windows": dict(heads=4, window=[3, 9]),
    "grouped": dict(heads=4, kv_heads=2, window=[3, 9], bias=True),
    "one key head": dict(heads=4, kv_heads=1, head_dim=3, norm="qkv"),
    "three key heads": dict(heads=12, kv_heads=3, head_dim=4),
    "sink": dict(heads=4, kv_heads=1, normalizer="softmax_sink"),
    "rotary determinant": dict(heads=4, form="determinant", head_dim=6, rotary=True),
    "orders": dict(heads=8, orders=[1] * 4 + [2] * 4, head_dim=4, rotary=True, window=4),
    "linear": dict(heads=4, select="Linear()"),
    "topk": dict(heads=4, select="TopK(4)"),
    "learned reducer": dict(heads=4, select="TopK(3)", reduce="mlp"),
    "contexts": dict(heads=4, kv_heads=1, context_dims=[5, 7], causal=False),
}


def whole_gradients(model):
    """Packed and whole, by the names of one process."""
    from torch.distributed.tensor import DTensor

    found = {}
    for name, parameter in model.named_parameters():
        grad = parameter.grad
        if grad is None:
            continue
        grad = grad.full_tensor() if isinstance(grad, DTensor) else grad
        path, inside, rest = name.rpartition("parts.")
        name = path + rest.split(".", 1)[1] if inside else name
        found[name] = torch.cat([found[name], grad]) if name in found else grad
    return found


def difference(got, want):
    assert got.keys() == want.keys()
    return max(
        ((got[name] - want[name]).abs().max() / (1e-3 + want[name].abs().max())).item()
        for name in want
    )


def layers(rank, ranks):
    from torch.distributed.device_mesh import init_device_mesh

    import nsimplex.distributed
    from nsimplex import nn

    mesh, found = init_device_mesh("cpu", (ranks,)), {}
    for name, options in LAYERS.items():
        torch.manual_seed(0)
        options = dict(causal=True) | options
        if "select" in options:
            options["select"] = eval(options["select"], vars(nn))
        layer = nn.SimplicialAttention(12, **options).double()
        x = torch.randn(2, 16, 12).double().requires_grad_()
        weight = torch.randn(2, 16, 12).double()
        contexts = [torch.randn(2, 9, width).double() for width in options.get("context_dims", ())]
        results = []
        divided = nsimplex.distributed.tensor_parallel(copy.deepcopy(layer), mesh)
        state = nsimplex.distributed.gather_state_dict(divided)
        same = layer.state_dict()
        assert state.keys() == same.keys() and all(torch.equal(state[n], same[n]) for n in same)
        for model in (layer, divided):
            x.grad = None
            out = model(x, contexts)
            (out * weight).sum().backward()
            results.append((out.detach(), x.grad, whole_gradients(model)))
        (out, grad, wanted), (own_out, own_grad, got) = results
        found[name] = max(
            (own_out - out).abs().max().item(),
            (own_grad - grad).abs().max().item(),
            difference(got, wanted),
        )
    return found


@pytest.mark.parametrize("ranks", [2, 4])
def test_layers_equal_one_process(ranks):
    for found in run_on_ranks(ranks, layers):
        assert {name: error for name, error in found.items() if not error < 1e-9} == {}


def trained(rank, ranks, options):
    """The largest difference of losses and gradients in three steps of training."""
    from torch.distributed.device_mesh import init_device_mesh

    import nsimplex.distributed
    from nsimplex import nn

    mesh = init_device_mesh("cpu", (ranks,))
    torch.manual_seed(0)
    options = nn.LanguageModelOptions(
        vocabulary=13, layers=2, every=2, dim=16, heads=4, context=16, window=[4, 8], **options
    )
    whole = nn.LanguageModel(options)
    torch.manual_seed(rank)  # the weights of rank 0 count
    divided = nn.LanguageModel(options)
    nsimplex.distributed.tensor_parallel(divided, mesh)
    nsimplex.distributed.scatter_state_dict(divided, whole.state_dict())
    text = torch.randint(13, (2, 17), generator=torch.Generator().manual_seed(3))
    errors = []
    optimizers = [torch.optim.SGD(each.parameters(), 0.1) for each in (whole, divided)]
    for _ in range(3):
        losses = []
        for model, optimizer in zip((whole, divided), optimizers):
            optimizer.zero_grad()
            loss = model.loss(text[:, :-1], text[:, 1:])
            loss.backward()
            losses.append(loss.item())
        errors.append(abs(losses[0] - losses[1]))
        errors.append(difference(whole_gradients(divided), whole_gradients(whole)))
        for optimizer in optimizers:
            optimizer.step()
    state = nsimplex.distributed.gather_state_dict(divided)
    errors.append(difference(state, whole.state_dict()))
    return max(errors)


@pytest.mark.parametrize(
    "options", [dict(kv_heads=2), dict(tied=False, mlp="gelu", normalizer="softmax_sink")]
)
def test_a_language_model_trains_as_on_one_process(options):
    for error in run_on_ranks(4, trained, options):
        assert error < 1e-5


def plans(rank, ranks):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module

    from nsimplex import nn
    from nsimplex.distributed import (
        FeedForwardParallel,
        HeadParallel,
        scatter_state_dict,
        tensor_parallel,
        tensor_parallel_plan,
    )

    mesh, said = init_device_mesh("cpu", (ranks,)), []
    torch.manual_seed(0)
    attention = nn.SimplicialAttention(8, 4, causal=True)
    block = nn.TransformerBlock(attention, nn.FeedForward(8, 12))
    plan = tensor_parallel_plan(block)
    said.append(sorted(plan))
    x = torch.randn(1, 6, 8)
    want = block(x)
    parallelize_module(block, mesh, {"attention": HeadParallel(), "mlp": FeedForwardParallel()})
    said.append((block(x) - want).abs().max().item() < 1e-5)
    light = dict(indexer=dict(source="light"))
    for call in (
        lambda: tensor_parallel(nn.SimplicialAttention(9, 3), mesh),
        lambda: tensor_parallel(nn.FeedForward(8, 9), mesh),
        lambda: tensor_parallel(torch.nn.Linear(2, 2), mesh),
        lambda: tensor_parallel(block, init_device_mesh("cpu", (ranks, 1))),
        lambda: tensor_parallel(
            nn.SimplicialAttention(8, 2, select=nn.TopK(2, loss=0.5, **light)), mesh
        ),
        lambda: scatter_state_dict(block, {}),
    ):
        try:
            call()
            said.append("no error")
        except ValueError as error:
            said.append(str(error))
    return said


def test_plans_and_errors():
    for said in run_on_ranks(2, plans):
        assert said == [
            ["attention", "mlp"],
            True,
            "[SimplicialAttention] heads: expected a multiple of 2 ranks, got 3",
            "[FeedForward] hidden: expected a multiple of 2 ranks, got 9",
            "[tensor_parallel] model: expected attention or feed-forward layers of nsimplex, got "
            "Linear without any",
            "[tensor_parallel] mesh: expected one dimension, got 2; take one of them by its name, "
            "mesh['name']",
            "[SimplicialAttention] loss: expected 0 with HeadParallel, got 0.5",
            "[scatter_state_dict] state: expected attention_norm.weight, got none",
        ]
