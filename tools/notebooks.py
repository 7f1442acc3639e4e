#!/usr/bin/env python3
"""Runs notebooks without Jupyter, and keeps what their cells print and draw:

    tools/notebooks.py docs/notebooks/*.ipynb           # runs them and prints what the cells print
    tools/notebooks.py --write docs/notebooks/*.ipynb   # runs them and stores their outputs
    tools/notebooks.py --check docs/notebooks/*.ipynb   # runs them and compares with stored outputs

Outputs are printed text, figures of matplotlib, and a last expression that is an SVG. Warnings are
not kept. A notebook has a checksum of the code that made its outputs.

Another processor or version of Python gives slightly different numbers. ``--check`` therefore
compares the words and the kinds of pictures. Of a cell with the tag ``varies``, whose words may
differ too, it compares only whether there is text.
"""

import argparse
import ast
import base64
import contextlib
import hashlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

PNG, SVG = "image/png", "image/svg+xml"


class Result(NamedTuple):
    """What a cell leaves: its printed text, and the kind and content of every picture, a PNG in
    base64 or an SVG."""

    printed: str
    pictures: list[tuple[str, str]]


def read(notebook: Path) -> dict[str, Any]:
    return json.loads(notebook.read_text(encoding="utf-8"))


def cells(notebook: Path) -> list[tuple[str, str]]:
    """The kind, markdown or code, and the source of every cell."""
    return [(cell["cell_type"], "".join(cell["source"])) for cell in read(notebook)["cells"]]


def checksum(notebook: Path) -> str:
    """That of the code, which decides the outputs."""
    code = [source for kind, source in cells(notebook) if kind == "code"]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()


def _figures() -> list[tuple[str, str]]:
    if "matplotlib.pyplot" not in sys.modules:
        return []
    from matplotlib import pyplot

    pictures = []
    for number in pyplot.get_fignums():
        target = io.BytesIO()
        pyplot.figure(number).savefig(
            target, format="png", dpi=100, bbox_inches="tight", metadata={"Software": None}
        )
        pictures.append((PNG, base64.b64encode(target.getvalue()).decode()))
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
        pictures = _figures()
        if hasattr(value, "_repr_svg_"):
            pictures.append((SVG, value._repr_svg_()))
        results.append(Result(printed.getvalue(), pictures))
    return results


def _outputs(result: Result, count: int) -> list[dict[str, Any]]:
    """A result in the words of the notebook format."""
    outputs: list[dict[str, Any]] = []
    if result.printed:
        text = result.printed.splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    for kind, content in result.pictures:
        data = {kind: content if kind == PNG else content.splitlines(keepends=True)}
        picture = {"data": {**data, "text/plain": ["a picture"]}, "metadata": {}}
        if kind == PNG:
            outputs.append({**picture, "output_type": "display_data"})
        else:
            outputs.append({**picture, "execution_count": count, "output_type": "execute_result"})
    return outputs


def write(notebook: Path, results: list[Result | None]) -> None:
    """Stores the results in the notebook. The same results make the same file."""
    content, count = read(notebook), 0
    for cell, result in zip(content["cells"], results):
        if result is not None:
            count += 1
            cell.update(execution_count=count, outputs=_outputs(result, count))
    content["metadata"]["nsimplex"] = {"code": checksum(notebook)}
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def stored(notebook: Path) -> list[Result | None]:
    """The results that the notebook has, as `execute` returns them."""
    results: list[Result | None] = []
    for cell in read(notebook)["cells"]:
        if cell["cell_type"] != "code":
            results.append(None)
            continue
        printed, pictures = "", []
        for output in cell["outputs"]:
            printed += "".join(output.get("text", ()))
            for kind in (PNG, SVG):
                if kind in output.get("data", ()):
                    pictures.append((kind, "".join(output["data"][kind])))
        results.append(Result(printed, pictures))
    return results


def is_current(notebook: Path) -> bool:
    """Whether the stored outputs come from the code that the notebook has."""
    return read(notebook)["metadata"].get("nsimplex") == {"code": checksum(notebook)}


def _compared(result: Result | None, varies: bool) -> Any:
    if result is None:
        return None
    text = re.sub(r"-?\d+(\.\d*)?(e[+-]?\d+)?", "0", result.printed)
    return bool(text) if varies else text, [kind for kind, _ in result.pictures]


def differences(notebook: Path, results: list[Result | None]) -> list[str]:
    """A line per cell whose results differ from the stored ones in more than numbers."""
    found = []
    if not is_current(notebook):
        found.append(f"{notebook.name}: its code is newer than its outputs")
    kept = zip(read(notebook)["cells"], stored(notebook), results)
    for number, (cell, before, now) in enumerate(kept, 1):
        varies = "varies" in cell["metadata"].get("tags", ())
        if _compared(before, varies) != _compared(now, varies):
            found.append(f"{notebook.name}, cell {number}: stored {before}, made {now}")
    return found


def page(notebook: Path, folder: Path, head: str = "") -> Path:
    """Writes the notebook with its outputs as Markdown, and its pictures beside it. The head comes
    below the heading."""
    stem, parts, count = notebook.stem, [], 0
    for (_, source), result in zip(cells(notebook), stored(notebook)):
        if result is None:
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        if result.printed.strip():
            parts.append(f"```text\n{result.printed.rstrip()}\n```")
        for kind, content in result.pictures:
            count += 1
            name = f"{stem}-{count}.{'png' if kind == PNG else 'svg'}"
            data = base64.b64decode(content) if kind == PNG else content.encode()
            (folder / name).write_bytes(data)
            parts.append(f"![What the cell above draws]({name})")
    heading, _, rest = parts[0].partition("\n")
    parts[:1] = [part for part in (heading, head, rest.strip()) if part]
    parts.append(f"[The notebook]({notebook.name})")
    target = folder / f"{stem}.md"
    target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="+", type=Path)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--write", action="store_true", help="store the outputs")
    choice.add_argument("--check", action="store_true", help="compare with the stored outputs")
    options = parser.parse_args()
    found = []
    for notebook in options.notebooks:
        results = execute(notebook)
        if options.write:
            write(notebook, results)
        elif options.check:
            found += differences(notebook, results)
        else:
            print(*[result.printed for result in results if result], sep="", end="")
    sys.exit("\n".join(found) or None)


if __name__ == "__main__":
    main()
