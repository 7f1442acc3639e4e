#!/usr/bin/env python3
"""Checks the include arrows of a source tree: tools/check_layers.py [ROOT]

Folders of src/ are layers. A file may include files of its own folder and of lower layers:

    cli > train, analysis > nn, data > equivariant, causal > attention > graph > io > support
        > kernels

Folders of one layer do not know each other, and neither do the folders of two attention
operators: what they share is in attention/common, and of their kernels in kernels/cpu/shared. The
laboratory, lab/, may include all of src/. Nothing includes it, and of its rooms only common is
known to the others. Nothing below src/kernels includes Torch, directly or through the public
headers. The public headers include nothing of src/. No header includes the umbrella torch/torch.h,
which costs every includer ten seconds. Prints each offending line and exits with 1.
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
    ["nn", "data"],
    ["train", "analysis"],
    ["cli"],
    ["lab"],
]
HEIGHT = {folder: height for height, folders in enumerate(LAYERS) for folder in folders}
TORCH = ("torch/", "ATen/", "c10/", "caffe2/")
HEADERS = {".h", ".hpp", ".cuh"}
SUFFIXES = HEADERS | {".cc", ".cpp", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


# Folders whose own folders do not know each other, and the one that serves them all.
ROOMS = {
    ("attention",): "common",
    ("kernels", "cpu"): "shared",
    ("lab",): "common",
}


def sibling(path, target):
    """The room that `target` is in, where `path` is in another room of the same folder."""
    for folder, shared in ROOMS.items():
        own, other = path[: len(folder) + 1], target[: len(folder) + 1]
        if len(path) < len(folder) + 2 or len(target) < len(folder) + 2:
            continue
        if own[:-1] == folder == other[:-1] and other[-1] not in (own[-1], shared):
            return "/".join(other)
    return None


def objection(path, layer, target):
    """Why `path` may not include `target`.

    `layer` is the path's folder of src/, "lab", or None for a public header.
    """
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
    room = sibling(path.parts, tuple(target.split("/")))
    if room is not None:
        return f"{'/'.join(path.parts[:-1])} includes {room}, a room beside it"
    return None


def violations(root):
    """Yields (path, line number, reason) for every forbidden include below `root`."""
    sources = [(root / "include" / "nsimplex", None, root)]
    for folder in sorted(p for p in (root / "src").iterdir() if p.is_dir()):
        if folder.name not in HEIGHT or folder.name == "lab":
            yield folder, 0, f"src/{folder.name} is not a known layer"
        else:
            sources.append((folder, folder.name, root / "src"))
    sources.append((root / "lab", "lab", root))
    for folder, layer, above in sources:
        for path in sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES):
            for number, line in enumerate(path.read_text().splitlines(), start=1):
                match = INCLUDE.match(line)
                reason = match and objection(path.relative_to(above), layer, match[2])
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
