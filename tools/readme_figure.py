#!/usr/bin/env python3
"""Draws the README's picture from a measured run:

    nsimplex task match3 --out runs/match3
    tools/readme_figure.py runs/match3 docs/images/match3.svg

The report's figures take their colours from the page around them; a picture of its own needs fixed ones.
"""

import re
import sys
from pathlib import Path

from nsimplex.report.data import read_run
from nsimplex.report.match_plots import match_curves
from nsimplex.report.style import STYLE


def main() -> None:
    run, target = Path(sys.argv[1]), Path(sys.argv[2])
    svg = match_curves(read_run(run).match[0])
    light = STYLE.partition("@media")[0]
    for name, color in re.findall(r"(--[\w-]+): (#\w+)", light):
        svg = svg.replace(f"var({name})", color)
    tag, rest = svg.split(">", 1)
    background = '<rect width="100%" height="100%" fill="#ffffff"/>'
    target.write_text(f'{tag} font-family="sans-serif">{background}{rest}', encoding="utf-8")


if __name__ == "__main__":
    main()
