"""Lines say what they are by their kind, and lines of version 0.1 by the fields that they have."""

import os
import re

import pytest

pytest.importorskip("matplotlib")

import test_report_broken
from report_page import read, write_lines

from nsimplex.report import SECTIONS
from nsimplex.report.run import with_kind

#: Kinds that no section shows: those of other files than metrics.jsonl, and of commands without a
#: section.
WITHOUT_SECTION = {
    "attention_tuple",
    "bench",
    "bench_level",
    "completion",
    "edge",
    "effects",
    "encode",
    "evaluation",
    "expressivity",
    "folder",
    "graph_check_pair",
    "info",
    "man",
    "perturbation_split",
    "report",
    "sample",
    "verify",
}


@pytest.mark.parametrize("section", test_report_broken.SECTIONS)
def test_lines_of_version_0_1_are_read_as_those_with_a_kind(tmp_path, section):
    older = test_report_broken.SECTIONS[section]()
    newer = [with_kind(row) for row in older]
    assert all(row["kind"] in SECTIONS for row in newer)
    pages = []
    for name, rows in (("older", older), ("newer", newer)):
        file = tmp_path / name / "run" / "metrics.jsonl"
        write_lines(file, rows)
        os.utime(file, (1e9, 1e9))
        text = read(tmp_path / name)[0]
        pages.append(text.replace(f"report · {name}", "").replace(f"Run {name}", ""))
    assert pages[0] == pages[1]


def test_a_kind_is_believed_whatever_the_fields(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", [{"kind": "other", "step": 1, "train_loss": 2.0}])
    with pytest.raises(ValueError, match="nothing to report"):
        read(tmp_path)


def test_every_kind_that_a_command_writes_is_shown_or_known_to_have_no_section(root):
    written = set()
    for folder in ("src", "lab"):
        for path in (root / folder).rglob("*.cpp"):
            text = path.read_text()
            written |= set(re.findall(r'(?:log_?\.write|print_json_line)\(\s*"(\w+)"', text))
    assert {"graph_result", "statement", "bench"} <= written
    assert written - set(SECTIONS) == WITHOUT_SECTION
