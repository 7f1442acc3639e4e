"""Groups, interventions, kinds and gaps, in causal_fit, edge_confidence and CausalGraph."""

import math

import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph

CHAIN = torch.tensor(
    [[0, 2.0, 0, 0], [0, 0, -0.8, 0], [0, 0, 0, 0.6], [0, 0, 0, 0]], dtype=torch.float64
)
NAMES = ["a", "b", "c", "d"]


def chain(rows, seed, targets=None, soft=False):
    """Rows of the chain in units that say nothing, with interventions where targets has columns."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(rows, 4, generator=generator, dtype=torch.float64)
    table = torch.zeros(rows, 4, dtype=torch.float64)
    for column in range(4):
        table[:, column] = table @ CHAIN[:, column] + noise[:, column]
        for row, target in enumerate(targets or []):
            if target == column:
                moved = 2 + 3 * noise[row, column]
                table[row, column] = moved + (table[row] @ CHAIN[:, column] if soft else 0)
    return table / table.std(dim=0)


def in_turn(rows):
    """An intervention in every second row, on the columns in turn."""
    return [row // 2 % 4 if row % 2 else None for row in range(rows)]


def errors(fit):
    return causal.causal_metrics(fit.adjacency, CHAIN).shd


@pytest.mark.parametrize("soft", [False, True])
def test_interventions_tell_the_direction_of_a_chain(soft):
    targets = in_turn(1000)
    blind = told = 0
    for seed in range(4):
        table = chain(1000, seed, targets, soft)
        blind += errors(causal.causal_fit(table, estimator="order"))
        told += errors(causal.causal_fit(table, targets=targets, soft=soft))
    assert told == 0 and blind >= 4


def test_targets_may_be_names_lists_and_arrays():
    numpy = pytest.importorskip("numpy")
    targets = in_turn(400)
    table = chain(400, 1, targets)
    expected = causal.causal_fit(table, targets=targets).adjacency
    numbers = numpy.array([-1 if each is None else each for each in targets])
    lists = [[] if each is None else [each] for each in targets]
    for given in (numbers, torch.from_numpy(numbers), lists):
        assert causal.causal_fit(table, targets=given).adjacency.equal(expected)
    words = ["" if each is None else NAMES[each] for each in targets]
    graph = CausalGraph().fit(table, names=NAMES, targets=words)
    assert graph.adjacency_.equal(expected)


def test_without_any_intervention_nothing_changes():
    table = chain(300, 2)
    expected = causal.causal_fit(table)
    assert causal.causal_fit(table, targets=[None] * 300).scores.equal(expected.scores)
    assert causal.causal_fit(table, groups=None).scores.equal(expected.scores)


def test_groups_move_columns_but_not_the_graph():
    made = causal.simulate(nodes=8, degree=1, observations=600, seed=3)
    groups = [f"batch {row % 15}" for row in range(600)]
    effects = 10 * torch.randn(
        15, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    moved = made.table + effects[torch.arange(600) % 15]
    fit = causal.causal_fit(moved, groups=groups)
    assert causal.causal_metrics(fit.adjacency, made.weights).shd == 0
    assert causal.causal_metrics(causal.causal_fit(moved).adjacency, made.weights).shd > 3
    for estimator in ("logdet", "spectral"):
        fit = causal.causal_fit(moved, estimator=estimator, groups=groups)
        assert causal.causal_metrics(fit.adjacency, made.weights).shd <= 1


def test_the_linear_model_is_that_of_the_rows_used():
    targets = in_turn(3000)
    table = chain(3000, 4, targets)
    graph = CausalGraph().fit(table, names=NAMES, targets=targets, groups=[0, 1, 2] * 1000)
    rows = torch.tensor([each != 1 for each in targets])
    own = table[rows][:, :2]
    group = (torch.arange(3000) % 3)[rows]
    for number in range(3):
        own[group == number] -= own[group == number].mean(dim=0)
    slope = (own[:, 0] @ own[:, 1]) / (own[:, 0] @ own[:, 0])
    torch.testing.assert_close(graph.linear_.coefficients[0, 1], slope, rtol=1e-9, atol=0)
    torch.testing.assert_close(graph.adjacency_[0, 1], slope, rtol=1e-6, atol=0)


def test_confidence_draws_rows_with_what_is_known_of_them():
    targets = in_turn(600)
    table = chain(600, 5, targets)
    sure = causal.edge_confidence(table, replicates=10, targets=targets)
    assert (sure.frequencies[CHAIN != 0] >= 0.9).all()
    graph = CausalGraph(confidence=10).fit(table, targets=targets)
    assert graph.confidence_.frequencies.equal(sure.frequencies)


def test_columns_of_a_data_frame_name_groups_and_targets():
    pandas = pytest.importorskip("pandas")
    targets = in_turn(400)
    table = chain(400, 6, targets)
    frame = pandas.DataFrame(table.numpy(), columns=NAMES)
    expected = CausalGraph().fit(frame, targets=targets, groups=[row % 2 for row in range(400)])
    frame.insert(1, "batch", [("x", "y")[row % 2] for row in range(400)])
    frame["intervention"] = [None if each is None else NAMES[each] for each in targets]
    graph = CausalGraph().fit(frame, groups="batch", targets="intervention")
    assert graph.names_ == NAMES and graph.adjacency_.equal(expected.adjacency_)


def test_rows_and_columns_left_out_take_their_targets_along():
    targets = in_turn(400)
    table = chain(400, 7, targets)
    table[3, 2] = torch.nan
    table = torch.cat([torch.ones(400, 1, dtype=torch.float64), table], dim=1)
    words = ["" if each is None else NAMES[each] for each in targets]
    words[0] = "constant"
    graph = CausalGraph(missing="rows", drop=True)
    graph.fit(table, names=["constant", *NAMES], targets=words, groups=[0, 1] * 200)
    keep = [row for row in range(400) if row != 3]
    expected = causal.causal_fit(
        table[keep, 1:],
        targets=[targets[row] for row in keep],
        groups=[row % 2 for row in keep],
    )
    assert graph.adjacency_.equal(expected.adjacency)


def mixed(rows, seed):
    """a -> b (two values) -> c (a count), and a -> d (three values)."""
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(rows, generator=generator, dtype=torch.float64)
    chance = torch.rand(rows, 2, generator=generator, dtype=torch.float64)
    b = (chance[:, 0] < torch.sigmoid(2 * a)).double()
    c = torch.poisson(torch.exp(0.5 + 1.2 * b), generator=generator)
    logits = torch.stack([torch.zeros(rows, dtype=torch.float64), 2 * a, -2 * a], dim=1)
    d = (chance[:, 1:] > logits.softmax(dim=1).cumsum(dim=1)).sum(dim=1).double()
    return torch.stack([a, b, c, d], dim=1)


KINDS = {1: "binary", 2: "count", 3: "category"}
MIXED_GRAPH = torch.zeros(4, 4, dtype=torch.float64)
MIXED_GRAPH[0, 1] = MIXED_GRAPH[1, 2] = MIXED_GRAPH[0, 3] = 1


def test_kinds_have_suited_regressions():
    wrong = 0
    for seed in range(3):
        fit = causal.causal_fit(mixed(1500, seed), kinds=KINDS)
        assert fit.model == "mixed"
        wrong += causal.causal_metrics(fit.adjacency, MIXED_GRAPH).shd
    assert wrong <= 1
    torch.testing.assert_close(fit.adjacency[0, 1].item(), 2.0, atol=0.4, rtol=0)


def test_kinds_by_name_number_and_list_are_one():
    table = mixed(400, 4)
    expected = causal.causal_fit(table, kinds=KINDS).adjacency
    every = ["continuous", "binary", "count", "category"]
    assert causal.causal_fit(table, kinds=every).adjacency.equal(expected)
    table = torch.cat([table, torch.ones(400, 1, dtype=torch.float64)], dim=1)
    for kinds in (
        {"b": "binary", "c": "count", "d": "category", "e": "continuous"},
        {1: "binary", 2: "count", 3: "category", 4: "continuous"},
        [*every, "continuous"],
    ):
        graph = CausalGraph(kinds=kinds, drop=True).fit(table, names=[*NAMES, "e"])
        assert graph.adjacency_.equal(expected)


def test_continuous_kinds_are_no_kinds():
    table = chain(200, 1)
    fit = causal.causal_fit(table, kinds=["continuous"] * 4)
    assert fit.scores.equal(causal.causal_fit(table).scores)


def test_groups_and_targets_of_mixed_tables():
    table = mixed(600, 2)
    groups = [row % 3 for row in range(600)]
    moved = table.clone()
    moved[:, 0] += 10 * (torch.arange(600) % 3)
    fit = causal.causal_fit(moved, kinds=KINDS, groups=groups)
    assert causal.causal_metrics(fit.adjacency, MIXED_GRAPH).shd <= 1
    targets = [2 if row % 2 else None for row in range(600)]
    table[1::2, 2] = 40.0
    fit = causal.causal_fit(table, kinds=KINDS, targets=targets)
    assert fit.adjacency[1, 2] != 0
    torch.testing.assert_close(fit.adjacency[1, 2].item(), 1.2, atol=0.3, rtol=0)


def gaps_of(table, share, seed=0):
    generator = torch.Generator().manual_seed(seed)
    gone = torch.rand(table.shape, generator=generator) < share
    return torch.where(gone, torch.nan, table)


def test_gaps_use_all_values_that_are_there():
    made = causal.simulate(nodes=10, degree=1, observations=400, seed=6)
    table = gaps_of(made.table, 0.2)
    fit = causal.causal_fit(table, missing="likelihood")
    assert causal.causal_metrics(fit.adjacency, made.weights).shd <= 1
    whole = causal.causal_fit(made.table)
    torch.testing.assert_close(fit.adjacency, whole.adjacency, atol=0.3, rtol=0)


def test_the_likelihood_of_two_columns_with_gaps_in_one():
    """Where one column is whole, its regression is that of the rows with both (Anderson, 1957)."""
    table = chain(300, 3)[:, :2]
    table[200:, 1] = torch.nan
    fit = causal.causal_fit(table, missing="likelihood", tiers=[0, 1])
    rows = table[:200] - table[:200].mean(dim=0)
    slope = (rows[:, 0] @ rows[:, 1]) / (rows[:, 0] @ rows[:, 0])
    torch.testing.assert_close(fit.adjacency[0, 1], slope, rtol=1e-3, atol=0)


def test_gaps_of_an_estimator():
    made = causal.simulate(nodes=6, degree=1, observations=400, seed=7)
    table = gaps_of(made.table, 0.1)
    graph = CausalGraph(missing="likelihood", standardise=True, confidence=4).fit(table)
    assert graph.transform(table).isnan().equal(table.isnan())
    assert torch.isfinite(graph.linear_.coefficients).all()
    assert graph.linear_.variances.min() > 0
    assert math.isfinite(graph.score(table))
    no_gaps = CausalGraph(missing="likelihood").fit(made.table)
    assert no_gaps.adjacency_.equal(CausalGraph().fit(made.table).adjacency_)


@pytest.mark.parametrize(
    ("message", "options"),
    [
        (r"groups: expected one value for each of 50 rows, got 2", dict(groups=[1, 2])),
        (r"groups: expected a group in row 1, got None", dict(groups=[1, None] * 25)),
        (r"groups: expected at least two rows more than groups", dict(groups=list(range(50)))),
        (r"groups: expected one value per row, got", dict(groups=3)),
        (r"targets: expected one value for each of 50 rows, got 1", dict(targets=[0])),
        (r"targets: expected columns 0 to 3 or their names, got 4", dict(targets=[4] * 50)),
        (r"targets: expected columns .* got b in row 0", dict(targets=["b"] * 50)),
        (r"targets: expected rows without an intervention on column 1", dict(targets=[1] * 50)),
        (
            r"targets: expected estimator auto or order",
            dict(targets=in_turn(50), estimator="logdet"),
        ),
        (r"soft: expected targets", dict(soft=True)),
        (r"kinds: expected continuous, binary", dict(kinds=["word"] * 4)),
        (r"kinds: expected 4, one per column, got 2", dict(kinds=["binary", "count"])),
        (r"kinds: expected columns 0 to 3", dict(kinds={4: "count"})),
        (r"kinds: expected two values in column 1, got 50", dict(kinds={1: "binary"})),
        (r"kinds: expected whole numbers from 0 in column 2", dict(kinds={2: "count"})),
        (r"kinds: expected at most 30 different values", dict(kinds={0: "category"})),
        (r"kinds: expected estimator auto or order", dict(kinds={0: "count"}, nonlinear=True)),
        (r"missing: expected refuse or likelihood", dict(missing="rows")),
        (
            r"missing: expected estimator auto or order",
            dict(missing="likelihood", estimator="notears"),
        ),
    ],
)
def test_wrong_rows_are_named(message, options):
    with pytest.raises((ValueError, TypeError), match=rf"^\[causal_fit\] {message}"):
        causal.causal_fit(chain(50, 8), **options)


@pytest.fixture(scope="module")
def shaken():
    """Column 1 causes column 0; a tenth of the rows set column 1. As a frame with labels."""
    pandas = pytest.importorskip("pandas")
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(400, 2, generator=generator, dtype=torch.float64)
    table[:40, 1] *= 3
    table[:, 0] = 2 * table[:, 1] + table[:, 0] / 2
    return pandas.DataFrame(
        table.numpy(), columns=["a", "b"], index=[f"r{at}" for at in range(400)]
    )


def limited(table, **rows):
    return causal.causal_limits(table, [[0, 0], [1, 0]], **rows)


#: Everything that takes what is known of rows.
ROW_READERS = {
    "CausalGraph": lambda table, **rows: CausalGraph().fit(table, **rows).adjacency_,
    "causal_fit": lambda table, **rows: causal.causal_fit(table, **rows).adjacency,
    "edge_confidence": lambda table, **rows: (
        causal.edge_confidence(table, replicates=2, **rows).adjacency
    ),
    "causal_limits": lambda table, **rows: torch.tensor(limited(table, **rows).bic),
    "limits": lambda table, **rows: torch.tensor(
        CausalGraph().fit(table).limits(table, **rows).bic
    ),
}
row_readers = pytest.mark.parametrize("reader", ROW_READERS)


def masks():
    """A mask of the first 40 of 400 rows in every form."""
    numpy = pytest.importorskip("numpy")
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    hit = numpy.arange(400) < 40
    labels = [f"r{at}" for at in range(400)]
    return {
        "numpy": hit,
        "none": hit & False,
        "list": hit.tolist(),
        "object": hit.astype(object),
        "pandas": pandas.Series(hit, index=labels),
        "nullable": pandas.array(hit, dtype="boolean"),
        "torch": torch.from_numpy(hit),
        "polars": polars.Series(hit),
        "nested": [[each] for each in hit.tolist()],
        "texts": [str(each) for each in hit.tolist()],
    }


@row_readers
@pytest.mark.parametrize("form", masks())
def test_a_mask_of_rows_is_no_list_of_columns(shaken, reader, form):
    said = r"^\[\w+\] targets: expected columns 0 to 1 .* row 0; numpy.where\(mask, column, -1\)"
    with pytest.raises(ValueError, match=said):
        ROW_READERS[reader](shaken, targets=masks()[form])


def test_a_column_with_a_mask_is_no_list_of_columns(shaken, tmp_path):
    polars, anndata = pytest.importorskip("polars"), pytest.importorskip("anndata")
    frame = shaken.assign(hit=masks()["numpy"])
    frame.to_csv(tmp_path / "x.csv", index=False)
    cells = anndata.AnnData(shaken, obs=frame[["hit"]])
    for table in (frame, polars.DataFrame(frame.to_dict("list")), cells, tmp_path / "x.csv"):
        with pytest.raises(ValueError, match=r"got True in row 0; numpy.where\(mask, column, -1\)"):
            CausalGraph().fit(table, targets="hit")


@row_readers
def test_rows_are_matched_by_their_labels(shaken, reader):
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    targets = pandas.Series(numpy.where(masks()["numpy"], 0, -1), index=shaken.index)
    groups = pandas.Series(numpy.arange(400) // 100, index=shaken.index)
    read = ROW_READERS[reader]
    order = numpy.random.default_rng(1).permutation(400)
    for name, own in (("targets", targets), ("groups", groups)):
        expected = read(shaken, **{name: own.to_numpy()})
        assert not expected.equal(read(shaken))
        for form in (own, own.iloc[order], own.iloc[order].to_frame(), own.tolist()):
            assert read(shaken, **{name: form}).equal(expected)
        array, plain = shaken.to_numpy(), own.set_axis(range(400))
        for form in (plain, plain.iloc[order]):
            assert read(array, **{name: form}).equal(expected)
        for table, wrong in ((shaken, plain), (array, own), (shaken, own.set_axis(["r0"] * 400))):
            with pytest.raises(
                ValueError, match=rf"\] {name}: .* other labels; to_numpy\(\) gives"
            ):
                read(table, **{name: wrong})
        for wrong in (dict(own), set(own), own.to_frame().assign(x=0), own.to_numpy()[:, None]):
            with pytest.raises(
                (TypeError, ValueError), match=rf"\] {name}: expected one value per"
            ):
                read(shaken, **{name: wrong})


@pytest.mark.parametrize(
    "targets, says",
    [
        ([[0, 1, 0, 0]] * 50, "expected each column once, got column 0 twice in row 0"),
        ([{1: True}] * 50, "expected columns 0 to 3 or their names, got {1: True} in row 0"),
        ([0.5] * 50, "expected columns 0 to 3 or their names, got 0.5 in row 0"),
    ],
)
def test_entries_of_targets_are_columns(targets, says):
    with pytest.raises(ValueError, match=rf"^\[causal_fit\] targets: {says}"):
        causal.causal_fit(chain(50, 8), targets=targets)


def test_groups_may_be_tensors_of_one_number():
    table = chain(60, 8)
    groups = [torch.tensor(row % 2) for row in range(60)]
    expected = causal.causal_fit(table, groups=[row % 2 for row in range(60)])
    assert causal.causal_fit(table, groups=groups).scores.equal(expected.scores)
