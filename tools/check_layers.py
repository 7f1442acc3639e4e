#!/usr/bin/env python3
"""Checks the include arrows of a source tree: tools/check_layers.py [ROOT]

Folders of src/ are layers. A file may include files of its own folder and of lower layers:

    cli > training, analysis > models, data > equivariant, causal > attention > graph > io > support
    > kernels

Folders of one layer do not know each other. Nothing below src/kernels includes Torch, directly or
through the public headers; the public headers include nothing of src/; no header includes the
umbrella torch/torch.h, which costs every includer ten seconds. Prints each offending line and exits
with 1.
"""

import re
import sys
from pathlib import Path

LAYERS = [
    ["kernels"],
    ["support"],
    ["io"],
    ["graph"],
    ["attention"],
    ["equivariant", "causal"],
    ["models", "data"],
    ["training", "analysis"],
    ["cli"],
]
HEIGHT = {folder: height for height, folders in enumerate(LAYERS) for folder in folders}
TORCH = ("torch/", "ATen/", "c10/", "caffe2/")
HEADERS = {".h", ".hpp", ".cuh"}
SUFFIXES = HEADERS | {".cc", ".cpp", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def objection(path, layer, target):
    """Why `path` (in folder `layer` of src/, or None for a public header) may not include
    `target`."""
    if path.suffix in HEADERS and target == "torch/torch.h":
        return "a header includes the umbrella torch/torch.h"
    if layer == "kernels" and target.startswith((*TORCH, "nsimplex/")):
        return "kernels include Torch"
    first = target.split("/")[0]
    if "/" not in target or first not in HEIGHT:
        return None
    if layer is None:
        return "a public header includes src/"
    if first != layer and HEIGHT[first] >= HEIGHT[layer]:
        return f"{layer} includes {first}, which is not below it"
    return None


def violations(root):
    """Yields (path, line number, reason) for every forbidden include below `root`."""
    sources = [(folder, None) for folder in [root / "include" / "nsimplex"]]
    for folder in sorted(p for p in (root / "src").iterdir() if p.is_dir()):
        if folder.name not in HEIGHT:
            yield folder, 0, f"src/{folder.name} is not a known layer"
        else:
            sources.append((folder, folder.name))
    for folder, layer in sources:
        for path in sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES):
            for number, line in enumerate(path.read_text().splitlines(), start=1):
                match = INCLUDE.match(line)
                reason = match and objection(path, layer, match[2])
                if reason:
                    yield path, number, reason


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    found = list(violations(root))
    for path, number, reason in found:
        print(f"{path.relative_to(root)}:{number}: {reason}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
