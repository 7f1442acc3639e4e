"""Writes the conformance files: python conformance/generate.py [--out DIR]

One safetensors file a case and cases.json, which lists them. Inputs are rounded to bfloat16 and
stored as float32, so that an implementation of any dtype takes exactly the same numbers; expected
results are float64 and come from definition.py.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from pathlib import Path

import definition
import numpy as np
import safetensors_file
import torch

VERSION = 1
HERE = Path(__file__).resolve().parent
DEFAULTS = dict(
    form="product",
    reduce="product",
    normalizer="softmax",
    causal=False,
    distinct="none",
)


def case(name: str, queries: int, keys: list[int], about: str, **more) -> dict:
    return dict(name=name, queries=queries, keys=keys, about=about, **more)


def table() -> list[dict]:
    cases = []
    for order, lengths in ((1, [19]), (2, [9, 11]), (3, [4, 5, 6])):
        add = lambda name, queries, keys, about, order=order, **more: cases.append(
            case(f"order{order}-{name}", queries, keys, about, **more)
        )
        same = [12] * order if order < 3 else [8] * 3
        self_attention = (same[0], same)
        add("full", 7, lengths, "every axis its own length")
        add("causal", *self_attention, "bottom-right aligned", causal=True)
        add(
            "causal-cross",
            5,
            [n + 2 * m for m, n in enumerate(same)],
            "offsets differ",
            causal=True,
        )
        add("more-queries", same[0] + 4, same, "the first queries have no tuple", causal=True)
        add(
            "window",
            *self_attention,
            "a window an axis",
            window=[[2 + 2 * m, 0] for m in range(order)],
        )
        add(
            "window-one",
            *self_attention,
            "every window only the query's own position",
            window=[[1, 0]] * order,
        )
        add(
            "window-two-sided",
            *self_attention,
            "both sides",
            window=[[2, 1 + m] for m in range(order)],
        )
        add("window-ahead", *self_attention, "own position and after", window=[[1, 3]] * order)
        add("window-wide", *self_attention, "wider than the sequence", window=[[99, 99]] * order)
        add(
            "window-causal",
            *self_attention,
            "the right side cut by the causal mask",
            causal=True,
            window=[[3, 5]] * order,
        )
        add("grouped", 6, lengths, "4 query heads, 2 key heads", heads=4, kv_heads=2)
        add("value-dim", 6, lengths, "values narrower than keys", value_dim=3)
        add("one-query-one-key", 1, [1] * order, "a single tuple")
        add(
            "extreme-logits", *self_attention, "logits of thousands", largest_logit=1e4, causal=True
        )
        add("equal-logits", 6, lengths, "all logits 0: means of the values", amplitude=0.0)
        add(
            "padding",
            6,
            lengths,
            "one entry without keys on the last axis",
            batch=3,
            key_lengths=True,
        )
        add("key-masks", 6, lengths, "keys left out one by one", batch=2, key_masks=True)
        add(
            "documents",
            *self_attention,
            "three packed documents",
            cu_seqlens=[0, 3, 4, same[0]],
            causal=True,
        )
        add(
            "documents-window",
            *self_attention,
            "windows inside documents",
            cu_seqlens=[0, 5, same[0]],
            window=[[3, 2]] * order,
        )
        add("mask-boolean", 6, lengths, "some rows fully masked", mask="boolean")
        add("mask-additive", 6, lengths, "broadcast over heads, some -inf", mask="additive")
        add(
            "sink",
            *self_attention,
            "a sink logit a head",
            normalizer="softmax_sink",
            causal=True,
            heads=2,
        )
        add("sigmoid", *self_attention, "no normalisation", normalizer="sigmoid", causal=True)
        add(
            "relu",
            *self_attention,
            "rows without a positive logit are 0",
            normalizer="relu",
            causal=True,
        )
        add(
            "determinant",
            6,
            lengths,
            "chunks of N + 1 channels",
            form="determinant",
            dim=2 * (order + 1),
        )
        add(
            "determinant-grouped",
            *self_attention,
            "causal, windows",
            form="determinant",
            heads=4,
            kv_heads=2,
            dim=3 * (order + 1),
            causal=True,
            window=[[4, 0]] * order,
        )
        if order > 1:
            add("sum", 6, lengths, "values added", reduce="sum")
            add("mean", *self_attention, "values averaged", reduce="mean", causal=True)
            add("unit-scale", 6, lengths, "s1 = D^-(N+1)/2, s2 = Dv^-(N-1)/2", scale="unit")
            add("distinct", *self_attention, "no key position twice", distinct="axes", causal=True)
        add(
            "distinct-with-query",
            *self_attention,
            "nor the query's own",
            distinct="with_query",
            causal=True,
        )
    return cases


def build(spec: dict, seed: int) -> tuple[dict, dict[str, np.ndarray]]:
    """The entry of cases.json and the arrays of one case."""
    generator = torch.Generator().manual_seed(seed)
    order, dim = len(spec["keys"]), spec.get("dim", 6)
    value_dim, batch = spec.get("value_dim", dim), spec.get("batch", 1)
    kv_heads = spec.get("kv_heads", spec.get("heads", 1))
    heads, amplitude = spec.get("heads", 1), spec.get("amplitude", 1.0)

    def draw(*shape, amplitude=1.0):
        # NumPy-free and the same for ever: integers / 64, uniform in [-2, 2).
        values = torch.randint(-128, 128, shape, generator=generator).double() / 64
        return (amplitude * values).bfloat16().double()

    query = draw(batch, heads, spec["queries"], dim, amplitude=amplitude)
    keys = [draw(batch, kv_heads, n, dim, amplitude=amplitude) for n in spec["keys"]]
    values = [draw(batch, kv_heads, n, value_dim) for n in spec["keys"]]
    scales = (dim**-0.5, 1.0)
    if spec.get("scale") == "unit":
        scales = (dim ** (-0.5 * (order + 1)), value_dim ** (-0.5 * (order - 1)))
    options = {name: spec.get(name, default) for name, default in DEFAULTS.items()}
    options["window"] = spec.get("window", [[-1, -1]] * order)
    options["logit_scale"], options["output_scale"] = scales
    if "largest_logit" in spec:
        largest = definition.scores(query, keys, options["form"]).abs().max().item()
        options["logit_scale"] = 2.0 ** math.floor(math.log2(spec["largest_logit"] / largest))

    tensors: dict[str, torch.Tensor] = {}
    if spec.get("key_lengths"):
        tensors["key_lengths"] = torch.tensor(
            [[n, 1 + m, n - 1] for m, n in enumerate(spec["keys"])]
        )
        tensors["key_lengths"][-1, 1] = 0
    if "cu_seqlens" in spec:
        tensors["cu_seqlens"] = torch.tensor(spec["cu_seqlens"])
    if spec.get("key_masks"):
        for m, n in enumerate(spec["keys"]):
            tensors[f"key_mask.{m}"] = torch.rand(batch, n, generator=generator) < 0.7
    full = [batch, heads, spec["queries"], *spec["keys"]]
    if spec.get("mask") == "boolean":
        tensors["mask"] = torch.rand(full, generator=generator) < 0.5
        tensors["mask"][:, :, 2] = False
    if spec.get("mask") == "additive":
        mask = draw(1, 1, *full[2:])
        tensors["mask"] = mask.masked_fill(mask > 1.5, float("-inf"))
    if options["normalizer"] == "softmax_sink":
        tensors["sink"] = draw(heads)

    leaves = {"query": query, **{f"key.{m}": x for m, x in enumerate(keys)}}
    leaves |= {f"value.{m}": x for m, x in enumerate(values)}
    leaves |= {name: x for name, x in tensors.items() if x.is_floating_point()}
    for leaf in leaves.values():
        leaf.requires_grad_(True)
    out, lse = definition.attention(query, keys, values, options, tensors)
    grad_out = draw(*out.shape)
    grad_lse = draw(*lse.shape).masked_fill(lse.isneginf(), 0)
    gradients = torch.autograd.grad([out, lse], list(leaves.values()), [grad_out, grad_lse])

    inputs = {**leaves, **tensors, "grad_out": grad_out, "grad_lse": grad_lse}
    expected = {"out": out, "lse": lse}
    expected |= {f"grad.{name}": gradient for name, gradient in zip(leaves, gradients)}
    arrays = {}
    for name, tensor in inputs.items():
        tensor = tensor.detach().float() if tensor.is_floating_point() else tensor
        arrays[f"input.{name}"] = tensor.numpy()
    for name, tensor in expected.items():
        arrays[f"expected.{name}"] = tensor.detach().numpy()
    entry = {"name": spec["name"], "about": spec["about"], "file": f"{spec['name']}.safetensors"}
    return entry | {"order": order, "options": options}, arrays


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for seed, spec in enumerate(table()):
        entry, arrays = build(spec, seed)
        safetensors_file.write(folder / entry["file"], arrays)
        entries.append(entry)
    listing = folder / "cases.json.partial"
    listing.write_text(json.dumps({"version": VERSION, "cases": entries}, indent=1) + "\n")
    os.replace(listing, folder / "cases.json")  # the list is there only when all it names is
    print(f"{len(entries)} cases in {folder}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "cases")
    write(parser.parse_args().out)
