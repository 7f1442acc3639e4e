"""Converts the formulas of all pages and docstrings, in the environment of the site. test_site.py
runs it there."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "site"))

import formulas

convert = formulas.formula


def whole(latex, display):
    """A formula without a command or a sign that the converter does not know."""
    found = convert(latex, display)
    assert "\\" not in found and "<mi>&</mi>" not in found, latex
    return found


formulas.formula = whole

CODE = "    $y$ $z$\n\n"
page = formulas.with_mathml(
    "a `$x$` b\n\n```math\n\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}\n```\n\n"
    + CODE
    + "so $w$"
)
assert page.startswith("a `$x$` b\n\n<math") and f"</math>\n\n{CODE}so <span><math" in page, page
assert page.count("<mtr>") == 2, page
assert formulas.with_mathml("from $5 to $6") == "from $5 to $6"
assert "<mi>log</mi><mspace" in formulas.with_mathml("$\\log x$")
assert "<msup><mi>sinh</mi><mn>" in formulas.with_mathml("$\\sinh^2 x$")
assert formulas.with_mathml("if $a < b$, then").startswith("if <span><math")
assert formulas.markdown("``kv.<m>`` of <m>") == "``kv.<m>`` of &lt;m>"
assert formulas.markdown("Shapes: B is\n    a size.\n\nArgs:\n    x: it\n") == (
    "**Shapes:** B is\na size.\n\nArgs:\n    x: it"
)

for path in ROOT.glob("docs/**/*.md"):
    formulas.with_mathml(path.read_text(encoding="utf-8"))
for path in (ROOT / "python" / "nsimplex").rglob("*.py"):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            formulas.markdown(ast.get_docstring(node) or "")
