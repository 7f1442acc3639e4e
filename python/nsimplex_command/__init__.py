"""The console script of the wheel: runs the executable of the package with torch's libraries in
reach.

It is a package of its own, because an import of nsimplex imports torch, which takes seconds.
"""

import importlib.metadata
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

__all__ = ["main"]


def main() -> None:
    package, torch = _folder("nsimplex"), _folder("torch")
    folders = [str(torch / "lib"), os.environ.get("LD_LIBRARY_PATH")]
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))
    # The report is drawn by this interpreter, which has the package.
    os.environ.setdefault("NSIMPLEX_PYTHON", sys.executable)
    executable = _build(package) / "bin" / "nsimplex"
    os.execv(executable, [str(executable), *sys.argv[1:]])


def _build(package: Path) -> Path:
    """The folder of the build for the installed torch."""
    built_with = run_path(str(package / "_build_info.py"))["TORCH_VERSION"]
    build_for = run_path(str(package / "_builds.py"))["build_for"]
    try:
        return build_for(package, importlib.metadata.version("torch"), built_with)
    except ImportError as error:
        sys.exit(str(error))


def _folder(name: str) -> Path:
    """The folder of a package, which is not imported."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"nsimplex: the package {name} is not installed for {sys.executable}")
    return Path(next(iter(spec.submodule_search_locations)))
