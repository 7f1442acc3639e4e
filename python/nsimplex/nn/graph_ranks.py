"""The processes of ``torch.distributed`` that train one model of graphs together."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn


class RanksLost(RuntimeError):
    """A message between the ranks failed. The text is empty if another rank has the error."""

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds  #: how long the message waited


class Share(NamedTuple):
    """The loss of a rank's rows of a batch."""

    loss: Tensor  #: the mean over the known targets
    known: int  #: their number
    rows: int


class GraphRanks:
    """The ranks of the default process group; the only one if there is no group.

    Every rank calls the same functions in the same order. Sums have the same bits on every rank,
    and again if they are repeated with as many ranks. A function whose message fails raises
    :class:`RanksLost`.
    """

    def __init__(self) -> None:
        joined = dist.is_available() and dist.is_initialized()
        self.size = dist.get_world_size() if joined else 1
        self.rank = dist.get_rank() if joined else 0
        on_gpu = joined and dist.get_backend() == "nccl"
        self._device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else "cpu"

    @property
    def writes(self) -> bool:
        """Whether this rank writes files and metrics."""
        return self.rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """Replaces the values by their sums over the ranks."""
        if self.size > 1:
            since = time.monotonic()
            try:
                dist.all_reduce(values)
            except RuntimeError as error:
                reason = str(error).partition("\n")[0]
                raise RanksLost(reason, time.monotonic() - since) from None
        return values

    def gather(self, numbers: Iterable[float]) -> list[list[float]]:
        """The numbers of all ranks, by rank."""
        own = torch.tensor([*numbers], dtype=torch.float64, device=self._device)
        every = own.new_zeros(self.size, len(own))
        every[self.rank] = own
        return self.sum(every).tolist()

    def of_first(self, numbers: Iterable[float]) -> list[float]:
        """The numbers of rank 0."""
        return [*numbers] if self.size == 1 else self.gather(numbers)[0]

    def any(self, here: bool) -> bool:
        """Whether it is true on any rank."""
        return here if self.size == 1 else any(each for (each,) in self.gather([here]))

    def on_first(self, action: Callable[[], object]) -> None:
        """Runs an action on rank 0 and returns on all ranks afterwards. If it fails there, the
        others raise :class:`RanksLost` without a text."""
        error: Exception | None = None
        if self.writes:
            try:
                action()
            except Exception as raised:
                if self.size == 1:
                    raise
                error = raised
        failed = self.any(error is not None)
        if error is not None:
            raise error
        if failed:
            raise RanksLost("", 0.0)

    def start(self, model: nn.Module, facts: Iterable[Tensor | str]) -> None:
        """Gives all ranks the weights of rank 0.

        Args:
            facts: tensors and texts that must be the same on all ranks.

        Raises:
            ValueError: they differ.
        """
        if self.size == 1:
            return
        sums = [float(_checksum(fact)) for fact in facts]
        for rank, own in enumerate(every := self.gather(sums)):
            if own != every[0]:
                raise ValueError(
                    "[fit_graphs] data: expected the same model, data, split and options on all "
                    f"ranks, got others on rank {rank} than on rank 0"
                )
        with torch.no_grad():
            for own in model.state_dict().values():
                self.sum(own if self.writes else own.zero_())

    def learn(self, share: Callable[[], Share | None], model: nn.Module) -> tuple[float, int]:
        """Computes the gradients of the mean loss over the known targets of all ranks.

        Args:
            share: the loss of this rank's rows; None if it has none.

        Returns:
            The loss, and the number of rows of all ranks.
        """
        if self.size == 1:
            own = share()
            assert own is not None
            if own.loss.isfinite():
                own.loss.backward()
            return own.loss.item(), own.rows
        numbers, error = [0.0, 0.0, 0.0], None
        try:
            own = share()
            if own is not None:
                numbers = [own.loss.item() * own.known, float(own.known), float(own.rows)]
                (own.loss * own.known).backward()
        except Exception as raised:  # the others must learn of it
            error = raised
        parameters = [each for each in model.parameters() if each.requires_grad]
        have = [float(each.grad is not None) for each in parameters]
        every = self.gather([float(error is not None), *numbers, *have])
        if error is not None:
            raise error
        failed, loss, known, rows, *have = (sum(column) for column in zip(*every))
        if failed:
            raise RanksLost("", 0.0)
        self._average([own for own, any_has in zip(parameters, have) if any_has], max(known, 1.0))
        return loss / max(known, 1.0), int(rows)

    @torch.no_grad()
    def _average(self, parameters: list[nn.Parameter], count: float) -> None:
        """Sums gradients over the ranks and divides them. One message per dtype."""
        for dtype in {each.dtype: None for each in parameters}:
            own = [each for each in parameters if each.dtype == dtype]
            for each in own:
                if each.grad is None:
                    each.grad = torch.zeros_like(each)
            gradients = [each.grad for each in own if each.grad is not None]
            flat = self.sum(torch.cat([each.reshape(-1) for each in gradients])) / count
            for gradient, part in zip(gradients, flat.split([each.numel() for each in gradients])):
                gradient.copy_(part.view_as(gradient))


def _checksum(fact: Tensor | str) -> int:
    if isinstance(fact, str):
        return zlib.crc32(fact.encode())
    about = zlib.crc32(f"{fact.dtype} {list(fact.shape)}".encode())
    own = fact.detach().cpu().reshape(-1).contiguous()
    return zlib.crc32(own.view(torch.uint8).numpy().tobytes(), about) if len(own) else about
