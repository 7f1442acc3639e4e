"""What commands written in Python show of names from files and of errors."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable

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
    or an optional package, 130 if Ctrl-C stops it, or 1 if the reader of its output has closed the
    pipe."""
    try:
        command()
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes what is left at its end, and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, ValueError, ModuleNotFoundError) as error:
        print(f"{name}: {printable(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: stopped", file=sys.stderr)
        return 130
    return 0
