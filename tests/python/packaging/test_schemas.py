"""Schemas of the operators that can stand in a saved program last: models that were exported, and
AOTInductor packages, call operators by them.

schemas.txt holds those of version 0.2. Such an operator may gain optional arguments at its end, and
new ones may come. After that, write the file again:
python tests/python/packaging/test_schemas.py
"""

import re
import runpy
from pathlib import Path

import pytest
import torch

from nsimplex import ops

FILE = Path(__file__).with_name("schemas.txt")


TABLE = Path(__file__).parents[3] / "src" / "support" / "operator_table.h"


def registered():
    """{name: schema} of the operators that can stand in a saved program: those that torch.export
    does not take apart, and those with a gradient."""
    every = torch._C._jit_get_all_schemas()
    ours = [schema for schema in every if schema.name.startswith("nsimplex::")]
    composite = re.findall(r'\{"(\w+)", Cast::\w+, Recorded::composite', TABLE.read_text())
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return {
        f"{each.name}.{each.overload_name}".rstrip("."): each
        for each in ours
        if not has_kernel(each.name, "CompositeImplicitAutograd")
        or each.name.removeprefix("nsimplex::") in composite
    }


def recorded():
    lines = FILE.read_text(encoding="utf-8").splitlines()
    schemas = [torch._C.parse_schema(line) for line in lines]
    return {f"{each.name}.{each.overload_name}".rstrip("."): each for each in schemas}


def words(argument):
    """What a call depends on."""
    default = argument.default_value if argument.has_default_value() else "none"
    return argument.name, str(argument.type), argument.kwarg_only, repr(default)


@pytest.mark.parametrize("name", sorted(recorded()))
def test_an_operator_takes_and_returns_what_it_did(name):
    then, now = recorded()[name], registered().get(name)
    assert now is not None, f"{name} is gone; saved programs call it"
    before, after = ([words(each) for each in schema.arguments] for schema in (then, now))
    # Keyword arguments come after the others, so a new positional one may stand before them.
    for only_keywords in (False, True):
        old, new = ([w for w in each if w[2] == only_keywords] for each in (before, after))
        assert new[: len(old)] == old
    added = [each for each in now.arguments if words(each) not in before]
    assert all(each.has_default_value() for each in added)
    assert [str(each.type) for each in now.returns] == [str(each.type) for each in then.returns]


def test_every_operator_of_saved_programs_is_recorded():
    assert sorted(registered()) == sorted(recorded())


def test_the_stubs_for_editors_are_those_of_the_library(root):
    tool = runpy.run_path(str(root / "tools" / "operator_stubs.py"))
    kept = (root / "python" / "nsimplex" / "ops.pyi").read_text(encoding="utf-8")
    assert kept == tool["stubs"](), "run tools/operator_stubs.py"


def test_operators_are_attributes_of_a_module():
    assert ops.attention is torch.ops.nsimplex.attention
    with pytest.raises(AttributeError, match=r"^\[ops\] atention: expected the name of an op"):
        ops.atention  # noqa: B018


if __name__ == "__main__":
    FILE.write_text(
        "".join(f"{registered()[name]}\n" for name in sorted(registered())), encoding="utf-8"
    )
