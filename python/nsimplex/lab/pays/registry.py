"""All tasks by name."""

from __future__ import annotations

from . import memory, molecule_tasks, quantities, relations, sequences, sums
from .task import Task

__all__ = ["TASKS"]

#: The four that are examined in depth come first, the controls last.
_ORDER = ("joint-recall", "composition", "triangles", "molecules")
_FOUND = {
    task.name: task
    for part in (memory, relations, sums, sequences, molecule_tasks, quantities)
    for task in part.TASKS
}
_CONTROLS = ("breast-cancer", "diabetes", "single-key-recall", "copy", "bag-of-tokens")
_OTHERS = [name for name in _FOUND if name not in (*_ORDER, *_CONTROLS)]

#: Every task of the benchmark by its name, in the order of the page.
TASKS: dict[str, Task] = {name: _FOUND[name] for name in (*_ORDER, *_OTHERS, *_CONTROLS)}
