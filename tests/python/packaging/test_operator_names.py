"""Who has an operator's name finds the module that calls it, its test and its page."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from test_every_operator_and_module import registered

import nsimplex

#: What autograd and the tests call beside an operator belongs to that operator.
BESIDE = ("_reference_backward", "_backward", "_gradients", "_reference")
PACKAGE = Path(nsimplex.__file__).parent
CALL = re.compile(r"(?<![.\w])_?operators\.(\w+)")


def operator_of(name):
    """The operator that a registered name belongs to."""
    for suffix in BESIDE:
        if name.endswith(suffix) and name.removesuffix(suffix) in registered():
            return name.removesuffix(suffix)
    return name


OPERATORS = sorted({operator_of(name) for name in registered()})


def modules():
    """By stem: the text of every module of the package that calls operators."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if CALL.search(text):
            assert path.stem not in found, path
            found[path.stem] = text
    return found


MODULES = modules()


def public(text):
    """The names in ``__all__`` of a module."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def callers():
    """By operator: its module, the one of its name among those that call it; more than one is a
    mistake."""
    found = defaultdict(set)
    for stem, text in MODULES.items():
        for name in CALL.findall(text):
            found[operator_of(name)].add(stem)
    return {name: {name} if name in stems else stems for name, stems in found.items()}


#: Operators that are steps of another one, which composes them in C++.
STEPS = {"equivariant_sums": "equivariant_linear_sparse", "elu_features": "feature_map"}
STEPS |= {"random_directions": "feature_map"}


def test_one_module_calls_each_operator():
    called = callers()
    assert sorted({STEPS.get(name, name) for name in OPERATORS}) == sorted(called)
    assert {name for name, stems in called.items() if len(stems) != 1} == set()


def test_an_operator_that_has_a_backward_is_the_stem_or_a_public_name_of_its_module():
    computing = {operator_of(name) for name in registered() if operator_of(name) != name} - set(
        STEPS
    )
    for name in computing:
        (stem,) = callers()[name]
        assert name == stem or name in public(MODULES[stem]), name


@pytest.mark.parametrize("stem", sorted(MODULES))
def test_every_module_has_a_test_of_its_name(root, stem):
    tests, name = root / "tests" / "python", stem.lstrip("_")
    names = f"test_{name}*.py", f"test_*_{name}.py"
    own = [path for pattern in names for path in tests.rglob(pattern)]
    assert own or (tests / name).is_dir()


def test_a_page_names_every_public_operator(root):
    pages = "\n".join(path.read_text() for path in (root / "docs").rglob("*.md"))
    words = set(re.findall(r"\w+", pages))
    names = {name for text in MODULES.values() for name in public(text)}
    assert {name for name in names if name in OPERATORS} - words == set()


def test_a_module_never_hides_the_function_of_its_name():
    """``import nsimplex.attention`` finds the module loaded, so that the package keeps the
    function."""
    stems = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem in nsimplex.__all__)
    stems = [stem for stem in stems if stem not in ("graph", "ops")]  # modules of the interface
    assert "attention" in stems
    imports = "\n".join(f"import nsimplex.{stem}" for stem in stems)
    script = f"import nsimplex, sys\nbefore = vars(nsimplex).copy()\n{imports}\n"
    script += f"for stem in {stems}:\n    assert getattr(nsimplex, stem) is before[stem], stem\n"
    script += (
        "    assert callable(before[stem]), stem\n    assert f'nsimplex.{stem}' in sys.modules\n"
    )
    script += "import torch\nx = torch.zeros(1, 1, 2, 2)\nnsimplex.attention(x, [x], [x])\n"
    script += (
        "from nsimplex.attention import attention, reference\nassert attention is "
        "nsimplex.attention\n"
    )
    environment = {"PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def sources(root, *suffixes):
    """C++ files of the library and the laboratory."""
    return [
        path
        for folder in ("src", "lab")
        for path in (root / folder).rglob("*")
        if path.suffix in suffixes
    ]


def test_base_names_of_cpp_files_are_unique(root):
    places = defaultdict(list)
    for path in sources(root, ".h", ".cpp", ".cc"):
        places[path.name].append(str(path.relative_to(root)))
    assert [found for found in places.values() if len(found) > 1] == []


#: Every package has these.
COMMON = {"__init__.py", "__main__.py"}


def test_base_names_of_python_modules_are_unique():
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        if path.name not in COMMON:
            places[path.name].append(str(path.relative_to(PACKAGE)))
    assert [found for found in places.values() if len(found) > 1] == []


def test_an_operator_that_has_a_backward_is_the_stem_of_its_cpp_file(root):
    names = {path.name for path in sources(root, ".cpp")}
    computing = {operator_of(name) for name in registered() if operator_of(name) != name}
    assert {name for name in computing if f"{name}_op.cpp" not in names} == set()
