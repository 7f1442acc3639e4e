"""What the package exports is what it says it exports, and what users are told can be done."""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import nsimplex
from nsimplex import analysis, causal, graph, nn, text, viz

#: Modules that belong to the interface; all others below the package only hold its parts.
MODULES = {"analysis", "causal", "graph", "nn", "ops", "text", "viz"}

#: Names that are imported when they are asked for.
LATER = set(causal._LATER)


def public_names(module):
    """Names of a module that are its own: no modules beside it, and nothing of torch or Python."""
    names = set()
    for name, value in vars(module).items():
        if name.startswith("_"):
            continue
        if isinstance(value, ModuleType):
            if module is nsimplex and name in MODULES:
                names.add(name)
            continue
        if inspect.isclass(value) or callable(value):
            owner = getattr(value, "__module__", "") or ""
            if not owner.startswith("nsimplex"):
                continue
        elif type(value).__module__.startswith(("__future__", "typing", "torch")):
            continue
        names.add(name)
    return names


@pytest.mark.parametrize(
    "module", [nsimplex, nn, graph, causal, analysis, text, viz], ids=lambda module: module.__name__
)
def test_all_is_complete(module):
    said = set(module.__all__)
    assert len(module.__all__) == len(said)
    for name in said:
        assert hasattr(module, name), name
    # __version__ is no plain name.
    assert public_names(module) - LATER == said - LATER - {"__version__"}


#: Programs of their own, which nobody calls from the package.
PROGRAMS = {"class_pictures", "lm", "molecules"}
PARTS = (
    {path.stem for path in Path(nsimplex.__file__).parent.glob("[a-z]*.py")} - MODULES - PROGRAMS
)


@pytest.mark.parametrize("name", sorted(PARTS))
def test_the_package_exports_all_public_names_of_its_parts(name):
    part = importlib.import_module(f"nsimplex.{name}")
    assert public_names(part) & {n for n, v in vars(part).items() if of_module(v, part)} <= set(
        part.__all__
    )
    assert set(part.__all__) <= set(nsimplex.__all__)
    for own in part.__all__:
        assert getattr(nsimplex, own) is getattr(part, own)


def of_module(value, module):
    """Whether a function or a class was defined there."""
    return getattr(value, "__module__", None) == module.__name__


def test_nobody_is_told_to_install_the_package_of_another_project(root):
    """The name in the package index is another project's: it would bring a stranger's code."""
    wrong = re.compile(
        r"""pip3?\s+install\s+(?:-\S+\s+)*['"]?nsimplex(?!-attention|[\w-]*[-.\w]*\.whl)\b"""
    )
    assert wrong.search("pip install nsimplex[molecules]") and wrong.search(
        "python -m pip install -U nsimplex"
    )
    assert not wrong.search("pip install nsimplex-attention[molecules]")
    assert not wrong.search("pip install dist/nsimplex_attention-0.2.0-py3-none-linux_x86_64.whl")
    found = []
    folders = "docs/**/*.md", "python/**/*.py", "src/**/*.[ch]*", "include/**/*.h", "examples/**/*"
    for pattern in ("*.md", "*.toml", "tools/*", "bench/**/*.py", "cmake/*", "Makefile", *folders):
        for path in root.glob(pattern):
            if path.is_file() and wrong.search(path.read_text(encoding="utf-8", errors="replace")):
                found.append(str(path.relative_to(root)))
    assert found == []
