"""The console script of the wheel: runs the executable of the package with torch's libraries in
reach.

It is a package of its own, because an import of nsimplex imports torch, which takes seconds.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

__all__ = ["main"]


def main() -> None:
    package, torch = _folder("nsimplex"), _folder("torch")
    folders = [str(torch / "lib"), os.environ.get("LD_LIBRARY_PATH")]
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))
    # The report is drawn by this interpreter, which has the package.
    os.environ.setdefault("NSIMPLEX_PYTHON", sys.executable)
    executable = package / "bin" / "nsimplex"
    os.execv(executable, [str(executable), *sys.argv[1:]])


def _folder(name: str) -> Path:
    """The folder of a package, which is not imported."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"nsimplex: the package {name} is not installed for {sys.executable}")
    return Path(next(iter(spec.submodule_search_locations)))
