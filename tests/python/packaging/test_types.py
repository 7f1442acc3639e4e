"""What a type checker says of programs that use the package: nothing of right ones, and the line of
every mistake."""

import json
import re
import subprocess
import sys

import pytest

pytest.importorskip("pyright", reason="the type checker is not installed")

PROGRAM = """
from typing import assert_type

import torch
from torch import Tensor

import nsimplex
from nsimplex import causal, nn

query = torch.randn(1, 2, 8, 4)
keys = [query, query]
assert_type(nsimplex.attention(query, keys, keys, causal=True, window=[2, (3, 1)]), Tensor)
assert_type(nsimplex.attention(query, keys, keys, return_lse=True), tuple[Tensor, Tensor])
assert_type(nsimplex.reference(query, keys, keys, form="determinant"), Tensor)
assert_type(nsimplex.topk_keys(query, query, 3, return_scores=True), tuple[Tensor, Tensor])
assert_type(nsimplex.separable_attention(query, keys, keys, features="relu"), Tensor)
assert_type(nsimplex.KeyValueCache([2, 4]).attend(query, keys, keys), Tensor)
nsimplex.attention(query, keys, keys, scale=0.5, augment=True).sum().backward()
layer = nn.SimplicialAttention(8, 2, normalizer="softmax_sink", select=nn.TopK(2))
causal.CausalGraph(estimator="order", missing="rows").fit(torch.randn(9, 3))
nsimplex.attention(query, keys, keys, form="prodct")  # wrong
nsimplex.attention(query, keys, keys, windw=3)  # wrong
nsimplex.attention(query, query, query)  # wrong
nsimplex.sparse_attention(query, keys, keys, query, pattern="lists")  # wrong
nsimplex.attention_weights(query, keys, distinct="axis")  # wrong
nn.SimplicialAttention(8, 2, norm="kq")  # wrong
causal.causal_fit(torch.randn(9, 3), estimator="odrer")  # wrong
causal.simulate(noise="normal")  # wrong
"""


def test_right_programs_pass_and_mistakes_are_found(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    settings = {"include": ["program.py"], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "-p", str(tmp_path)], capture_output=True, text=True)
    found = json.loads(done.stdout)["generalDiagnostics"]
    lines = sorted({each["range"]["start"]["line"] for each in found})
    rows = PROGRAM.splitlines()
    wrong = [row for row, line in enumerate(rows) if re.search("# wrong$", line)]
    assert [rows[line] for line in lines] == [rows[line] for line in wrong], done.stdout
