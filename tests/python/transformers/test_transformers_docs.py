"""The pages' examples run and say the truth."""

import re

import pytest
import torch

pytest.importorskip("transformers")


def examples(root, page):
    text = (root / "docs" / "guide" / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_examples_for_users_of_transformers_run(root):
    pytest.importorskip("peft")
    names = {}
    blocks = examples(root, "transformers.md")
    assert len(blocks) == 4
    for block in blocks:
        exec(block, names)  # they compare for themselves
    assert names["loss"].isfinite() and names["text"].shape == (2, 11)


def test_the_example_of_upcycling_runs(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = examples(root, "upcycling.md")
    names = {}
    exec(block, names)
    with torch.no_grad():
        own, again = (names[name].eval()(names["text"]).logits for name in ("model", "again"))
    torch.testing.assert_close(own, again, rtol=1e-4, atol=1e-5)
    assert len(names["order_shares"](names["model"], names["text"])) == 2
