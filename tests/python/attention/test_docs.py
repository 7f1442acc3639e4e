"""The page's Python example runs and says the truth."""

import re

import torch


def test_the_example_runs(root):
    page = (root / "docs" / "attention" / "dense.md").read_text()
    example, layouts = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(layouts, {})  # compares for itself
    names = {}
    exec(example, names)
    assert names["q"].grad.isfinite().all()
    assert names["out"].shape == (1, 8, 512, 64) and names["lse"].isfinite().all()


def test_the_cached_examples_run(root):
    page = (root / "docs" / "attention" / "cache.md").read_text()
    rings, slots = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(rings, {})  # compares for itself
    names = {}
    exec(slots, names)
    assert names["cache"].lengths.tolist() == [11, 7]
    assert names["out"].shape == (2, 4, 1, 32) and names["out"].isfinite().all()


def test_the_example_of_the_functions_around_it_runs(root):
    page = (root / "docs" / "attention" / "extras.md").read_text()
    example, bias = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(bias, {})  # compares for itself
    names = {}
    exec(example, names)
    for name, shape in (
        ("out", (1, 4, 64, 48)),
        ("both", (1, 4, 64, 48)),
        ("looks", (1, 4, 64, 64)),
    ):
        assert names[name].shape == shape and names[name].isfinite().all()
    torch.testing.assert_close(names["seen"], names["looks"].sum(2), rtol=1e-4, atol=1e-4)


def test_the_separable_example_runs(root):
    page = (root / "docs" / "attention" / "separable.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(example, names)  # compares for itself
    assert names["windowed"].isfinite().all() and names["normalizer"].shape == (1, 4, 500)


def test_the_example_of_routing_runs(root):
    page = (root / "docs" / "attention" / "routing.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(example, names)
    assert names["table"].shape == (1, 256, 32) and names["loss"] > 0
    assert names["pairs"][0].shape[0] > names["paths"][0].shape[0] > 0


def test_the_sparse_example_runs(root):
    page = (root / "docs" / "attention" / "sparse.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(example, names)
    for name in ("out", "top", "chains"):
        assert names[name].shape == (1, 4, 256, 32) and names[name].isfinite().all()
