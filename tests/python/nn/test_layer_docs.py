"""The examples of the page on layers run."""

import re

import pytest
import torch


def test_the_example_runs(root):
    page = (root / "docs" / "models.md").read_text()
    first, example, state, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(first, names)
    assert names["block"](names["x"]).shape == names["y"].shape == names["x"].shape
    assert [block.attention.order for block in names["model"].blocks] == [1, 2, 1, 2]
    exec(example, names)  # compares the decoded steps for itself
    assert names["out"].shape == names["packed"].shape == (2, 32, 64)
    assert names["loss"] > 0
    exec(state, names)
    for layer in names["layers"]:
        for group in layer.groups:
            assert all(weight.grad.any() for weight in group.indexer.parameters())


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon")
def test_the_example_of_learning_rates_runs(root):
    page = (root / "docs" / "models.md").read_text()
    *_, example = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(example, names)
    model, groups = names["model"], names["groups"]
    tokens = torch.randint(256, (2, 17))
    model.loss(tokens[:, :-1], tokens[:, 1:]).backward()
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    for optimizer in names["optimizers"]:
        optimizer.step()
    for group in groups.muon + groups.adamw:
        for name, weight in zip(group["names"], group["params"], strict=True):
            assert not torch.equal(weight, before.pop(name))
    assert before == {}
