"""A rank on a host of its own: steps of context parallel training, compared with one process.

Prints "step N" after every step and "equal" at the end. With --save it trains a fully sharded model
instead, writes a distributed checkpoint, and prints the losses of the steps that follow as JSON.
"""

import argparse
import datetime
import json
import os
import sys

import torch
import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--save", default="")
    given = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=given.timeout))
    if given.save:
        from test_data_parallel import save

        print(json.dumps(save(dist.get_rank(), dist.get_world_size(), given.save)), flush=True)
        os._exit(0)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.nn.parallel import DistributedDataParallel

    import nsimplex.distributed
    from nsimplex import nn

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    options = dict(causal=True, window=[3, 20])
    alone = nn.SimplicialAttention(16, 4, **options)
    model = nn.SimplicialAttention(16, 4, **options)
    model.load_state_dict(alone.state_dict())
    model = DistributedDataParallel(model)
    optimizers = [torch.optim.SGD(each.parameters(), 0.1) for each in (alone, model)]
    for step in range(given.steps):
        x = torch.randn(2, 32, 16, generator=torch.Generator().manual_seed(step))
        want = alone(x)
        want.square().mean().backward()
        with nsimplex.distributed.context_parallel(mesh) as context:
            out = model(context.shard(x))
            out.square().mean().backward()
            torch.testing.assert_close(out, context.shard(want), rtol=1e-4, atol=1e-5)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        print("step", step, flush=True)
    for a, b in zip(alone.parameters(), model.parameters()):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    print("equal", flush=True)
    sys.stdout.flush()
    os._exit(0)  # a rank that ends first must not make the others fail


if __name__ == "__main__":
    main()
