"""The package's dependencies: numpy, safetensors, and the torch that the library is built with.

LibTorch keeps its C++ interface within a minor version only, so a wheel must ask for that one. A
source distribution asks for any supported torch, and says that a wheel of it may ask for less.
The torch is the one CMake will use: of the folder $NSIMPLEX_LIBTORCH, else of $TORCH_PYTHON, else
of the interpreter that runs this build.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ALWAYS = ("numpy", "safetensors")
SUPPORTED = range(11, 15)  # minor versions of torch 2
PROBE = "import torch; print('.'.join(torch.__version__.split('.')[:2]), end='')"
HELP = (
    "nsimplex is built against an installed torch: use pip install --no-build-isolation, "
    "or name an interpreter that has torch in TORCH_PYTHON"
)

__all__ = ["Provider", "minor_of_torch", "supported_torch"]


def supported_torch():
    """The requirement that every supported torch meets."""
    return f"torch>=2.{SUPPORTED[0]},<2.{SUPPORTED[-1] + 1}"


def minor_of(folder):
    """The minor version of a LibTorch, of its headers: those that cmake/LibTorch.cmake reads."""
    for name in ("torch/headeronly/version.h", "torch/csrc/api/include/torch/version.h"):
        header = folder / "include" / name
        text = header.read_text() if header.exists() else ""
        found = dict(re.findall(r"define TORCH_VERSION_(MAJOR|MINOR) (\d+)", text))
        if len(found) == 2:
            return f"{found['MAJOR']}.{found['MINOR']}"
    expected = "expected a folder with LibTorch's include and lib"
    sys.exit(f"NSIMPLEX_LIBTORCH: {expected}, got '{folder}'")


def minor_of_torch(environment):
    """The minor version of the torch that CMake takes with these environment variables."""
    if folder := environment.get("NSIMPLEX_LIBTORCH"):
        return minor_of(Path(folder))
    python = environment.get("TORCH_PYTHON", sys.executable)
    probe = subprocess.run([python, "-c", PROBE], capture_output=True, text=True)
    if probe.returncode != 0:
        sys.exit(f"{HELP}; {python} cannot import it")
    return probe.stdout


class Provider:
    """What scikit-build-core asks for [project.dependencies]."""

    def __init__(self):
        self.builds = "wheel"

    def build_state(self, state):
        self.builds = state

    def dynamic_metadata(self, settings, project):
        if self.builds == "sdist":
            return {"dependencies": [*ALWAYS, supported_torch()]}
        return {"dependencies": [*ALWAYS, f"torch=={minor_of_torch(os.environ)}.*"]}

    def dynamic_wheel(self, settings):
        return {"dependencies": True}
