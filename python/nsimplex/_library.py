"""The library of operators, loaded once: every module that calls an operator imports it from
here."""

from __future__ import annotations

from pathlib import Path

import torch

from ._build_info import TORCH_VERSION, VERSION

__all__ = ["PACKAGE", "classes", "load_library", "operators"]

#: The folder of the package.
PACKAGE = Path(__file__).absolute().parent


def load_library() -> None:
    """Loads the operators; LibTorch keeps its C++ interface within a minor version only."""

    def minor(version: str) -> str:
        return ".".join(version.split(".")[:2])

    if minor(torch.__version__) != minor(TORCH_VERSION):
        raise ImportError(
            f"nsimplex {VERSION} was built with torch {minor(TORCH_VERSION)}, but torch "
            f"{torch.__version__} is "
            f"installed: install torch {minor(TORCH_VERSION)}, or build nsimplex again"
        )
    library = PACKAGE / "lib" / "libnsimplex.so"
    if not library.exists():
        raise ImportError(f"nsimplex: no operators at {library}; build them with: make build")
    torch.ops.load_library(library)


load_library()
operators = torch.ops.nsimplex
classes = torch.classes.nsimplex
