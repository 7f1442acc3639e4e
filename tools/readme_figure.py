#!/usr/bin/env python3
"""Draws the README's picture from a measured run:

    nsimplex lab match3 --out runs/match3
    tools/readme_figure.py runs/match3 docs/images/match3.svg

The report's figures take their colours from the page around them; a picture of its own needs fixed
ones.
"""

import sys
from pathlib import Path

from nsimplex.report.elements import picture
from nsimplex.report.match import match_curves, match_runs
from nsimplex.report.run import read_run


def main() -> None:
    run, target = Path(sys.argv[1]), Path(sys.argv[2])
    folders = read_run(run).having_kinds({"match_point", "match_result"})
    svg = match_curves(match_runs(folders)[0])
    target.write_text(picture(svg), encoding="utf-8")


if __name__ == "__main__":
    main()
