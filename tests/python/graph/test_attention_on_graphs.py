"""Simplicial attention and expert choice on sets and graphs, as docs/own-graph.md shows them."""

import re

import torch

import nsimplex


def snippet(root):
    page = (root / "docs" / "own-graph.md").read_text()
    (code,) = [
        c for c in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "sparse_attention" in c
    ]
    names = {}
    exec(compile(code, "own-graph.md", "exec"), names)
    return names


def test_attention_over_triangles_is_masked_dense_attention(root):
    names = snippet(root)
    own, out = names["triangles"], names["out"]
    nodes = own.nodes
    mask = torch.zeros(nodes, nodes, nodes, dtype=torch.bool)
    for tuple_ in own.tuples.tolist():
        for i, j, k in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
            mask[tuple_[i], tuple_[j], tuple_[k]] = True
    dense = nsimplex.attention(names["q"], names["keys"], names["values"], mask=mask)
    torch.testing.assert_close(out, dense, rtol=1e-4, atol=1e-5)
    assert mask.any(dim=(1, 2)).tolist() == (out.abs().sum((0, 1, 3)) > 0).tolist()


def test_expert_choice_leaves_padding_and_the_others_alone(root):
    names = snippet(root)
    x, y, sizes = names["x"], names["y"], names["sizes"].tolist()
    changed = (x != y).any(-1)
    for row, size in zip(changed, sizes):
        assert row[:size].sum() == -(-size // 2)  # half of the real points, rounded up
        assert not row[size:].any()
