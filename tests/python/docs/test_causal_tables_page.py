"""Every example of the page about one's own table runs."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "causal" / "tables.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_page_has_examples():
    assert len(BLOCKS) >= 3


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_block_runs(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in re.findall(r"^(?:from|import) (pandas|sklearn|anndata)\b", BLOCKS[number], re.M):
        pytest.importorskip(name)
    exec(compile(BLOCKS[number], f"tables.md, block {number}", "exec"), {})
