#!/usr/bin/env python3
"""Draws the README's picture from a measured run:

    nsimplex lab match3 --out runs/match3
    tools/readme_figure.py runs/match3 docs/images/match3.svg

The report's figures take their colours from the page around them; a picture of its own needs fixed
ones.
"""

import re
import sys
from pathlib import Path

from nsimplex.report.elements import PAGE_STYLE
from nsimplex.report.match import match_curves, match_runs
from nsimplex.report.run import read_run


def main() -> None:
    run, target = Path(sys.argv[1]), Path(sys.argv[2])
    folders = read_run(run).having_kinds({"match_point", "match_result"})
    svg = match_curves(match_runs(folders)[0])
    light = PAGE_STYLE.partition("@media")[0]
    for name, color in re.findall(r"(--[\w-]+): (#\w+)", light):
        svg = svg.replace(f"var({name})", color)
    tag, rest = svg.split(">", 1)
    background = '<rect width="100%" height="100%" fill="#ffffff"/>'
    target.write_text(f'{tag} font-family="sans-serif">{background}{rest}', encoding="utf-8")


if __name__ == "__main__":
    main()
