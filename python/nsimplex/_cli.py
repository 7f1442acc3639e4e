"""The console script of the wheel: runs the executable beside this file with torch's libraries in
reach."""

import os
import sys
from pathlib import Path

import torch


def main() -> None:
    package = Path(__file__).absolute().parent
    folders = [str(Path(torch.__file__).parent / "lib"), os.environ.get("LD_LIBRARY_PATH")]
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))
    # The report is drawn by this interpreter, which has the package.
    os.environ.setdefault("NSIMPLEX_PYTHON", sys.executable)
    executable = package / "bin" / "nsimplex"
    os.execv(executable, [str(executable), *sys.argv[1:]])
