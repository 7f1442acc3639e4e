"""The layer check passes on this tree and fails on trees made to break each of its rules. No two
modules of the Python package import each other, directly or through others."""

import ast
import graphlib
import subprocess
import sys

import pytest

CLEAN = {
    "include/nsimplex/cache.h": "#include <ATen/core/Tensor.h>\n#include <nsimplex/version.h>\n",
    "src/kernels/cpu/tile.cc": '#include "kernels/cpu/tile.h"\n#include <hwy/highway.h>\n',
    "src/attention/attention/op.cpp": '#include "support/log.h"\n#include <torch/torch.h>\n',
    "src/nn/block.cpp": '#include "attention/attention/op.h"\n#include <nsimplex/attention.h>\n',
    "src/cli/main.cpp": '#include "train/loop.h"\n#include "cli/app.h"\n',
    "src/attention/rotary/rotary_op.cpp": '#include "attention/common/operands.h"\n',
    "lab/match/match.cpp": '#include "cli/app.h"\n#include "lab/common/rows.h"\n',
}

BROKEN = [
    ("src/kernels/cpu/tile.cc", "#include <ATen/ATen.h>", "kernels include Torch"),
    ("src/kernels/cpu/tile.h", "  #  include <nsimplex/attention.h>", "kernels include Torch"),
    ("src/kernels/cpu/tile.cc", '#include "support/parallel.h"', "kernels includes support"),
    ("src/support/log.cpp", '#include "io/npy.h"', "support includes io"),
    ("src/data/batch.cpp", '#include "nn/block.h"', "data includes nn"),
    ("src/nn/block.cpp", '#include "data/batch.h"', "nn includes data"),
    ("src/analysis/smooth.cpp", '#include "train/loop.h"', "analysis includes train"),
    ("src/attention/attention/attention_op.cpp", '#include "cli/app.h"', "attention includes cli"),
    ("include/nsimplex/models.h", '#include "nn/block.h"', "a public header includes src/"),
    ("include/nsimplex/models.h", "#include <torch/torch.h>", "umbrella"),
    ("src/train/loop.h", "#include <torch/torch.h>", "umbrella"),
    ("src/helpers/misc.cpp", "", "src/helpers is not a known layer"),
    ("src/cli/app.cpp", '#include "lab/match/match.h"', "cli includes lab"),
    ("lab/match/match.cpp", '#include "lab/graphs/chains.h"', "lab/match includes lab/graphs"),
    (
        "src/attention/rotary/rotary_op.cpp",
        '#include "attention/attention/attention_call.h"',
        "attention/rotary includes attention/attention",
    ),
    (
        "src/kernels/cpu/topk/topk.cc",
        '#include "kernels/cpu/attention/tasks-inl.h"',
        "kernels/cpu/topk includes kernels/cpu/attention",
    ),
]


def check(root, tree):
    return subprocess.run(
        [sys.executable, root / "tools" / "check_layers.py", tree], capture_output=True, text=True
    )


def grow(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_this_tree_is_layered(root):
    result = check(root, root)
    assert result.returncode == 0, result.stdout


def test_clean_tree_passes(root, tmp_path):
    grow(tmp_path, CLEAN)
    result = check(root, tmp_path)
    assert (result.returncode, result.stdout) == (0, "")


@pytest.mark.parametrize(("name", "line", "reason"), BROKEN)
def test_broken_tree_fails(root, tmp_path, name, line, reason):
    grow(tmp_path, CLEAN | {name: f"// a comment first\n{line}\n"})
    result = check(root, tmp_path)
    assert result.returncode == 1
    assert len(result.stdout.splitlines()) == 1
    assert reason in result.stdout
    assert name.rsplit("/", 1)[0] in result.stdout


def imports_of(path, module, known):
    """The modules among `known` that a module imports anywhere, also in functions and for types."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            names = {f"{base}.{each.name}" for each in node.names}
            yield from (names & known) or ({base} & known)


def circle(folder):
    """Modules of a package that import each other; empty if there are none."""
    found = {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in folder.rglob("*.py")
    }
    graph = {
        name: set(imports_of(path, name, found.keys())) - {name} for name, path in found.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_no_modules_of_the_package_import_each_other(root):
    assert circle(root / "python" / "nsimplex") == []


@pytest.mark.parametrize(
    "line",
    [
        "from .tile import Tile",
        "def late():\n    from . import tile",
        "if TYPE_CHECKING:\n    import kernels.tile",
    ],
)
def test_a_circle_is_found(tmp_path, line):
    files = {"__init__.py": "", "tile.py": "from .plan import Plan\n", "plan.py": line}
    grow(tmp_path / "kernels", files)
    assert set(circle(tmp_path / "kernels")) == {"kernels.tile", "kernels.plan"}
