#!/usr/bin/env python3
"""Makes the pages of the site from Markdown, notebooks, modules and headers of the project:

    tools/site/pages.py build/site

Pages lead to the project's repository, and the first notebook to Colab, if CITATION.cff has an
address.

The tree of folders stays as it is in the project, so links between pages stay as they are. Links to
files that are no pages are changed: headers lead to their reference, notebooks to their page, other
files to a copy.
"""

import argparse
import importlib
import inspect
import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / part) for part in ("", "site", "metadata")]

import notebooks  # noqa: E402
from addresses import LINK_OR_CODE, repository  # noqa: E402
from command_tables import fill, read_commands  # noqa: E402
from reference import REFERENCE  # noqa: E402

FIRST = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
)


def copy_pages(pages: Path) -> list[Path]:
    """The Markdown of the project, copied. Their names from the project's root."""
    sources = [ROOT / name for name in FIRST]
    for folder in ("docs", "lab", "conformance"):
        sources += sorted((ROOT / folder).rglob("*.md"))
    names = [source.relative_to(ROOT) for source in sources]
    for name in names:
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, pages / name)
    return names


def colab_link(notebook: Path, address: str) -> str:
    """A link that opens a notebook of this repository in Colab, which reads from GitHub alone."""
    place = re.fullmatch(r"https://github\.com/([^/]+/[^/]+?)/?", address)
    if not place:
        return ""
    name = notebook.relative_to(ROOT).as_posix()
    opened = f"https://colab.research.google.com/github/{place[1]}/blob/v{version()}/{name}"
    return f"[Open in Colab]({opened}){{ .md-button }}"


def notebook_pages(pages: Path) -> list[Path]:
    made = []
    for number, notebook in enumerate(sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))):
        folder = pages / notebook.relative_to(ROOT).parent
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(notebook, folder / notebook.name)
        head = "" if number else colab_link(notebook, repository())
        made.append(notebooks.page(notebook, folder, head).relative_to(pages))
    return made


def link_rewriter(name: Path, pages: Path):
    """A function for LINK_OR_CODE.sub over the page of this name."""

    def rewrite(link: re.Match) -> str:
        if link["code"]:
            return link[0]
        text, target = f"{link['picture']}[{link['text']}]", link["target"]
        file, hash_, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:") or not file:
            return link[0]
        place = Path(os.path.normpath(name.parent / file))
        if place.suffix in (".ipynb", ".h") and name.stem != place.stem:
            if place.suffix == ".h":
                place = Path("docs/reference/cpp") / f"{place.stem}.md"
            else:
                place = place.with_suffix(".md")
            return f"{text}({os.path.relpath(place, name.parent)}{hash_}{anchor})"
        source = ROOT / place
        if source.is_dir():
            return link["text"]  # a folder has no page
        if not (pages / place).exists() and source.exists():
            (pages / place).parent.mkdir(parents=True, exist_ok=True)
            copied = place if place.suffix not in ("", ".py", ".cff") else Path(f"{place}.txt")
            shutil.copyfile(source, pages / copied)
            return f"{text}({os.path.relpath(copied, name.parent)}{hash_}{anchor})"
        return link[0]

    return rewrite


def rewrite_links(pages: Path, names: list[Path]) -> None:
    for name in names:
        text = (pages / name).read_text(encoding="utf-8")
        text = LINK_OR_CODE.sub(link_rewriter(name, pages), text)
        (pages / name).write_text(text, encoding="utf-8")


def write_command_tables(page: Path) -> None:
    """The tables of options, from the executables of build/release."""
    programs = [ROOT / "build" / "release" / "bin" / name for name in ("nsimplex", "nsimplex-lab")]
    if missing := [program for program in programs if not program.exists()]:
        sys.exit(f"{missing[0]} is not there, which the page on commands needs: make build lab")
    commands = {name: rows for each in programs for name, rows in read_commands(each).items()}
    page.write_text(fill(page.read_text(encoding="utf-8"), commands), encoding="utf-8")


def read_from(module: str, name: str) -> str:
    """Where mkdocstrings finds a public name. A file of the same name, such as attention.py, would
    be the module otherwise."""
    shadowed = (ROOT / "python" / module.replace(".", "/") / f"{name}.py").exists()
    return f"{module}.{name}.{name}" if shadowed else f"{module}.{name}"


def python_page(name: str) -> str:
    """The reference of a module: an index of its groups, then the groups."""
    about = inspect.cleandoc(importlib.import_module(name).__doc__ or "").split("\n\n")[0]
    index, parts = [], []
    for group in REFERENCE[name]:
        places = {each: read_from(name, each) for each in group.names.split()}
        links = ", ".join(f"[`{each}`](#{place})" for each, place in places.items())
        index.append(f"- **{group.title}**: {links}")
        parts += [f"## {group.title}", group.about, *(f"::: {each}" for each in places.values())]
    about = re.sub(r":[a-z]+:`([^`]*)`", r"`\1`", about)
    return "\n\n".join([f"# {name}", about, "\n".join(index), *parts]) + "\n"


