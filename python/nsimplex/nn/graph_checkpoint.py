"""The files of a training of a model of graphs, and its state to continue from."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .._build_info import VERSION
from .._printable import printable
from .._safetensors import Safetensors, write_safetensors
from .._whole_file import whole_file
from .graph_models import MODEL_FILE, GraphModel

CHECKPOINT_FILE = "checkpoint.safetensors"
CONFIG_FILE, METRICS_FILE = "config.toml", "metrics.jsonl"
INFO_FILE = "info.json"  # what a page tells about the build
_FORMAT = "nsimplex graph checkpoint 2"
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass
class FitState:
    """How far a training is."""

    epoch: int = 0  #: epochs that ran
    score: float = -math.inf  #: the best one
    loss: float = math.inf  #: validation loss of the best epoch
    best: int = 0  #: the best epoch
    better: int = 0  #: the last epoch that the patience counts from
    ended: bool = False

    def take(self, score: float, loss: float) -> bool:
        """Whether the epoch is the best so far. The loss decides between equal scores, and between
        those that do not exist. The patience counts from the last better score."""
        score = -math.inf if math.isnan(score) else score
        loss = math.inf if math.isnan(loss) else loss
        better = score > self.score or not self.best
        tie = score == self.score and loss < self.loss
        if better or tie:
            self.score, self.loss, self.best = score, loss, self.epoch
        if better or (tie and score == -math.inf):
            self.better = self.epoch
        return better or tie


def write_checkpoint(
    path: Path,
    model: torch.nn.Module,
    best: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    state: FitState,
) -> None:
    """Writes weights, the best weights, AdamW's moments and both generators of random numbers."""
    tensors = {f"model.{name}": own.detach() for name, own in model.state_dict().items()}
    tensors |= {f"best.{name}": own for name, own in best.items()}
    for number, own in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": own[name] for name in _MOMENTS}
    tensors |= {"generator": generator.get_state(), "default": torch.get_rng_state()}
    contiguous = {name: own.cpu().contiguous() for name, own in tensors.items()}
    write_safetensors(path, contiguous, {"format": _FORMAT, "state": json.dumps(asdict(state))})


def read_checkpoint(
    path: Path,
    model: torch.nn.Module,
    best: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
) -> FitState:
    """Puts a checkpoint into its four holders.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.
    """
    file, state = _checked(path)
    wanted = {f"model.{name}": own for name, own in model.state_dict().items()}
    wanted |= {f"best.{name}": own for name, own in best.items()}
    for name, own in wanted.items():
        if name not in file or file.tensor(name).shape != own.shape:
            file.fail(f"expected a tensor {name} of shape {list(own.shape)}")
        own.copy_(file.tensor(name))
    moments: dict[int, dict[str, Any]] = {}
    for name in file.names:
        if name.startswith("optimizer."):
            _, number, kind = name.split(".")
            moments.setdefault(int(number), {})[kind] = file.tensor(name)
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})
    generator.set_state(file.tensor("generator"))
    torch.set_rng_state(file.tensor("default"))
    return state


def read_fit_state(path: Path) -> FitState:
    """How far the training of a checkpoint is.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.
    """
    return _checked(path)[1]


def _checked(path: Path) -> tuple[Safetensors, FitState]:
    file = Safetensors(path)
    if file.metadata.get("format") != _FORMAT or not file.checked:
        file.fail("not a checkpoint of a training of graphs")
    try:
        return file, FitState(**json.loads(file.metadata["state"]))
    except (KeyError, TypeError, ValueError):
        file.fail("the header's state is damaged")


def _keep_epochs(path: Path, count: int) -> None:
    """Drops the lines that were written after the checkpoint."""
    kept = []
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError, TypeError, KeyError):
                fields = json.loads(line)
                if fields["kind"] == "graph_epoch" and fields["epoch"] <= count:
                    kept.append(line + "\n")
    with whole_file(path, encoding="utf-8") as file:
        file.writelines(kept)


class RunFiles:
    """Options and metrics of a training in a run folder."""

    def __init__(self, folder: Any, model: GraphModel, options: dict[str, Any]) -> None:
        self.folder = None if folder is None else Path(folder)
        self._config = [f"# nsimplex.nn.fit_graphs of a {type(model).__name__}"]
        for section, fields in (("model", model.options), ("fit", options)):
            self._config += ["", f"[{section}]"]
            self._config += [f"{name} = {json.dumps(own)}" for name, own in fields.items()]

    def begin(self, resume: bool) -> None:
        """Makes the folder, or checks that it has the run that continues."""
        if self.folder is None:
            return
        config, checkpoint = self.folder / CONFIG_FILE, self.folder / CHECKPOINT_FILE
        if resume and checkpoint.exists():
            self._require_same(config, self._config)
            _keep_epochs(self.folder / METRICS_FILE, read_fit_state(checkpoint).epoch)
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in (CHECKPOINT_FILE, MODEL_FILE):
            (self.folder / name).unlink(missing_ok=True)  # of an earlier run
        build = {"version": VERSION, "torch": torch.__version__, "threads": torch.get_num_threads()}
        with whole_file(self.folder / INFO_FILE, encoding="utf-8") as file:
            file.write(json.dumps({"kind": "info", **build}) + "\n")
        with whole_file(config, encoding="utf-8") as file:
            file.write("\n".join(self._config) + "\n")
        with open(self.folder / METRICS_FILE, "w", encoding="utf-8"):
            pass

    def _require_same(self, config: Path, lines: list[str]) -> None:
        at = "[fit_graphs] resume: "
        try:
            before = config.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            reason = error.strerror or error
            raise ValueError(f"{at}cannot read {printable(config)}: {reason}") from None
        for own, other in zip_longest(lines, before, fillvalue="nothing"):
            if own != other:
                raise ValueError(
                    f"{at}expected the options of the run, {printable(other)[:80]}, got "
                    f"{printable(own)[:80]}"
                )

    def line(self, kind: str, **fields: Any) -> None:
        if self.folder is not None:
            finite = {k: v if v == v else None for k, v in fields.items()}
            with open(self.folder / METRICS_FILE, "a", encoding="utf-8") as file:
                file.write(json.dumps({"kind": kind, **finite}) + "\n")

    def sync(self) -> None:
        pass
