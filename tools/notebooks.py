#!/usr/bin/env python3
"""Runs notebooks without Jupyter, and turns them into pages of the site:

    tools/notebooks.py docs/notebooks/*.ipynb           # runs them and prints what the cells print
    tools/notebooks.py --pages FOLDER docs/notebooks/*.ipynb

A page has the results of its cells: printed text, and pictures of matplotlib or of a last
expression that is an SVG.
"""

import argparse
import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple


class Result(NamedTuple):
    """What a cell leaves: its printed text and its pictures, as SVG."""

    printed: str
    pictures: list[str]


def cells(notebook: Path) -> list[tuple[str, str]]:
    """The kind, markdown or code, and the source of every cell."""
    found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in found]


def _pictures() -> list[str]:
    if "matplotlib.pyplot" not in sys.modules:
        return []
    from matplotlib import pyplot

    pictures = []
    for number in pyplot.get_fignums():
        target = io.StringIO()
        pyplot.figure(number).savefig(target, format="svg", bbox_inches="tight")
        pictures.append(target.getvalue())
    pyplot.close("all")
    return pictures


def execute(notebook: Path) -> list[Result | None]:
    """Runs the code cells in order, in one namespace. One entry per cell; None for Markdown."""
    import matplotlib

    matplotlib.use("Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    results: list[Result | None] = []
    for number, (kind, source) in enumerate(cells(notebook), 1):
        if kind != "code":
            results.append(None)
            continue
        tree = ast.parse(source)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        where = f"{notebook.name}, cell {number}"
        printed, value = io.StringIO(), None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, where, "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), where, "eval"), names)
        pictures = _pictures()
        if hasattr(value, "_repr_svg_"):
            pictures.append(value._repr_svg_())
        results.append(Result(printed.getvalue(), pictures))
    return results


def page(notebook: Path, folder: Path) -> Path:
    """Writes the notebook with its results as Markdown, and its pictures beside it."""
    stem, parts, count = notebook.stem, [], 0
    for (_, source), result in zip(cells(notebook), execute(notebook)):
        if result is None:
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        if result.printed.strip():
            parts.append(f"```text\n{result.printed.rstrip()}\n```")
        for picture in result.pictures:
            count += 1
            (folder / f"{stem}-{count}.svg").write_text(picture, encoding="utf-8")
            parts.append(f"![What the cell above draws]({stem}-{count}.svg)")
    parts.append(f"[The notebook]({notebook.name})")
    target = folder / f"{stem}.md"
    target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--pages", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    for notebook in options.notebooks:
        if options.pages:
            print(page(notebook, options.pages))
            continue
        for result in execute(notebook):
            if result is not None and result.printed:
                print(result.printed, end="")


if __name__ == "__main__":
    main()
