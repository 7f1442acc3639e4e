"""Every operator on DTensors: the same numbers and gradients as on one process."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import nullcontext

import pytest
import sharding_cases
import torch
from ranks import run_on_ranks

operators = torch.ops.nsimplex


def tensors_of(tree):
    from torch.utils import _pytree as pytree

    return [x for x in pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


def differentiable(x):
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def loss_of(results):
    terms = [(x - 0.3).square().sum() for x in results if x.is_floating_point() and x.requires_grad]
    return sum(terms) if terms else None


def whole(x):
    return x.full_tensor() if hasattr(x, "full_tensor") else x


def difference(a, b):
    a, b = whole(a), whole(b)
    assert a.shape == b.shape, (a.shape, b.shape)
    if not a.is_floating_point():
        return 0.0 if torch.equal(a, b) else float("inf")
    same = (a == b) | (a.isnan() & b.isnan())
    size = 1 + b.masked_fill(same, 0).abs().max() if b.numel() else 1
    return ((a - b).masked_fill(same, 0).abs().max() / size).item() if a.numel() else 0.0


def compare(name, operator, args, kwargs, mesh, placements):
    """The largest difference of results and gradients from those of whole tensors; placements are
    those of the batch (0), of heads (1), or None: replicated."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.utils import _pytree as pytree

    call = getattr(operators, operator)

    def own(x):
        if not isinstance(x, torch.Tensor):
            return x
        return x.clone().requires_grad_(x.is_floating_point())

    def spread(x):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            return x  # lengths, masks and tables are plain tensors, the same on every rank
        where = [Replicate() if dim is None else Shard(dim) for dim in placements]
        fits = x.dim() == 4 and x.shape == args[0].shape
        return distribute_tensor(x, mesh, where if fits else None).requires_grad_()

    results = []
    for make in (own, spread):
        a, k = pytree.tree_map(make, (args, kwargs))
        out = call(*a, **k)
        out = list(out) if isinstance(out, (tuple, list)) else [out]
        forward = operator.endswith("_reference") or operator == "random_directions"
        loss = None if forward else loss_of(out)
        inputs = [x for x in tensors_of((a, k)) if x.is_floating_point()]
        grads = []
        if loss is not None:
            grads = torch.autograd.grad(whole(loss), inputs, allow_unused=True)
        results.append([*out, *[g for g in grads if g is not None]])
    assert len(results[0]) == len(results[1]), name
    return max(difference(a, b) for a, b in zip(*results))


def all_operators(rank, ranks):
    from torch.distributed.device_mesh import init_device_mesh

    import nsimplex.distributed  # noqa: F401

    line = init_device_mesh("cpu", (ranks,))
    layouts = [(line, [0]), (line, [1]), (line, [None])]
    if ranks == 4:
        square = init_device_mesh("cpu", (2, 2))
        layouts = [(line, [1]), (square, [0, 1])]
    found = {}
    for name, operator, args, kwargs in sharding_cases.calls():
        for mesh, placements in layouts:
            if operator.startswith("topk") and 1 in placements:
                continue
            try:
                found[name, str(placements)] = compare(
                    name, operator, args, kwargs, mesh, placements
                )
            except Exception as error:
                found[name, str(placements)] = str(error)
    return found


@pytest.mark.parametrize("ranks", [2, 4])
def test_every_sharded_operator_gives_the_results_and_gradients_of_whole_tensors(ranks):
    for found in run_on_ranks(ranks, all_operators):
        wrong = {
            name: error
            for name, error in found.items()
            if not (isinstance(error, float) and error < 2e-5)
        }
        assert wrong == {}


def uneven_heads(rank, ranks):
    from torch.distributed.device_mesh import init_device_mesh

    import nsimplex.distributed  # noqa: F401

    mesh = init_device_mesh("cpu", (ranks,))
    found = {}
    for name, heads, kv_heads in sharding_cases.uneven():
        q, keys, values = sharding_cases.tuples(2, heads, kv_heads)
        sink = dict(normalizer="softmax_sink", sink=sharding_cases.draw(heads, seed=5))
        lists = (q, keys, values, *sharding_cases.listed(2, kv_heads))
        for operator, args, kwargs in (
            ("attention", (q, keys, values), sink),
            ("sparse_attention", lists, {}),
            ("separable_attention", (q.exp(), [k.exp() for k in keys], values), {}),
        ):
            found[name, operator] = compare(name, operator, args, kwargs, mesh, [1])
    few = sharding_cases.tuples(1)
    found["fewer entries than ranks"] = compare("", "attention", few, {}, mesh, [0])
    return found


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_heads_that_the_ranks_do_not_divide(ranks):
    for found in run_on_ranks(ranks, uneven_heads):
        assert {name: error for name, error in found.items() if not error < 2e-5} == {}


