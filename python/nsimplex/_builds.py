"""Which build of the library serves the installed torch. The console script runs this file without
importing the package, which would import torch.

LibTorch keeps its C++ interface within a minor version only. A wheel may therefore have one build
for each of several minors: one in the folder of the package, the others beside it in folders like
``torch2.12``, each with ``bin``, ``lib`` and ``include``.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["build_for"]


def build_for(package: Path, torch_version: str, built_with: str) -> Path:
    """The folder of the build for a version of torch. ``built_with``: the version of the build that
    lies in the folder of the package."""
    minor = _minor(torch_version)
    own = package / f"torch{minor}"
    if own.is_dir():
        return own
    if minor == _minor(built_with):
        return package
    built = [path.name[len("torch") :] for path in package.glob("torch2.*")]
    built = sorted([*built, _minor(built_with)], key=lambda name: [int(n) for n in name.split(".")])
    raise ImportError(
        f"nsimplex was built with torch {', '.join(built)}, but torch {torch_version} is "
        f"installed: install torch {built[-1]}, or build nsimplex again"
    )


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
