"""Pieces of HTML that the sections of the page share, every text escaped."""

from __future__ import annotations

from html import escape


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def amount(value: float | None, digits: int = 1, unit: str = "") -> str:
    return "–" if value is None else f"{value:,.{digits}f}{unit}"


def megabytes(value: float | None) -> str:
    return "–" if value is None else f"{value / 1e6:,.1f} MB"


def table(header: list[str], rows: list[list[str]], strong: int | None = None) -> str:
    def cell(index: int, text: str) -> str:
        kind = ' class="strong"' if index == strong and text != "–" else ""
        return f"<td{kind}>{escape(text)}</td>"

    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in header)
    body = "".join("<tr>" + "".join(cell(i, t) for i, t in enumerate(row)) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def tile(value: str, label: str, note: str) -> str:
    return (
        f'<div class="tile"><b>{escape(value)}</b><div class="label">{escape(label)}</div>'
        f'<div class="note">{escape(note)}</div></div>'
    )
