"""The parts of a run: which module computes each, in how many processes, with what share of the
time.

A module has items(setup), the names of its items in order of importance; run(item, setup), the
record of one; lines(records), its table. A record with "ok": False is a failure. Where WARM is
set, all items first run once by warm(item, setup) in parallel, which compiles their kernels, and
then one after the other in a single process, which times them; "required" leaves out the items that
were not warmed in time.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class Part:
    module: str
    weight: float  #: share of the time that is left when it starts, relative to the later ones
    processes: int  #: at most
    item_seconds: float  #: an item that takes longer is killed, and its process replaced

    def load(self) -> ModuleType:
        return importlib.import_module(self.module)


PARTS = {
    "correctness": Part("correctness", 3.0, 16, 100),
    "timings": Part("timings", 2.5, 12, 60),
    "bits": Part("bits", 0.5, 6, 60),
    "tiles": Part("tiles", 3.0, 16, 60),
    "sanitizer": Part("sanitizer", 1.0, 5, 110),
    "suite": Part("suite", 2.0, 4, 590),
    "training": Part("training", 2.0, 8, 60),
}
NAMES = list(PARTS)
