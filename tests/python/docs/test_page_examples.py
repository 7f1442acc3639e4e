"""The Python examples of pages run, and what they leave is what the pages say."""

import re
import warnings

import pytest
import torch

from nsimplex import graph
from nsimplex.causal import EmbeddingWarning, FewRowsWarning, VarianceOrderWarning


def blocks(root, page):
    text = (root / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def shapes(**wanted):
    """Whether tensors have these shapes and finite numbers."""
    return lambda names: all(
        names[name].shape == shape and names[name].isfinite().all()
        for name, shape in wanted.items()
    )


def sums_agree(names):
    torch.testing.assert_close(names["seen"], names["looks"].sum(2), rtol=1e-4, atol=1e-4)
    same = (1, 4, 64, 48)
    return shapes(out=same, both=same, looks=(1, 4, 64, 64))(names)


#: What holds of the names that each block leaves by itself. Most blocks compare for themselves.
ALONE = {
    "attention/dense": [
        lambda names: (
            names["q"].grad.isfinite().all()
            and names["lse"].isfinite().all()
            and names["out"].shape == (1, 8, 512, 64)
        ),
        bool,
    ],
    "attention/cache": [
        bool,
        lambda names: (
            names["cache"].lengths.tolist() == [11, 7] and shapes(out=(2, 4, 1, 32))(names)
        ),
    ],
    "attention/extras": [sums_agree, bool],
    "attention/separable": [
        lambda names: (
            names["windowed"].isfinite().all() and names["normalizer"].shape == (1, 4, 500)
        )
    ],
    "attention/routing": [
        lambda names: (
            names["table"].shape == (1, 256, 32)
            and names["loss"] > 0
            and names["pairs"][0].shape[0] > names["paths"][0].shape[0] > 0
        )
    ],
    "attention/sparse": [shapes(**dict.fromkeys(("out", "top", "chains"), (1, 4, 256, 32)))],
    "equivariant/classes": [bool],
    "equivariant/linear": [shapes(out=(4, 9, 16), small=(4, 9, 16), per_node=(3, 16))],
    "equivariant/attention": [shapes(per_node=(3, 16), out=(7, 16))],
    "equivariant/plan": [shapes(per_graph=(3, 4))],
    "causal/tables": [bool] * 8,
    "causal/structure": [bool] * 7,
    "causal/effects": [bool] * 2,
    "causal/pipeline": [bool] * 3,
    "causal/embedding": [bool] * 1,
    "guide/flash-attn": [bool] * 5,
    "guide/sdpa": [bool] * 5,
    "guide/simplicial-attention": [bool] * 4,
}


@pytest.mark.parametrize("page", ALONE)
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_every_block_runs(root, page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = blocks(root, page)
    assert len(found) == len(ALONE[page])
    for block, check in zip(found, ALONE[page]):
        for name in re.findall(r"^(?:from|import) (pandas|sklearn|anndata)\b", block, re.M):
            pytest.importorskip(name)
        names = {}
        with warnings.catch_warnings():
            for kind in (VarianceOrderWarning, FewRowsWarning, EmbeddingWarning):
                warnings.simplefilter("error", kind)
            exec(compile(block, f"{page}.md", "exec"), names)
        assert check(names)


def test_the_blocks_on_graphs_run_one_after_the_other(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(root, "own-graph"):
        exec(compile(block, "own-graph.md", "exec"), names)
    assert names["walks"].node_features.shape == (6, 8)
    assert names["chances"].shape == (4, 1) and set(names["found"].validation) >= {"auc", "f1"}
    assert names["cliques"].sizes == (2, 3) and names["sides"].shape == (34, 2)


def test_the_page_on_graphs_lists_the_conversions(root):
    page = (root / "docs" / "own-graph.md").read_text(encoding="utf-8")
    prefixes = ("from_", "to_", "lift_", "with_random", "with_laplacian")
    for name in graph.__all__:
        if name.startswith(prefixes):
            assert f"`{name}" in page, name
