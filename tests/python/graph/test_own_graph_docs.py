"""The guide to graphs: its Python blocks run one after the other."""

import re

from nsimplex import graph


def test_every_block_runs(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (root / "docs" / "own-graph.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict = {}
    for block in blocks:
        exec(compile(block, "own-graph.md", "exec"), names)
    assert names["walks"].node_features.shape == (6, 8)
    assert names["chances"].shape == (4, 1) and set(names["found"].validation) >= {"auc", "f1"}
    assert names["cliques"].sizes == (2, 3) and names["sides"].shape == (34, 2)


def test_the_page_lists_the_conversions(root):
    page = (root / "docs" / "own-graph.md").read_text(encoding="utf-8")
    prefixes = ("from_", "to_", "lift_", "with_random", "with_laplacian")
    for name in graph.__all__:
        if name.startswith(prefixes):
            assert f"`{name}" in page, name
