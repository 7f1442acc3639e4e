"""The library of operators, loaded once: every module that calls an operator imports it from
here."""

from __future__ import annotations

from pathlib import Path

import torch

from ._build_info import TORCH_VERSION
from ._builds import build_for

__all__ = ["PREFIX", "classes", "load_library", "operators"]


def load_library(prefix: Path) -> None:
    """Loads the operators of a build."""
    library = prefix / "lib" / "libnsimplex.so"
    if not library.exists():
        raise ImportError(f"nsimplex: no operators at {library}; build them with: make build")
    torch.ops.load_library(library)


#: The folder of the build for the installed torch: ``lib``, ``bin``, ``include``.
PREFIX = build_for(Path(__file__).absolute().parent, torch.__version__, TORCH_VERSION)
load_library(PREFIX)
operators = torch.ops.nsimplex
classes = torch.classes.nsimplex
