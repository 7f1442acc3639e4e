"""What commands written in Python show of names from files and of errors."""

from __future__ import annotations

import errno
import os
import sys
import unicodedata
from collections.abc import Callable
from typing import Any, NoReturn, TextIO

# Joiners that words of some scripts need; other characters of format turn the direction of writing.
_JOINERS = "\u200c\u200d"
_ACTING = ("Cc", "Cf", "Cs", "Zl", "Zp")


def printable(text: object) -> str:
    """A text on one line, with what would act on a terminal escaped, as ``printable`` of the C++
    sources does: control characters, ends of lines, surrogates and marks of direction."""
    shown = []
    for letter in str(text):
        acts = unicodedata.category(letter) in _ACTING and letter not in _JOINERS
        shown.append(letter.encode("unicode_escape").decode("ascii") if acts else letter)
    return "".join(shown)


def exit_code(command: Callable[[], object], name: str = "nsimplex") -> int:
    """Run a command: 0, or 2 with one line on standard error if it cannot use its arguments, files
    or an optional package, 130 if Ctrl-C stops it, or 1 if standard output takes no more: without a
    word if its reader has closed the pipe, with one line if it is full."""
    out = sys.stdout
    sys.stdout = _Output(out)
    try:
        try:
            command()
        finally:  # also after --help, which ends the command
            sys.stdout.flush()
    except _OutputFailed as error:
        return output_failed(out, error.why, name)
    except (OSError, ValueError, ModuleNotFoundError) as error:
        _complain(name, printable(error))
        return 2
    except KeyboardInterrupt:
        _complain(name, "stopped")
        return 130
    finally:
        sys.stdout = out
    return 0


def output_failed(out: TextIO | None, why: OSError, name: str = "nsimplex") -> int:
    """The exit code of a command whose standard output takes no more, after one line unless its
    reader has closed the pipe."""
    _discard(out)
    if why.errno != errno.EPIPE:
        _complain(name, f"cannot write to standard output: {why.strerror}")
    return 1


def end_process(code: int) -> NoReturn:
    """Ends the process at once, as :func:`os._exit` does, after what its streams still hold."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:  # a closed pipe or a full disk: the command has said so
            pass
    os._exit(code)


def _complain(name: str, why: str) -> None:
    """Writes a line to standard error, if that takes it."""
    if sys.stderr is None:
        return
    try:
        print(f"{name}: {why}", file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO | None) -> None:
    """Python flushes what is left in a stream at its end, and would complain again."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _OutputFailed(Exception):
    """Standard output does not take what is written to it."""

    def __init__(self, why: OSError):
        super().__init__(str(why))
        self.why = why


class _Output:
    """Standard output, whose errors differ from those of files."""

    def __init__(self, stream: TextIO | None):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        if self._stream is None:
            raise _OutputFailed(OSError(errno.EBADF, os.strerror(errno.EBADF)))
        try:
            return self._stream.write(text)
        except OSError as error:
            raise _OutputFailed(error) from None

    def flush(self) -> None:
        if self._stream is None:
            return
        try:
            self._stream.flush()
        except OSError as error:
            raise _OutputFailed(error) from None
