"""Layers with every selection under what PyTorch does to modules."""

import copy
import io
import pickle
import socket

import pytest
import torch
from layer_cases import (
    DIM,
    HEADS,
    MORE,
    SELECTIONS,
    assert_same_step,
    grads_of,
    loss_of,
    make,
    tokens,
)
from torch.utils.checkpoint import checkpoint

from nsimplex import nn

NAMES = [*SELECTIONS, *MORE]


def test_compile_with_a_graph_given_late():
    x = tokens(dtype=torch.float32)
    linked = torch.rand(2, 7, 7, generator=torch.Generator().manual_seed(1)) > 0.6
    edges = torch.tensor([[0, 1], [3, 2], [3, 2], [6, 0]])
    for select in (nn.Neighbours(), nn.Neighbours() | nn.Window(2)):
        module = nn.SimplicialAttention(DIM, HEADS, select=select)
        for given in (linked, linked[0], edges):
            torch._dynamo.reset()
            compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
            torch.testing.assert_close(compiled(x, adjacency=given), module(x, adjacency=given))


@pytest.mark.parametrize("name", ["topk", "path", "union", "linear", "window", "neighbours"])
def test_compile_with_padding(name):
    torch._dynamo.reset()
    module, x = make(name), tokens(dtype=torch.float32)
    given = dict(key_lengths=torch.tensor([7, 4]))
    if name not in ("linear", "window"):
        given |= dict(cu_seqlens=torch.tensor([0, 4, 7]))
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, **given), module(x, **given))


@pytest.mark.parametrize("name", NAMES)
def test_autocast(name):
    module, x = make(name), tokens(dtype=torch.float32)

    def run(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return module(x)

    loss, grads = grads_of(module, run, x)
    assert abs(loss - grads_of(module, module, x)[0]) < 0.1
    assert all(grad.isfinite().all() and grad.dtype == torch.float32 for grad in grads.values())


def test_checkpointing_repeats_dropout():
    module, x = make("window"), tokens(dtype=torch.float32)
    module.dropout = 0.5
    kept = lambda x: checkpoint(module, x, use_reentrant=False)
    torch.manual_seed(3)
    ours = grads_of(module, kept, x)
    torch.manual_seed(3)
    assert_same_step(ours, grads_of(module, module, x))


@pytest.mark.parametrize("name", NAMES)
def test_copies(name):
    module, x = make(name), tokens(dtype=torch.float32)
    expected = grads_of(module, module, x)  # leaves the tensors of a pass in the module
    stored = io.BytesIO()
    torch.save(module, stored)
    stored.seek(0)
    for copied in (
        copy.deepcopy(module),
        pickle.loads(pickle.dumps(module)),
        torch.load(stored, weights_only=False),
    ):
        assert_same_step(grads_of(copied, copied, x), expected)
    assert all(part.auxiliary_loss is not None for part in [module] if "topk" in name)


def make_from(name, select):
    """A module with the graph of a selection that was made elsewhere."""
    if name in MORE:
        return MORE[name]()
    return nn.SimplicialAttention(DIM, HEADS, select=select, causal=name != "neighbours")


@pytest.mark.parametrize("name", NAMES)
def test_from_the_meta_device(name):
    select = SELECTIONS[name]() if name in SELECTIONS else None
    with torch.device("meta"):
        module = make_from(name, select)
    assert all(parameter.is_meta for parameter in module.parameters())
    module.to_empty(device="cpu")
    module.reset_parameters(torch.Generator().manual_seed(2))
    expected = make(name)
    expected.reset_parameters(torch.Generator().manual_seed(2))
    x = tokens(dtype=torch.float32)
    torch.testing.assert_close(module(x), expected(x))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("assign", [False, True])
def test_weights_fill_a_module_of_the_meta_device(name, assign):
    """What is in no state dict, such as the table of a graph, is there all the same."""
    expected = make(name)
    select = SELECTIONS[name]() if name in SELECTIONS else None
    with torch.device("meta"):
        module = make_from(name, select)
    if not assign:
        module.to_empty(device="cpu")
        for buffer in module.buffers():  # to_empty() leaves what the memory held
            buffer.fill_(3)
    module.load_state_dict(expected.state_dict(), assign=assign)
    x = tokens(dtype=torch.float32)
    torch.testing.assert_close(module(x), expected(x))


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _train(rank, port, names, results):
    address = f"tcp://127.0.0.1:{port}"
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", address, rank=rank, world_size=2)
    for name in names:
        module = make(name)
        parallel = torch.nn.parallel.DistributedDataParallel(module)
        x = tokens(4, dtype=torch.float32)[rank::2]
        for _ in range(2):
            module.zero_grad()
            loss_of(module, parallel(x)).backward()
        if rank == 0:
            results[name] = {n: p.grad.numpy().copy() for n, p in module.named_parameters()}
    torch.distributed.destroy_process_group()


def test_data_parallel():
    """Two processes: the gradients are the means over both halves of the batch."""
    context = torch.multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        results = manager.dict()
        torch.multiprocessing.spawn(_train, (_free_port(), NAMES, results), nprocs=2)
        results = dict(results)
    for name in NAMES:
        module, x = make(name), tokens(4, dtype=torch.float32)
        halves = [grads_of(module, module, x[rank::2])[1] for rank in (0, 1)]
        for key, grad in halves[0].items():
            mean = (grad + halves[1][key]) / 2
            torch.testing.assert_close(
                torch.from_numpy(results[name][key]), mean, msg=lambda m, n=name: f"{n}: {m}"
            )
