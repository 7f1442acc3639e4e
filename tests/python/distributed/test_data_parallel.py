"""Data parallel and fully sharded training, and checkpoints that other numbers of ranks read."""

from __future__ import annotations

import pytest
import torch
from ranks import run_on_ranks

VOCABULARY, BATCH, LENGTH = 13, 12, 16


def new_model(seed=0):
    from nsimplex import nn

    torch.manual_seed(seed)
    options = nn.LanguageModelOptions(
        vocabulary=VOCABULARY, layers=2, every=2, dim=16, heads=4, context=LENGTH, window=[4, 8]
    )
    return nn.LanguageModel(options)


class Loss(torch.nn.Module):
    """The loss as a forward pass, which the wrappers hook."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, text):
        return self.model.loss(text[:, :-1], text[:, 1:])


def texts(step):
    generator = torch.Generator().manual_seed(100 + step)
    return torch.randint(VOCABULARY, (BATCH, LENGTH + 1), generator=generator)


def part(text, rank, ranks):
    return text.chunk(ranks)[rank]


def train(loss_of, rank, ranks, steps=range(3), optimizer=None):
    """The losses of the steps, averaged over the ranks."""
    if optimizer is None:
        optimizer = torch.optim.AdamW(loss_of.parameters(), lr=1e-2)
    losses = []
    for step in steps:
        optimizer.zero_grad()
        loss = loss_of(part(texts(step), rank, ranks))
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        if ranks > 1:
            torch.distributed.all_reduce(mean)
        losses.append(mean.item() / ranks)
    return losses


def sharded(mesh, checkpointed=False, backend=None, **policy):
    """The loss of a fully sharded model, block by block."""
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    model = new_model()
    for place, block in enumerate(model.blocks):
        if checkpointed:
            block = model.blocks[place] = checkpoint_wrapper(block)
        if backend is not None:
            block.compile(backend=backend)
        fully_shard(block, mesh=mesh, mp_policy=MixedPrecisionPolicy(**policy))
    loss_of = Loss(model)
    fully_shard(loss_of, mesh=mesh, mp_policy=MixedPrecisionPolicy(**policy))
    return loss_of


def wrapped(rank, ranks, backend="aot_eager"):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.nn.parallel import DistributedDataParallel

    import nsimplex.distributed

    mesh = init_device_mesh("cpu", (ranks,))
    found = {"one process": train(Loss(new_model()), 0, 1)}
    found["DDP"] = train(DistributedDataParallel(Loss(new_model())), rank, ranks)
    found["FSDP2"] = train(sharded(mesh), rank, ranks)
    found["FSDP2, checkpointed"] = train(sharded(mesh, checkpointed=True), rank, ranks)
    found["FSDP2, compiled"] = train(sharded(mesh, backend=backend), rank, ranks)
    narrow = dict(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    found["FSDP2, bf16"] = train(sharded(mesh, **narrow), rank, ranks)
    with nsimplex.distributed.context_parallel(mesh) as context:

        class Shards(Loss):
            def forward(self, text):
                tokens, targets = (context.shard(x) for x in (text[:, :-1], text[:, 1:]))
                return self.model.loss(tokens, targets)

        model = DistributedDataParallel(Shards(new_model()), process_group=mesh.get_group())
        losses, optimizer = [], torch.optim.AdamW(model.parameters(), lr=1e-2)
        for step in range(3):
            optimizer.zero_grad()
            loss = model(texts(step))
            loss.backward()
            optimizer.step()
            mean = loss.detach().clone()
            torch.distributed.all_reduce(mean)
            losses.append(mean.item() / ranks)
        found["DDP, context parallel"] = losses
    return found


def check(found, places=1e-5):
    want = torch.tensor(found.pop("one process"))
    narrow = torch.tensor(found.pop("FSDP2, bf16"))
    assert (narrow - want).abs().max() < 3e-2
    for name, losses in found.items():
        assert (torch.tensor(losses) - want).abs().max() < places, (name, losses, want)
    assert want[-1] < want[0]


def test_wrappers_have_the_losses_of_one_process():
    for found in run_on_ranks(2, wrapped):
        check(found)


@pytest.mark.slow
def test_wrappers_with_inductor_on_four_ranks():
    for found in run_on_ranks(4, wrapped, "inductor"):
        check(found)


def both(rank, ranks):
    """Fully sharded over one dimension of the mesh, tensor parallel over the other."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    import nsimplex.distributed

    mesh = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("data", "tensor"))
    want = train(Loss(new_model()), 0, 1)
    model = nsimplex.distributed.tensor_parallel(new_model(), mesh["tensor"])
    for block in model.blocks:
        fully_shard(block, mesh=mesh["data"])
    loss_of = Loss(model)
    fully_shard(loss_of, mesh=mesh["data"])
    optimizer = torch.optim.AdamW(loss_of.parameters(), lr=1e-2, foreach=False)
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        loss = loss_of(part(texts(step), mesh["data"].get_local_rank(), 2))
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        torch.distributed.all_reduce(mean)
        losses.append(mean.item() / ranks)
    return (torch.tensor(losses) - torch.tensor(want)).abs().max().item()


