"""``python -m nsimplex.report DIR``: exit code 0, or 2 with one line when DIR cannot be
reported."""

from __future__ import annotations

import argparse
import sys

from .._printable import printable
from . import write_report


def main() -> int:
    parser = argparse.ArgumentParser(prog="nsimplex report", description="Write DIR/report.html")
    parser.add_argument("directory", metavar="DIR")
    try:
        print(write_report(parser.parse_args().directory))
    except (OSError, ValueError) as error:
        print(f"nsimplex: {printable(error)}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
