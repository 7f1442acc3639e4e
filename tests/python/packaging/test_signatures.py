"""Public names, their parameters and defaults change only on purpose.

signatures.txt has those of now, a line for each function, class, method and property. After a
change that is meant, which the changelog names, write it again:
python tests/python/packaging/test_signatures.py
"""

import difflib
import importlib.util
import inspect
import sys
from pathlib import Path

FILE = Path(__file__).with_name("signatures.txt")
if __name__ == "__main__":
    sys.path.insert(0, str(FILE.parents[3] / "build" / "release" / "python"))
#: Modules with names for users; a name that several have stands at the first.
MODULES = ["", "nn", "graph", "causal", "analysis", "text", "viz", "distributed", "molecules"]
OPTIONAL = {"transformers": "transformers"}  # by the package that they need


def parameters(value):
    """The parameters of a call, without types."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(..)"
    plain = [
        each.replace(annotation=each.empty, default=default_of(each))
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    return str(inspect.Signature(plain))


class Shown(str):
    """A default as a signature shows it."""

    __repr__ = str.__str__


def default_of(parameter):
    """What stands for a default: its text, or its type where the text differs between runs."""
    default = parameter.default
    text = getattr(default, "__qualname__", None) or repr(default)
    return default if default is parameter.empty else Shown(text.partition(" at 0x")[0])


def members(kind):
    """Public methods and properties that a class or a base of ours defines, by name."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("nsimplex")]
    found = {}
    for base in reversed(ours):
        found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    for name, value in sorted(found.items()):
        if isinstance(value, property):
            yield name
        elif callable(value) or isinstance(value, (classmethod, staticmethod)):
            yield name + parameters(getattr(kind, name))


def lines():
    """A line for each public name."""
    seen, names = [], [*MODULES, *(each for each, needs in OPTIONAL.items() if has(needs))]
    for module in names:
        path = f"nsimplex.{module}".rstrip(".")
        imported = importlib.import_module(path)
        for name in sorted(imported.__all__):
            value = getattr(imported, name)
            if inspect.ismodule(value) or any(value is each for each in seen):
                continue
            seen.append(value)
            if isinstance(value, type):
                yield f"class {path}.{name}{parameters(value)}"
                yield from (f"{path}.{name}.{each}" for each in members(value))
            elif callable(value):
                yield f"{path}.{name}{parameters(value)}"
            else:
                yield f"{path}.{name}: {type(value).__name__}"


def has(package):
    return importlib.util.find_spec(package) is not None


def test_public_names_are_those_that_are_recorded():
    absent = tuple(f"nsimplex.{name}." for name, needs in OPTIONAL.items() if not has(needs))
    recorded = FILE.read_text(encoding="utf-8").splitlines()
    recorded = [line for line in recorded if not line.removeprefix("class ").startswith(absent)]
    changes = [*difflib.unified_diff(recorded, [*lines()], "recorded", "now", lineterm="", n=0)]
    assert not changes, "\n".join(changes)


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