#: They make tensors of their own beside those of the caller.
COMPOSED = {
    "causal_angles",
    "equivariant_attention_reference",
    "equivariant_linear",
    "graph_derived_features",
    "graph_node_and_edge_features",
}


def whole_operators(rank, ranks):
    """Operators without sharded axes, and those that are composed of others, on whole tensors."""
    import operator_mutations
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import distribute_tensor
    from torch.distributed.tensor.experimental import implicit_replication
    from torch.utils import _pytree as pytree

    import nsimplex.distributed  # noqa: F401

    mesh, found = init_device_mesh("cpu", (ranks,)), {}

    def spread(x):
        floating = isinstance(x, torch.Tensor) and x.is_floating_point()
        return distribute_tensor(x, mesh) if floating else x

    for name, make in operator_mutations.CALLED.items():
        operator, (args, kwargs) = getattr(operators, name), make()
        want = operator(*args, **kwargs)
        args, kwargs = pytree.tree_map(spread, (args, kwargs))
        if name in COMPOSED:
            with pytest.raises(RuntimeError, match=r"^[^\n]*mixed torch.Tensor and DT[^\n]*$"):
                operator(*args, **kwargs)
        with implicit_replication() if name in COMPOSED else nullcontext():
            pairs = zip(tensors_of(operator(*args, **kwargs)), tensors_of(want), strict=True)
            found[name] = max((difference(a, b) for a, b in pairs), default=0.0)
    return found


def test_every_operator_takes_whole_tensors():
    for found in run_on_ranks(2, whole_operators):
        assert {name: error for name, error in found.items() if not error < 2e-5} == {}


def composed(rank, ranks):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.experimental import implicit_replication

    import nsimplex.distributed  # noqa: F401

    mesh, found = init_device_mesh("cpu", (ranks,)), {}
    for name, call, tensors, layouts in sharding_cases.composed():
        for dims in layouts:
            own = [x.clone().requires_grad_() for x in tensors]
            spread = [
                distribute_tensor(x, mesh, [Replicate() if dim is None else Shard(dim)])
                for x, dim in zip(tensors, dims)
            ]
            results = []
            with implicit_replication():
                for inputs in (own, [x.requires_grad_() for x in spread]):
                    out = call(*inputs)
                    out = [*out] if isinstance(out, (tuple, list)) else [out]
                    loss = whole(loss_of(out))
                    results.append([*out, *torch.autograd.grad(loss, inputs)])
            found[name, dims[0]] = max(difference(b, a) for a, b in zip(*results))
    return found


def test_composed_operators_are_sharded_by_what_they_call():
    for found in run_on_ranks(2, composed):
        assert {name: error for name, error in found.items() if not error < 2e-5} == {}


def messages(rank, ranks):
    import operator_cases
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    import nsimplex
    import nsimplex.distributed

    mesh = init_device_mesh("cpu", (ranks,))
    q, keys, values = sharding_cases.tuples(2)

    def placed(x, dim):
        return distribute_tensor(x, mesh, None if dim is None else [Shard(dim)])

    def attention(dim, key_dim, make=placed):
        own = [make(x, key_dim) for x in (*keys, *values)]
        return nsimplex.attention(placed(q, dim), own[:2], own[2:])

    args, _ = operator_cases.CASES["equivariant_linear_sparse"]()
    said = []
    for call in (
        lambda: attention(2, None),
        lambda: attention(1, 3),
        lambda: attention(1, 1, lambda x, dim: x),
        lambda: nsimplex.topk_keys(placed(q, 1), placed(keys[0], None), 2),
        lambda: operators.equivariant_linear_sparse(placed(args[0], 0), *args[1:]),
        lambda: operators.equivariant_linear_sparse(
            placed(args[0], 0), *[placed(x, None) for x in args[1:3]], *args[3:]
        ),
    ):
        try:
            call()
            said.append("no error")
        except ValueError as error:
            said.append(str(error))
    return said


