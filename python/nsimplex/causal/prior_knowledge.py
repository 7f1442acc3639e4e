"""What is known about a causal graph before a fit, by the names of the columns."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from .._arguments import describe
from .._printable import printable
from .columns import (
    Columns,
    Names,
    Pairs,
    Tiers,
    column_pairs,
    column_tiers,
    listed_columns,
    numbered_pairs,
)

__all__ = ["PriorKnowledge", "dot_edges", "edges_of", "numbered_knowledge"]


@dataclass(kw_only=True, eq=False, repr=False)
class PriorKnowledge:
    """The arguments of a fit about edges; :func:`causal_fit` describes them. Functions have these
    fields, and nothing else in Python lists their defaults."""

    forbidden: Pairs = ()
    required: Pairs = ()
    tiers: Tiers = ()
    exogenous: Names | Sequence[int] = ()
    sinks: Names | Sequence[int] = ()
    paths: Pairs = ()

    def given(self) -> dict[str, Any]:
        """The fields by name."""
        return {each.name: getattr(self, each.name) for each in fields(PriorKnowledge)}


def numbered_knowledge(
    function: str,
    known: PriorKnowledge,
    columns: Columns,
    whole: Columns | None = None,
    kept: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Prior knowledge with columns by their numbers, as operators take it.

    Args:
        columns: those that are used. Forbidden edges, exogenous columns and sinks that are left out
            do not count, and required edges and paths of such columns are refused.
        whole: the columns of the whole table, whose numbers ``kept`` has.
    """

    def used(entries: Iterable[Any]) -> bool:
        return not any(columns.is_left_out(entry) for entry in entries)

    pairs = {
        name: column_pairs(function, name, edges_of(function, name, getattr(known, name)))
        for name in ("forbidden", "required", "paths")
    }
    pairs["forbidden"] = [pair for pair in pairs["forbidden"] if used(pair)]
    return {
        "forbidden": numbered_pairs(function, "forbidden", pairs["forbidden"], columns),
        "required": numbered_pairs(function, "required", pairs["required"], columns),
        "tiers": column_tiers(function, known.tiers, whole or columns, kept),
        "exogenous": listed_columns(function, "exogenous", known.exogenous, columns),
        "sinks": listed_columns(function, "sinks", known.sinks, columns),
        "paths": numbered_pairs(function, "paths", pairs["paths"], columns),
    }


def edges_of(function: str, argument: str, edges: Any) -> Any:
    """The pairs of an argument: those of a graph of networkx, of a text or a file in DOT, or the
    argument itself."""
    if hasattr(edges, "edges") and hasattr(edges, "is_directed"):
        if not edges.is_directed():
            raise ValueError(
                f"[{function}] {argument}: expected a directed graph, got {describe(edges)}"
            )
        return [(pair[0], pair[1]) for pair in edges.edges]
    text = None
    if isinstance(edges, os.PathLike) or (isinstance(edges, str) and edges.endswith(_FILES)):
        with open(edges, encoding="utf-8") as file:
            text = file.read()
    elif isinstance(edges, str) and "{" in edges:
        text = edges
    if text is None:
        return edges
    # A number is a column, unless it is a name.
    return [
        tuple(int(end) if end.isdecimal() else end for end in pair)
        for pair in dot_edges(f"[{function}] {argument}", text)
    ]


_FILES = (".dot", ".gv")
_TOKENS = re.compile(
    r"""\s+ | //[^\n]* | \#[^\n]* | /\*.*?\*/      # blanks and comments
    | (?P<quoted>"(?:\\.|[^"\\])*")
    | (?P<attributes>\[(?:"(?:\\.|[^"\\])*"|[^\]"])*\])
    | (?P<arrow>->|<->|--|<-)
    | (?P<mark>[{}=;,])
    | (?P<word>[^\s\[\]{}=;,"<>-]+(?:-(?![->])[^\s\[\]{}=;,"<>-]*)*)
    """,
    re.VERBOSE | re.DOTALL,
)


def dot_edges(place: str, text: str) -> list[tuple[str, str]]:
    """The edges of a graph in the language of Graphviz, or in that of dagitty: ``digraph { a -> b;
    "c d" -> b [weight=2] }``. Nodes alone and attributes are passed over.

    Raises:
        ValueError: it has other edges than a -> b, subgraphs, or no form of a graph. The message
            begins with ``place``.
    """
    tokens = _tokens(place, text)
    words = [token for kind, token in tokens if kind == "word"]
    if not words or words[0].lower() not in ("strict", "digraph", "dag"):
        raise ValueError(f"{place}: expected digraph {{ a -> b }}, got {printable(text)[:40]!r}")
    start = next((at for at, token in enumerate(tokens) if token == ("mark", "{")), len(tokens))
    inside = tokens[start + 1 :]
    if [token for token in inside if token[0] == "mark" and token[1] in "{}"] != [("mark", "}")]:
        raise ValueError(f"{place}: expected one pair of braces, without subgraphs")
    edges = []
    for at, (kind, arrow) in enumerate(inside):
        if kind != "arrow":
            continue
        ends = [inside[near] for near in (at - 1, at + 1) if 0 <= near < len(inside)]
        if arrow != "->" or len(ends) < 2 or any(end[0] != "word" for end in ends):
            near = " ".join(token for _, token in inside[max(at - 1, 0) : at + 2])
            raise ValueError(f"{place}: expected edges a -> b, got {printable(near)[:60]!r}")
        edges.append((ends[0][1], ends[1][1]))
    return edges


def _tokens(place: str, text: str) -> list[tuple[str, str]]:
    """Words, arrows and marks of a text in DOT; words without their quotes."""
    found = []
    at = 0
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None:
            raise ValueError(f"{place}: cannot read {printable(text[at : at + 20])!r} as DOT")
        at = match.end()
        kind, token = match.lastgroup, match.group()
        if kind == "quoted":
            found.append(("word", re.sub(r"\\(.)", r"\1", token[1:-1])))
        elif kind in ("arrow", "mark", "word"):
            found.append((str(kind), token))
    return found
