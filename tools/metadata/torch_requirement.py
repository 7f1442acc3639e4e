"""The wheel's dependencies: numpy, and the minor version of torch that the library is built with.

LibTorch keeps its C++ interface within a minor version only, so the wheel must ask for that one.
The torch is the one CMake will use: of $TORCH_PYTHON, else of the interpreter that runs this build.
"""

import os
import subprocess
import sys

PROBE = "import torch; print('.'.join(torch.__version__.split('.')[:2]), end='')"
HELP = (
    "nsimplex is built against an installed torch: use pip install --no-build-isolation, "
    "or name an interpreter that has torch in TORCH_PYTHON"
)

__all__ = ["dynamic_metadata"]


def dynamic_metadata(field, settings=None):
    if field != "dependencies" or settings:
        raise ValueError(
            f"only the field 'dependencies', without settings, is computed here, not {field!r}"
        )
    python = os.environ.get("TORCH_PYTHON", sys.executable)
    probe = subprocess.run([python, "-c", PROBE], capture_output=True, text=True)
    if probe.returncode != 0:
        sys.exit(HELP)
    return ["numpy", f"torch=={probe.stdout}.*"]
