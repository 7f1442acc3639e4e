"""`python -m nsimplex.lab.scale`: tables and figure of the page on scale, and bad input."""

import pytest

from nsimplex.distributed.costs import layer_flops
from nsimplex.lab.scale import Setting, forward_table, main, shape_of, step_table


def rows(text):
    return [line for line in text.splitlines() if line.startswith(("| 1 |", "| 2 |", "| 3 |"))]


def test_the_page_has_the_tables_of_the_command(root, capsys):
    assert main([]) == 0
    printed = rows(capsys.readouterr().out)
    assert len(printed) == 27 + 27
    assert rows((root / "docs" / "guide" / "scale.md").read_text(encoding="utf-8")) == printed


def test_the_figure_of_the_page_is_that_of_the_table(root, tmp_path):
    pytest.importorskip("matplotlib")
    drawn = (root / "docs" / "images" / "scale.svg").read_text(encoding="utf-8")
    last = [row for row in forward_table(Setting()) if row.ranks == 4096]
    texts = [f"{row.share:.2g}" for row in last] + [f"{row.tokens} tokens" for row in last]
    texts += ["order 1, no window", "order 2, 32 x 512", "order 3, 8 x 8 x 64"]
    assert main(["--figure", str(tmp_path / "scale.svg")]) == 0
    for made in (drawn, (tmp_path / "scale.svg").read_text(encoding="utf-8")):
        assert made.startswith("<svg ") and "var(" not in made
        for text in texts:
            assert f">{text}<" in made, text


def test_shares_follow_from_the_speeds():
    slow = Setting([1 << 17], [64], flops_per_second=1e14, bytes_per_second=1e11)
    for one, other in zip(forward_table(slow), forward_table(Setting([1 << 17], [64]))):
        assert one.received == other.received and one.share == pytest.approx(other.share / 8)
    (row, *_) = forward_table(slow)
    assert row.share == pytest.approx((row.received / 1e11) / (row.flops / 1e14))


def test_a_step_is_a_forward_and_a_backward_pass():
    """Products of weights cost three times a forward pass, tuples four times."""
    setting = Setting([1 << 17], [8])
    by_way = {row.way: row.shares[0] for row in step_table(setting) if row.order == 2}
    shape = shape_of(2, 1 << 17)
    products = 2 * shape.tokens * shape.weights
    tuples = layer_flops(shape) - products
    seconds = (3 * products + 4 * tuples) / 4e14
    gathered = 3 * 7 / 8 * shape.weights * 2 / 5e10
    assert by_way["fully sharded"] == pytest.approx(gathered / seconds)
    sums = 2 * 4 * 7 / 8 * shape.tokens * 8192 * 2 / 5e10
    assert by_way["tensor parallel"] == pytest.approx(sums / (seconds / 8))
    assert step_table(Setting([1 << 17], [129]))[1].shares == [None]  # 128 heads


@pytest.mark.parametrize(
    "words, message",
    [
        (["--ranks", "0"], "--ranks: expected whole numbers from 1"),
        (["--contexts", "a"], "--contexts: expected whole numbers from 1"),
        (["--ranks", "4096", "--contexts", "1024"], "--ranks: expected at most the 1024 tokens"),
        (["--flops", "nan"], "--flops: expected a positive number, got nan"),
        (["--bytes", "0"], "--bytes: expected a positive number, got 0.0"),
        (["--figure", "{folder}/none/x.svg"], "none"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_input_is_said_in_one_line(words, message, capsys, tmp_path):
    assert main([word.format(folder=tmp_path) for word in words]) == 2
    said = capsys.readouterr()
    assert said.out == "" and message in said.err and len(said.err.splitlines()) == 1
