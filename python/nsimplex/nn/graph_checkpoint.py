"""The files of a training of a model of graphs, and its state to continue from."""

from __future__ import annotations

import json
import math
import struct
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .._build_info import VERSION
from .._printable import printable
from .._safetensors import Safetensors, quoted, write_safetensors
from .._whole_file import whole_file
from .graph_models import MODEL_FILE, GraphModel

CHECKPOINT_FILE = "checkpoint.safetensors"
CONFIG_FILE, METRICS_FILE = "config.toml", "metrics.jsonl"
INFO_FILE = "info.json"  # what a page tells about the build
_FORMAT = "nsimplex graph checkpoint 2"
_DRAWN_AT_ONCE = 624  # numbers of torch's generator
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
    holders = {f"model.{name}": own for name, own in model.state_dict().items()}
    holders |= {f"best.{name}": own for name, own in best.items()}
    generators = {"generator": generator.get_state(), "default": torch.get_rng_state()}
    found = {name: _fitting(file, name, own) for name, own in (holders | generators).items()}
    moments = _moments(file, optimizer)
    known = {*found, *(f"optimizer.{n}.{name}" for n in moments for name in _MOMENTS)}
    for name in file.names:
        if name not in known:
            file.fail(f"its tensor {quoted(name)} belongs to no such training")
    for name in generators:
        _require_generator(file, found[name])
    try:
        generator.set_state(found["generator"])
        torch.set_rng_state(found["default"])
    except RuntimeError:  # numbers that no generator has
        file.fail("the state of a generator of random numbers is damaged")
    with torch.no_grad():
        for name, own in holders.items():
            own.copy_(found[name])
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})
    return state


def _require_generator(file: Safetensors, state: Tensor) -> None:
    """Check that what is left of the numbers of a generator does not pass their end, beyond which
    torch would read."""
    left, _, place = struct.unpack("<iiQ", state[8:24].numpy().tobytes())
    if left < 1 or place + left > _DRAWN_AT_ONCE + 1:
        file.fail("the state of a generator of random numbers is damaged")


def _fitting(file: Safetensors, name: str, own: Tensor) -> Tensor:
    """The tensor of a file that takes the place of another one."""
    if name not in file:
        file.fail(f"expected a tensor {name} of shape {list(own.shape)}")
    tensor = file.tensor(name)
    if tensor.shape != own.shape or tensor.dtype != own.dtype:
        file.fail(
            f"tensor {name}: expected {own.dtype} of shape {list(own.shape)}, got {tensor.dtype} "
            f"of shape {list(tensor.shape)}"
        )
    if tensor.is_floating_point() and not tensor.isfinite().all():
        file.fail(f"tensor {name}: expected finite numbers")
    return tensor


def _moments(file: Safetensors, optimizer: torch.optim.Optimizer) -> dict[int, dict[str, Tensor]]:
    """What AdamW keeps of every parameter that had a gradient, by the parameter's number."""
    found: dict[int, dict[str, Tensor]] = {}
    parameters = [own for group in optimizer.param_groups for own in group["params"]]
    for number, parameter in enumerate(parameters):
        if not any(f"optimizer.{number}.{name}" in file for name in _MOMENTS):
            continue
        like: dict[str, Tensor] = {"exp_avg": parameter, "exp_avg_sq": parameter}
        like["step"] = torch.zeros(())
        found[number] = {
            name: _fitting(file, f"optimizer.{number}.{name}", own) for name, own in like.items()
        }
        for name in ("step", "exp_avg_sq"):
            if (found[number][name] < 0).any():
                file.fail(f"tensor optimizer.{number}.{name}: expected numbers from 0 on")
    return found


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
        fields = json.loads(file.metadata["state"])
        state = FitState(**fields)
    except (KeyError, TypeError, ValueError, RecursionError):
        file.fail("the header's state is damaged")
    for name, own in asdict(FitState()).items():
        if name not in fields:
            file.fail(f"the header's state has no {name}")
        value: Any = getattr(state, name)
        if type(value) is not type(own) or value != value:
            file.fail(f"{name}: expected {type(own).__name__}, got {printable(repr(value))[:40]}")
    for name, least, most in (
        ("epoch", 0, 2**31),
        ("best", 0, state.epoch),
        ("better", 0, state.epoch),
    ):
        if not least <= getattr(state, name) <= most:
            file.fail(f"{name}: expected {least} to {most}, got {getattr(state, name)}")
    return file, state


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
