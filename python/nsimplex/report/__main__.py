"""``python -m nsimplex.report DIR``: exit code 0, or 2 with one line when DIR cannot be
reported."""

from __future__ import annotations

import argparse
import sys

from .._printable import exit_code
from . import write_report


def main() -> int:
    parser = argparse.ArgumentParser(prog="nsimplex report", description="Write DIR/report.html")
    parser.add_argument("directory", metavar="DIR")
    directory = parser.parse_args().directory
    return exit_code(lambda: print(write_report(directory)))


if __name__ == "__main__":
    sys.exit(main())
