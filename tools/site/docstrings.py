"""An extension of griffe: the reStructuredText of our docstrings becomes Markdown, and formulas
become MathML, which browsers render without scripts."""

import re
import textwrap

import griffe
from latex2mathml.converter import convert


def formula(latex: str, display: str) -> str:
    if display == "block" and ("&" in latex or r"\\" in latex):
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    return re.sub(r"\s*\n\s*", " ", convert(latex.strip(), display=display))


def block(match: re.Match) -> str:
    indent = match["indent"]
    latex = textwrap.dedent(match["body"]) if match["body"].strip() else match["line"]
    return f"{indent}{formula(latex.strip(), 'block')}\n"


def markdown(text: str) -> str:
    """Docstring text with `:func:` and `.. math::` as Markdown with code and MathML."""
    text = re.sub(
        r"^(?P<indent> *)\.\. math::(?P<line>.*)\n(?P<body>(?:(?P=indent) +\S.*\n)*)",
        block,
        re.sub(r"<(?=[a-zA-Z/])", "&lt;", text) + "\n",
        flags=re.MULTILINE,
    )
    text = re.sub(r":math:`([^`]*)`", lambda found: formula(found[1], "inline"), text)
    text = re.sub(r":[a-z]+:`~?\.?([^`]*)`", r"`\1`", text)
    return text.strip("\n")


class Docstrings(griffe.Extension):
    """What mkdocstrings reads."""

    def on_instance(self, *, obj: griffe.Object, **_) -> None:
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)
