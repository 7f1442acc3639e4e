"""The pages' examples run and say the truth."""

import re

import pytest
import torch

transformers = pytest.importorskip("transformers")

from transformers.models.auto import modeling_auto

from nsimplex.transformers.families import FAMILIES

HEADS = {
    "language model": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING,
    "texts": modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    "tokens": modeling_auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING,
    "questions": modeling_auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING,
}


def table_of_families():
    """The rows of the page's table, from the table of the code and the classes of Transformers."""
    for kind, row in FAMILIES.items():
        config = transformers.CONFIG_MAPPING[kind]
        heads = ", ".join(name for name, mapping in HEADS.items() if config in mapping)
        slides = "yes" if row.slides else "no"
        yield f"| `{kind}` | {row.positions} | {row.norm} | {slides} | {heads} |"


def test_the_table_of_families_is_that_of_the_code(root):
    text = (root / "docs" / "guide" / "upcycling.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `\w+` \| (?:rotary|learned).*", text, re.MULTILINE)
    assert rows == [*table_of_families()]


def examples(root, page):
    text = (root / "docs" / "guide" / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_examples_for_users_of_transformers_run(root):
    pytest.importorskip("peft")
    names = {}
    blocks = examples(root, "transformers.md")
    assert len(blocks) == 5
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
