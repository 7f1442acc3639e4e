"""What type checkers say of programs that use the package: nothing of right ones, and the line of
every mistake."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
from typing import assert_type

import torch
from torch import Tensor

import nsimplex
from nsimplex import analysis, causal, graph, nn, ops, viz
from nsimplex.distributed import context_parallel

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
cache = nsimplex.StaticCache([-1, 4], batch=1, slots=8, kv_heads=2, head_dim=4)
assert_type(cache.attend(query, keys, keys, form="product"), Tensor)
assert_type(cache.attend(query, keys, keys, return_lse=True), tuple[Tensor, Tensor])
assert_type(nsimplex.topk_tuples(query, keys, 3, causal=True), tuple[Tensor, Tensor])
data = graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), directions="both", level="")
nn.GraphTransformer("node", "classes", 3, form="kernel", readout="softmax", symmetry="ordered")
nn.SparseAttention(8, 2, keys=4, pattern="path", normalizer="softmax_sink")
nn.EquivariantEncoder(1, 2, 4, 4, form="kernel", heads=2)
nn.FeatureTransformerOptions.preset("paper-scbert", 9, bins=7)
assert_type(ops.attention(query, keys, keys, causal=True), tuple[Tensor, Tensor])
causal.causal_fit(torch.randn(9, 2), kinds=["continuous", "count"])
nsimplex.attention(query, keys, keys, form="prodct")  # wrong
nsimplex.attention(query, keys, keys, windw=3)  # wrong
nsimplex.attention(query, query, query)  # wrong
nsimplex.sparse_attention(query, keys, keys, query, pattern="lists")  # wrong
nsimplex.attention_weights(query, keys, distinct="axis")  # wrong
nn.SimplicialAttention(8, 2, norm="kq")  # wrong
causal.causal_fit(torch.randn(9, 3), estimator="odrer")  # wrong
causal.simulate(noise="normal")  # wrong
nn.GraphTransformer("graphs")  # wrong
nn.GraphTransformer(symmetry="loop_free")  # wrong
nn.MessagePassing(kind="sage")  # wrong
nn.MessagePassing("hyperedge")  # wrong
nn.HyperSAGNN(target="number")  # wrong
nn.SetToGraph("graph")  # wrong
nn.fit_graphs(nn.SetToGraph(), data, graph.split_rows(9), loss="l1")  # wrong
graph.from_edge_index(query, directions="all")  # wrong
graph.from_hyperedge_index(query, duplicates="last")  # wrong
graph.read_molecules("a.npz", directions="given")  # wrong
analysis.attention_flow(torch.neg, query, 1.0, method="rk45")  # wrong
shared = lambda mesh: context_parallel(mesh, unbounded="rings")  # wrong
nn.FeatureTransformerOptions.preset("paper-scbart", 9)  # wrong
nn.FeatureTransformerOptions.preset("paper-scbert", 9, bin=7)  # wrong
causal.causal_fit(torch.randn(9, 1), kinds=["counts"])  # wrong
cache.attend(query, keys, keys, window=3)  # wrong
nsimplex.KeyValueCache([2, 4]).attend(query, keys, keys, mask=query)  # wrong
nsimplex.topk_tuples(query, keys, 3, augment=True)  # wrong
nsimplex.attention_workspace(query, keys, keys, windows=3)  # wrong
viz.heaviest_tuples(query, keys, casual=True)  # wrong
nn.SparseAttention(8, 2, select=None)  # wrong
nn.SeparableAttention(8, 2, nrom="qk")  # wrong
nn.EquivariantEncoder(1, 2, 4, 4, head=2)  # wrong
ops.attention(query, keys, keys, windw=[2, 0])  # wrong
ops.atention(query, keys, keys)  # wrong
"""


def lines_of_pyright(program: Path) -> tuple[set[int], str]:
    """Lines with errors, from 0, and all that pyright says."""
    settings = {"include": [program.name], "pythonVersion": "3.11"}
    folder = program.parent
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "-p", str(folder)], capture_output=True, text=True)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {each["range"]["start"]["line"] for each in found}, done.stdout


def lines_of_mypy(program: Path) -> tuple[set[int], str]:
    """The same of mypy, with the settings and the cache of tools/types: then it checks the program
    alone. Without that cache it checks the package, too, in more than a minute."""
    if not (ROOT / "build/mypy").is_dir():
        pytest.skip("tools/types has not run: mypy would check the whole package first")
    command = [sys.executable, "-m", "mypy", "--output", "json"]
    done = subprocess.run([*command, str(program)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    errors = {each["line"] - 1 for each in found if each["severity"] == "error"}
    return errors, done.stdout


@pytest.mark.parametrize(
    "checker, lines_of",
    [("pyright", lines_of_pyright), ("mypy", lines_of_mypy)],
    ids=["pyright", "mypy"],
)
def test_right_programs_pass_and_mistakes_are_found(
    tmp_path: Path, checker: str, lines_of: Callable[[Path], tuple[set[int], str]]
):
    pytest.importorskip(checker, reason="the type checker is not installed")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    lines, said = lines_of(program)
    rows = PROGRAM.splitlines()
    wrong = [row for row, line in enumerate(rows) if re.search("# wrong$", line)]
    assert [rows[line] for line in sorted(lines)] == [rows[line] for line in wrong], said
