"""The tools of the site as modules."""

import importlib.util
import sys

import pytest


def tool(root, name):
    spec = importlib.util.spec_from_file_location(name, root / "tools" / "site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(root):
    before = list(sys.path)
    yield tool(root, "pages")
    sys.path[:] = before


@pytest.fixture(scope="module")
def visit(root):
    return tool(root, "visit")
