"""Where higher order pays: tasks on which attention layers of several orders are compared.

    python -m nsimplex.lab.pays --list
    python -m nsimplex.lab.pays joint-recall
    python -m nsimplex.lab.pays joint-recall --layer my.module:Layer

All models of a task have the flops of one layer of order 2, the same rates, and the same data per
seed. `docs/guide/when-order-pays.md` describes the tasks and how to bring a layer.
"""

from .compared_models import ModelSpec, Network, fit_size
from .paired_training import Settings, run_task
from .registry import TASKS
from .task import Batch, Task

__all__ = ["TASKS", "Batch", "ModelSpec", "Network", "Settings", "Task", "fit_size", "run_task"]
