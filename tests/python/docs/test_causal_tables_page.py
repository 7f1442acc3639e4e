"""Every example of the pages about tables and causes runs, and none of them prints a warning."""

import re
import warnings
from pathlib import Path

import pytest

from nsimplex.causal import EmbeddingWarning, FewRowsWarning, VarianceOrderWarning

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "causal"
PAGES = "tables", "structure", "pipeline", "embedding"
BLOCKS = [
    (page, number, block)
    for page in PAGES
    for number, block in enumerate(
        re.findall(
            r"```python\n(.*?)```", (FOLDER / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL
        )
    )
]


def test_the_pages_have_examples():
    assert {page for page, _, _ in BLOCKS} == set(PAGES) and len(BLOCKS) >= 17


@pytest.mark.parametrize(
    "page, block",
    [(page, block) for page, _, block in BLOCKS],
    ids=[f"{page}-{number}" for page, number, _ in BLOCKS],
)
def test_every_block_runs(page, block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in re.findall(r"^(?:from|import) (pandas|sklearn|anndata)\b", block, re.M):
        pytest.importorskip(name)
    with warnings.catch_warnings():
        for kind in (VarianceOrderWarning, FewRowsWarning, EmbeddingWarning):
            warnings.simplefilter("error", kind)
        exec(compile(block, f"{page}.md", "exec"), {})
