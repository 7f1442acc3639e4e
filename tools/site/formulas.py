"""Formulas become MathML, which browsers render without scripts.

Those of pages are written as on GitHub, ``$x$`` and blocks with the word ``math``; this file is a
hook of mkdocs for them. Those of docstrings are reStructuredText, of which an extension of griffe
also makes Markdown.
"""

import re
import textwrap

import griffe
from latex2mathml.converter import convert

#: The name of a function such as log before a variable: a space comes between them. It may not be
#: the base of an index.
APPLIED = re.compile(
    r"(?<!<msup>)(?<!<msub>)(?<!<mfrac>)(<mi>[a-z]{2,}</mi>)(?=<m(?:i|n|sub|sup|frac|sqrt)>)"
)


def formula(latex: str, display: str) -> str:
    if display == "block" and r"\begin" not in latex and ("&" in latex or r"\\" in latex):
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    # The converter knows only the second of these forms of the same.
    latex = latex.strip().replace("{aligned}", "{split}")
    latex = re.sub(r"(\\[Bb]ig[lr])\\\|", r"\1‖", latex)
    found = re.sub(r"\s*\n\s*", " ", convert(latex, display=display))
    found = APPLIED.sub(r'\1<mspace width="0.167em"/>', found)
    # Markdown would take a line that begins with <math> for a block.
    return found if display == "block" else f"<span>{found}</span>"


#: Code of a page: a block, an indented line, or a part of a line.
CODE = r"^```.*?^```$|^(?: {4}|\t)[^\n]*$|`[^`\n]*`"
CODE_OR_FORMULA = re.compile(
    rf"^```math\n(?P<block>.*?)^```$|{CODE}"
    r"|(?<![\w\\$])\$(?P<inline>[^\s$](?:[^$\n]*[^\s$])?)\$(?![\w$])",
    re.DOTALL | re.MULTILINE,
)


def escaped(text: str, code: str) -> str:
    """The text with &lt; where a sign would begin a tag. Code stays as it is."""
    return re.sub(
        rf"{code}|<(?=[a-zA-Z/])",
        lambda found: "&lt;" if found[0] == "<" else found[0],
        text,
        flags=re.DOTALL | re.MULTILINE,
    )


def with_mathml(text: str) -> str:
    """The Markdown of a page with MathML in place of its formulas."""

    def replaced(found: re.Match) -> str:
        for display in ("block", "inline"):
            if found[display] is not None:
                return formula(found[display], display)
        return found[0]

    return CODE_OR_FORMULA.sub(replaced, text)


def on_page_markdown(markdown: str, page, **_) -> str:
    """What mkdocs calls. The reference of C++ is made of comments, which have no tags."""
    if page.file.src_uri.startswith("docs/reference/cpp/"):
        markdown = escaped(markdown, CODE)
    return with_mathml(markdown)


def block(match: re.Match) -> str:
    indent = match["indent"]
    latex = match["line"] + "\n" + textwrap.dedent(match["body"])
    return f"{indent}{formula(latex, 'block')}\n"


def markdown(text: str) -> str:
    """Docstring text with `:func:` and `.. math::` as Markdown with code and MathML."""
    text = re.sub(
        r"^(?P<indent> *)\.\. math::(?P<line>.*)\n(?P<body>(?:(?P=indent) +\S.*\n)*)",
        block,
        escaped(text, "`[^`]+`") + "\n",
        flags=re.MULTILINE,
    )
    # A paragraph such as "Shapes: ..", whose further lines are indented, is no list of arguments.
    text = re.sub(
        r"^(\w+): (\S.*\n)((?: +\S.*\n)+)",
        lambda found: f"**{found[1]}:** {found[2]}{textwrap.dedent(found[3])}",
        text,
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