def python_pages(pages: Path) -> list[Path]:
    made, folder = [], pages / "docs" / "reference" / "python"
    folder.mkdir(parents=True, exist_ok=True)
    for name in REFERENCE:
        target = folder / f"{name}.md"
        target.write_text(python_page(name), encoding="utf-8")
        made.append(target.relative_to(pages))
    return made


def cpp_page(header: Path) -> str:
    """Comments of a header as text, with formulas as they are, and its declarations as code."""
    lines = header.read_text(encoding="utf-8").splitlines()
    parts, code, comment, depth = [f"# nsimplex/{header.name}"], [], [], 0

    def flush_comment() -> None:
        if comment:
            parts.append("\n".join(comment))
            comment.clear()

    def flush_code() -> None:
        while code and not code[-1].strip():
            code.pop()
        if code:
            parts.append("```cpp\n" + "\n".join(code) + "\n```")
            code.clear()

    for line in lines:
        plain = line.split("//")[0]
        if line.startswith(("#", "namespace ", "}  // namespace")):
            continue
        if depth == 0 and re.match(r"///? ?", line):
            flush_code()
            comment.append(re.sub(r"^///? ?", "", line))
            continue
        if depth == 0 and not code:
            if not line.strip():
                flush_comment()
                continue
            declared = re.search(r"(?:struct|class|enum class) (?:NSIMPLEX_API )?(\w+)", line)
            declared = declared or re.search(r"(\w+)\(", line)
            if declared:
                parts.append(f"## {declared[1]}")
            flush_comment()
        code.append(line)
        depth += plain.count("{") + plain.count("(") - plain.count("}") - plain.count(")")
        if depth == 0 and plain.rstrip().endswith((";", "}")):
            flush_code()
    flush_comment()
    flush_code()
    return "\n\n".join(parts) + "\n"


def cpp_pages(pages: Path) -> list[Path]:
    made, folder = [], pages / "docs" / "reference" / "cpp"
    folder.mkdir(parents=True, exist_ok=True)
    for header in sorted((ROOT / "include" / "nsimplex").glob("*.h")):
        target = folder / f"{header.stem}.md"
        target.write_text(cpp_page(header), encoding="utf-8")
        made.append(target.relative_to(pages))
    return made


def sections(names: list[Path]) -> dict[str, list[Path]]:
    """The pages by the headings of docs/README.md under which they are named first."""
    found: dict[str, list[Path]] = {}
    placed: set[Path] = set()
    for part in re.split(r"^## ", (ROOT / "docs" / "README.md").read_text(), flags=re.MULTILINE):
        heading = part.splitlines()[0].partition(":")[0] if found or part[0] != "#" else "Start"
        for file in re.findall(r"\]\(([^)#\s]+)", part):
            place = Path(os.path.normpath(Path("docs") / file))
            place = place.with_suffix(".md") if place.suffix == ".ipynb" else place
            if place in names and place not in placed:
                placed.add(place)
                found.setdefault(heading, []).append(place)
    left = sorted(set(names) - placed - {Path("docs/README.md")})
    assert not left, f"pages that docs/README.md does not name: {left}"
    return found


def navigation(names: list[Path], python: list[Path], cpp: list[Path]) -> str:
    """The first page is in no section: a phone's menu then opens with the list of sections."""
    first, lines = Path("README.md"), ["nav:", "  - Home: README.md"]
    for heading, members in sections(names).items():
        lines.append(f"  - {heading}:")
        if heading == "Start":
            lines.append("    - All pages: docs/README.md")
        lines += [f"    - {name.as_posix()}" for name in members if name != first]
    for heading, members in (("Python", python), ("C++", cpp)):
        lines.append(f"  - {heading}:")
        lines += [f"    - {name.stem}: {name.as_posix()}" for name in members]
    return "\n".join(lines) + "\n"


def version() -> str:
    found = re.search(r"project\(nsimplex VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert found, "CMakeLists.txt has no version"
    return found[1]


def configuration(site: Path) -> str:
    """tools/site/mkdocs.yml for pages below this folder, without the navigation."""
    here = ROOT / "tools" / "site"
    text = (here / "mkdocs.yml").read_text(encoding="utf-8")
    for given, place in (
        ("../../build/site", site),
        ("../../python", ROOT / "python"),
        ("formulas.py", here / "formulas.py"),
        ("custom_dir: theme", f"custom_dir: {here / 'theme'}"),
    ):
        assert given in text, given
        text = text.replace(given, str(place))
    address = repository()
    text += f"repo_url: {address}\n" if address else ""
    return text + f"copyright: nsimplex {version()}\n"  # at the foot of every page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    options = parser.parse_args()
    pages = options.site.resolve() / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    names = copy_pages(pages)
    names += notebook_pages(pages)
    python, cpp = python_pages(pages), cpp_pages(pages)
    rewrite_links(pages, names)
    write_command_tables(pages / "docs" / "cli.md")
    shutil.copyfile(ROOT / "tools" / "site" / "site.css", pages / "site.css")
    first = pages / "README.md"
    first.write_text(
        "---\nhide: [navigation]\n---\n" + first.read_text(encoding="utf-8"), encoding="utf-8"
    )
    (options.site / "mkdocs.yml").write_text(
        configuration(options.site.resolve()) + navigation(names, python, cpp), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
