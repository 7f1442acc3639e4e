"""How far a long call is, on standard error."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Progress", "progress_calls"]

_DELAY = 1.0  # seconds: a call that ends sooner shows nothing
_PERIOD = 10.0  # seconds between two lines


class Progress:
    """A bar of tqdm on a terminal or in a notebook, if tqdm is installed; otherwise a line every
    ten seconds. Nothing is shown in the first second.

    Args:
        label: of the work.
        shown: None: on a terminal and in a notebook, while the call runs, and not by workers; True:
            in a file or a pipe, too, as lines, and the bar stays; False: nowhere.
    """

    def __init__(self, label: str, shown: bool | None = None) -> None:
        screen = (_is_notebook() or _is_terminal()) and (bool(shown) or _is_main())
        self._label = label
        self._shown = screen if shown is None else shown
        self._bar: Any = _tqdm_bar(label, bool(shown)) if self._shown and screen else None
        self._forced, self._line, self._shown_line = bool(shown), "", ""
        self._due = time.monotonic() + _DELAY

    def update(self, done: int, total: int = 0, detail: str = "") -> None:
        """The steps that are done, and all of them; 0: unknown."""
        if not self._shown:
            return
        if self._bar is not None:
            if done < self._bar.n:  # of another phase
                self._bar.reset()
            self._bar.total = total or None
            self._bar.set_postfix_str(detail, refresh=False)
            self._bar.update(done - self._bar.n)
            return
        of = f"/{total}" if total else ""
        self._line = f"{self._label} {done}{of}" + (f"  {detail}" if detail else "")
        if time.monotonic() >= self._due:
            self._print()

    def close(self) -> None:
        """Shows the last state."""
        if self._bar is not None:
            self._bar.close()
        elif self._line != self._shown_line and (self._forced or self._shown_line):
            self._print()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _print(self) -> None:
        self._shown_line, self._due = self._line, time.monotonic() + _PERIOD
        if sys.stderr is not None:
            print(self._line, file=sys.stderr, flush=True)


@contextmanager
def progress_calls(
    label: str, progress: bool | Callable[[int, int], Any] | None
) -> Iterator[Callable[[int, int], Any] | None]:
    """The function that gets (done, total): the user's own, that of a :class:`Progress`, or None if
    nothing is shown."""
    if callable(progress) or progress is False:
        yield progress or None
        return
    with Progress(label, progress) as bar:
        yield bar.update


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _is_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _is_main() -> bool:
    """Whether this is the main process and thread. Several workers would write over each other."""
    in_main = threading.current_thread() is threading.main_thread()
    return in_main and multiprocessing.current_process().name == "MainProcess"


def _tqdm_bar(label: str, stays: bool) -> Any:
    """None without tqdm."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a notebook without widgets, which gets text
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(desc=label, delay=_DELAY, dynamic_ncols=True, leave=stays)