def test_placements_that_no_rank_can_compute_with():
    for said in run_on_ranks(2, messages):
        assert said == [
            "[attention] query: expected Shard(0) or Shard(1) or Replicate() on mesh dimension 0, "
            "got Shard(2); context_parallel shards the sequence",
            "[attention] keys[0]: expected Shard(0) or Shard(1) or Replicate() on mesh dimension "
            "0, got Shard(3)",
            "[attention] keys[0]: expected a DTensor beside DTensors, got a plain tensor of shape "
            "[2, 2, 6, 4]",
            "[topk_keys] query: expected Shard(0) or Replicate() on mesh dimension 0, got Shard(1)",
            "[equivariant_linear_sparse] weight: expected a DTensor beside DTensors, got a plain "
            "tensor of shape [5, 3, 4]",
            "[equivariant_linear_sparse] x: expected Replicate() on mesh dimension 0, got Shard(0)",
        ]


def test_every_rule_has_a_call():
    from nsimplex.distributed.rules import RULES

    called = {operator for _, operator, _, _ in sharding_cases.calls()}
    options = {f"attention_{name}" for call in sharding_cases.calls() for name in call[3]}
    backward = {f"{name}_backward" for name in called | options}
    assert set(RULES) <= called | backward


def public_functions_on_ranks(rank, ranks):
    """What public functions raise for tensors that are placed on ranks, by name."""
    import os
    import tempfile

    import public_calls
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import distribute_tensor
    from torch.utils import _pytree as pytree

    import nsimplex.distributed  # noqa: F401

    os.chdir(tempfile.mkdtemp())  # some of them write
    mesh, found = init_device_mesh("cpu", (ranks,)), {}
    files = ("nsimplex.read_", "causal.read_", "graph.read_", "graph.write_", "text.")
    functions = public_calls.public_functions()
    packages = {"causal.to_igraph", "graph.to_dgl", "graph.to_pyg", "causal.read_h5ad"}
    for name, make in public_calls.CALLS.items():
        if name.startswith(files) or name in packages:
            continue
        args, kwargs = make()
        numbers = [x for x in tensors_of((args, kwargs)) if x.is_floating_point()]

        def placed(x, every=not numbers):
            chosen = isinstance(x, torch.Tensor) and (every or x.is_floating_point())
            return distribute_tensor(x, mesh) if chosen else x

        args, kwargs = pytree.tree_map(placed, (args, kwargs))
        try:
            functions[name](*args, **kwargs)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def test_public_functions_name_the_tensor_for_which_they_have_no_rule():
    """In one line, with what to give instead."""
    (found,) = run_on_ranks(1, public_functions_on_ranks)
    line = re.compile(
        r"TypeError: \[\w+\] [\w.\[\]]+: (the model refuses it: \[\w+\] \w+: )?"
        r"expected a plain tensor(, as the weights are)?, got a DTensor"
        r"(; its full_tensor\(\) is one|, beside which the function makes plain ones; call it "
        r"under torch.distributed.tensor.experimental.implicit_replication\(\))?"
    )
    assert {name: said for name, said in found.items() if not line.fullmatch(said)} == {}
    assert "nsimplex.attention_marginals" in found
    taken = {"attention", "attention_weights", "topk_tuples"}
    assert not ({f"nsimplex.{name}" for name in taken} | {"causal.causal_fit"}) & {*found}


@pytest.mark.slow
def test_without_the_rules_the_module_that_has_them_is_named(subprocess_env):
    program = """
import torch, nsimplex
from torch.distributed import HashStore, init_process_group
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import distribute_tensor
init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
x = distribute_tensor(torch.ones(1, 1, 2, 4), init_device_mesh("cpu", (1,)))
nsimplex.attention(x, [x], [x])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=subprocess_env
    )
    assert done.stderr.splitlines()[-1].removeprefix("[rank0]: ") == (
        "TypeError: [attention] query: expected a plain tensor, got a DTensor; import "
        "nsimplex.distributed, which says how operators take it"
    )
