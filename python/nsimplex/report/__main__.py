"""``python -m nsimplex.report DIR``: exit code 0, or 2 with one line when DIR cannot be
reported."""

from __future__ import annotations

import argparse
import sys

from .._printable import exit_code
from . import write_report


def _run() -> None:
    parser = argparse.ArgumentParser(prog="nsimplex report", description="Write DIR/report.html")
    parser.add_argument("directory", metavar="DIR")
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="NAME",
        help="show the strongest part of a learned graph around this column; may be repeated",
    )
    options = parser.parse_args()
    try:
        print(write_report(options.directory, columns=options.column))
    except ValueError as error:
        raise ValueError(str(error).replace("[write_report] columns:", "--column:")) from None


def main() -> int:
    return exit_code(_run)


if __name__ == "__main__":
    sys.exit(main())