def test_fully_sharded_and_tensor_parallel():
    for error in run_on_ranks(4, both):
        assert error < 1e-5


def states(loss_of, optimizer):
    from torch.distributed.checkpoint.state_dict import get_state_dict

    model, moments = get_state_dict(loss_of, optimizer)
    return {"model": model, "optimizer": moments}


def save(rank, ranks, folder):
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.device_mesh import init_device_mesh

    loss_of = sharded(init_device_mesh("cpu", (ranks,)))
    optimizer = torch.optim.AdamW(loss_of.parameters(), lr=1e-2)
    train(loss_of, rank, ranks, range(2), optimizer)
    checkpoint.save(states(loss_of, optimizer), checkpoint_id=folder)
    return train(loss_of, rank, ranks, range(2, 4), optimizer)


def load(rank, ranks, folder):
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import set_state_dict
    from torch.distributed.device_mesh import init_device_mesh

    loss_of = sharded(init_device_mesh("cpu", (ranks,)))
    with torch.no_grad():
        for parameter in loss_of.parameters():
            parameter.zero_()
    optimizer = torch.optim.AdamW(loss_of.parameters(), lr=1e-2)
    state = states(loss_of, optimizer)
    checkpoint.load(state, checkpoint_id=folder)
    set_state_dict(
        loss_of,
        optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
    )
    return train(loss_of, rank, ranks, range(2, 4), optimizer)


def test_a_checkpoint_of_two_ranks_goes_on_with_one_three_and_four(tmp_path):
    folder = str(tmp_path / "checkpoint")
    (want, _) = run_on_ranks(2, save, folder)
    for ranks in (1, 3, 4):
        for losses in run_on_ranks(ranks, load, folder):
            assert (torch.tensor(losses) - torch.tensor(want)).abs().max() < 1e-5, ranks


def tensor_parallel_state(rank, ranks, folder, saves):
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.device_mesh import init_device_mesh

    import nsimplex.distributed

    model = new_model(seed=0 if saves else 1)
    nsimplex.distributed.tensor_parallel(model, init_device_mesh("cpu", (ranks,)))
    state = model.state_dict()
    if saves:
        checkpoint.save(state, checkpoint_id=folder)
    else:
        checkpoint.load(state, checkpoint_id=folder)
        model.load_state_dict(state)
    text = texts(0)
    return model.loss(text[:, :-1], text[:, 1:]).item()


def test_a_tensor_parallel_checkpoint_of_two_ranks_is_read_by_one_and_four(tmp_path):
    folder = str(tmp_path / "checkpoint")
    want, _ = run_on_ranks(2, tensor_parallel_state, folder, True)
    for ranks in (1, 4):
        for loss in run_on_ranks(ranks, tensor_parallel_state, folder, False):
            assert abs(loss - want) < 1e-5
