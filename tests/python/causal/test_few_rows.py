"""The warning of tables whose rows or values are too few."""

import warnings

import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph


def noise_with_gaps(values):
    table = torch.randn(200, 5, generator=torch.Generator().manual_seed(1))
    table[values:, 3] = torch.nan
    return table


@pytest.mark.parametrize("values", [2, 29])
def test_columns_of_few_values_warn(values):
    expected = rf"column 3 has {values} values for 5 columns: with fewer than 30, its edges may be"
    with pytest.warns(causal.FewRowsWarning, match=rf"^\[causal_fit\] table: {expected}"):
        causal.causal_fit(noise_with_gaps(values), missing="likelihood")
    with pytest.warns(causal.FewRowsWarning, match=rf"^\[CausalGraph\] X: {expected}"):
        CausalGraph(missing="likelihood").fit(noise_with_gaps(values))
    with pytest.warns(causal.FewRowsWarning, match=rf"^\[edge_confidence\] table: {expected}"):
        causal.edge_confidence(noise_with_gaps(values), replicates=2, missing="likelihood")


def test_columns_of_few_values_have_the_names_of_the_table(tmp_path):
    """Also if a constant column before them is dropped."""
    pandas = pytest.importorskip("pandas")
    values = torch.cat([torch.ones(200, 1), noise_with_gaps(20)], dim=1).numpy()
    frame = pandas.DataFrame(values, columns=list("abcdef"))
    frame.to_csv(tmp_path / "table.csv", index=False)
    graph = CausalGraph(missing="likelihood", drop=True)
    for table in (frame, tmp_path / "table.csv"):
        with pytest.warns(causal.FewRowsWarning, match=r"^\[CausalGraph\] X: column e has 20 "):
            graph.fit(table)
    with pytest.warns(causal.FewRowsWarning, match=r"^\[CausalGraph\] X: column 4 has 20 ") as said:
        graph.fit(values)
    assert {warning.filename for warning in said} == {__file__}
    with pytest.warns(causal.FewRowsWarning, match=r"^\[causal_fit\] table: column e has ") as said:
        causal.causal_fit(frame[list("bcdef")], missing="likelihood")
    assert {warning.filename for warning in said} == {__file__}


def test_columns_of_enough_values_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error", causal.FewRowsWarning)
        causal.causal_fit(noise_with_gaps(30), missing="likelihood")


def test_two_rows_warn():
    with pytest.warns(causal.FewRowsWarning, match="2 rows lie on a line, so edges from them"):
        causal.causal_fit(torch.tensor([[1.0, 2.0], [2.0, 5.0]]))
