"""Confidence in edges from samples of the rows."""

import pickle
import sys

import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph, CausalPipeline


@pytest.fixture(scope="module")
def made():
    return causal.simulate(nodes=6, degree=1, observations=300, seed=4)


def rows_of(rows, number, resampling, seed):
    """The rows of a sample by their definition. Both halves of a pair come from one permutation."""
    pair = number // 2 if resampling == "halves" else number
    generator = torch.Generator().manual_seed((seed * 1_000_003 + pair) % 2**63)
    if resampling == "bootstrap":
        return torch.randint(rows, (rows,), generator=generator)
    order, half = torch.randperm(rows, generator=generator), rows // 2
    return order[half : 2 * half] if number % 2 else order[:half]


@pytest.mark.parametrize("resampling", ["halves", "bootstrap"])
def test_is_the_share_of_the_samples(made, resampling):
    """The definition, with the rows of each sample drawn as the page says."""
    options = dict(estimator="order", seed=2)
    got = causal.edge_confidence(made.table, replicates=6, resampling=resampling, **options)
    graphs = []
    for number in range(6):
        rows = rows_of(300, number, resampling, 2)
        assert len(rows) == (150 if resampling == "halves" else 300)
        graphs.append(causal.causal_fit(made.table[rows], **options).adjacency != 0)
    found = torch.stack(graphs).double()
    torch.testing.assert_close(got.frequencies, found.mean(0))
    torch.testing.assert_close(got.connected, ((found + found.mT) > 0).double().mean(0))
    paths = torch.stack([torch.matrix_exp(g) - torch.eye(6).double() > 1e-12 for g in found])
    torch.testing.assert_close(got.ancestors, paths.double().mean(0))
    assert got.edges == pytest.approx(float(found.sum()) / 6) and got.replicates == 6
    assert got.adjacency.equal(causal.causal_fit(made.table, **options).adjacency)


def assert_equal(one, other):
    *numbers, graphs = one
    *others, same = other
    for a, b in zip((*numbers, *graphs), (*others, *same), strict=True):
        assert torch.equal(torch.as_tensor(a).nan_to_num(9), torch.as_tensor(b).nan_to_num(9))


def test_does_not_depend_on_the_number_of_jobs(made):
    pytest.importorskip("joblib")
    one = causal.edge_confidence(made.table, replicates=7, seed=3)
    for jobs in (2, 3, -1):
        assert_equal(one, causal.edge_confidence(made.table, replicates=7, seed=3, n_jobs=jobs))
    other = causal.edge_confidence(made.table[:60], replicates=7, seed=4)
    assert not torch.equal(
        other.low.nan_to_num(),
        causal.edge_confidence(made.table[:60], replicates=7, seed=5).low.nan_to_num(),
    )


def test_samples_run_where_the_backend_of_joblib_puts_them(made):
    """A backend without shared memory, as those of dask and ray: every task and every result is
    pickled."""
    joblib = pytest.importorskip("joblib")
    from joblib._parallel_backends import ThreadingBackend

    sent = []

    class Elsewhere(ThreadingBackend):
        supports_sharedmem = False

        def submit(self, func, callback=None):
            task = pickle.dumps(func)
            sent.append(len(task))
            result = pickle.dumps(pickle.loads(task)())
            return super().submit(lambda: pickle.loads(result), callback)

    joblib.register_parallel_backend("elsewhere", Elsewhere)
    want = causal.edge_confidence(made.table, replicates=4, seed=3)
    with joblib.parallel_config("elsewhere"):
        got = causal.edge_confidence(made.table, replicates=4, seed=3, n_jobs=2)
    assert len(sent) >= 4
    assert_equal(got, want)


def test_real_edges_are_sure_and_noise_is_not(made):
    sure = causal.edge_confidence(made.table, replicates=50)
    true = made.weights != 0
    assert sure.frequencies[true].min() > 0.9 and sure.frequencies[~true].max() < 0.5
    assert causal.causal_metrics(sure.stable(0.9), made.weights).shd == 0
    noise = causal.edge_confidence(torch.randn(100, 8, generator=torch.Generator().manual_seed(0)))
    assert noise.stable(0.9).count_nonzero() == 0


def test_intervals_cover_the_weights():
    """19 of 20 in the long run; 200 weights of one graph."""
    inside = []
    for seed in range(25):
        made = causal.simulate(nodes=8, degree=1, observations=400, seed=1, sample_seed=seed)
        got = causal.edge_confidence(made.table, replicates=40, seed=seed)
        edges = (made.weights != 0) & (got.adjacency != 0)
        inside += ((got.low <= made.weights) & (made.weights <= got.high))[edges].tolist()
    assert len(inside) > 180 and 0.88 < sum(inside) / len(inside) < 0.98


def test_the_bound_of_false_edges(made):
    sure = causal.edge_confidence(made.table, replicates=4)
    often = int((sure.frequencies >= 0.75).sum())
    bound = sure.edges**2 / (0.5 * 30)
    assert sure.expected_false(0.75) == pytest.approx(min(bound, often))
    assert sure.expected_false(0.75, connections=True) == pytest.approx(min(2 * bound, often))
    # Hardly an edge is stable, and no more edges than these can be false.
    one = torch.zeros(6, 6).double()
    one[0, 1] = 1.0
    few = sure._replace(frequencies=one, connected=one + one.mT)
    assert few.expected_false(0.75) == few.expected_false(0.75, connections=True) == 1.0
    with pytest.raises(ValueError, match="expected above 0.5, at most 1, got 0.5"):
        sure.expected_false(0.5)


def scaled_chain(columns, seed):
    """Gaussian columns of variance 1, each a cause of the next, in a random order."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(400, columns, generator=generator, dtype=torch.float64)
    for column in range(1, columns):
        noise[:, column] = 0.7 * noise[:, column - 1] + 0.71 * noise[:, column]
    table = noise[:, torch.randperm(columns, generator=generator)]
    return (table - table.mean(0)) / table.std(0)


@pytest.mark.parametrize("columns", [2, 6])
@pytest.mark.parametrize("options", [{}, dict(standardise=True), dict(estimator="logdet")])
def test_a_direction_that_no_data_can_tell_counts_a_half(columns, options):
    """Graphs of pairs and chains are equal to their reversals for Gaussian columns."""
    for seed in range(4):
        sure = causal.edge_confidence(scaled_chain(columns, seed), replicates=8, **options)
        assert sure.frequencies.max() < 0.9 and sure.ancestors.max() < 0.9
        if options.get("estimator") != "logdet":
            assert (sure.connected >= 0.9).sum() >= 2 * (columns - 1)
            assert sure.stable(0, min_connected=0.9).count_nonzero() >= columns - 1


@pytest.mark.parametrize(
    "known",
    [
        dict(required=[(0, 1)]),
        dict(forbidden=[(1, 0)]),
        dict(tiers=[0, 1]),
        dict(targets=[1 if row % 2 else -1 for row in range(400)]),
    ],
)
def test_a_direction_that_is_known_counts(known):
    table = scaled_chain(2, 0)
    if "targets" in known:
        table[1::2, 1] = torch.randn(200, generator=torch.Generator().manual_seed(1)).double()
    sure = causal.edge_confidence(table, replicates=8, **known)
    assert set(sure.frequencies.unique().tolist()) <= {0.0, 1.0}
    assert sure.frequencies[0, 1] == 1


@pytest.mark.parametrize("kind", ["continuous", "binary"])
def test_columns_of_one_kind_explain_each_other_equally_well(kind):
    table = scaled_chain(2, 0)
    table = table if kind == "continuous" else (table > 0).double()
    sure = causal.edge_confidence(table, replicates=4, kinds=[kind, kind])
    assert sure.frequencies[0, 1] == sure.frequencies[1, 0] == 0.5


def test_columns_that_are_constant_in_a_sample_have_no_edges_there(made):
    table = made.table.clone()
    rare = torch.zeros(300, dtype=torch.float64)
    rare[7] = 1.0
    table = torch.cat([rare[:, None], table], 1)
    got = causal.edge_confidence(
        table, replicates=8, tiers=[1, 0, 0, 0, 0, 0, 0], required=[(1, 2)], forbidden=[(3, 0)]
    )
    assert got.frequencies[1, 2] == 1 and got.frequencies[0].sum() == 0


def test_nonlinear_graphs_have_intervals_too():
    made = causal.simulate(nodes=4, degree=1, observations=120, mechanism="gp", seed=3)
    got = causal.edge_confidence(made.table, replicates=4, nonlinear=True)
    edges = (got.adjacency != 0) & (got.frequencies > 0)
    assert edges.any() and (got.low <= got.high)[edges].all()


@pytest.mark.parametrize(
    "options, says",
    [
        (dict(replicates=1), "replicates: expected 2 to 100000, got 1"),
        (dict(resampling="jackknife"), 'resampling: expected "halves" or "bootstrap", got'),
        (dict(level=1.0), r"level: expected a number in \(0, 1\), got 1.0"),
        (dict(estimator="best"), "estimator: expected one of"),
    ],
)
def test_names_what_cannot_be(made, options, says):
    with pytest.raises(ValueError, match=says):
        causal.edge_confidence(made.table, **options)


def test_says_that_joblib_is_needed(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(ModuleNotFoundError, match="n_jobs: expected None or 1 without joblib"):
        causal.edge_confidence(made.table, replicates=2, n_jobs=2)


@pytest.mark.parametrize("kind", [CausalGraph, lambda **o: CausalPipeline(steps=2, **o)])
def test_estimators_know_how_sure_edges_are(made, kind):
    names = list("abcdef")
    graph = kind(confidence=20, seed=1).fit(made.table, names=names)
    whole = causal.edge_confidence(made.table, replicates=20, seed=1)
    assert graph.frequencies_.equal(whole.frequencies) and graph.confidence_.replicates == 20
    edges = graph.edges()
    assert len(edges) == int((graph.adjacency_ != 0).sum()) and edges[0].cause in names
    assert [e.frequency for e in edges] == sorted((e.frequency for e in edges), reverse=True)
    first = edges[0]
    at = names.index(first.cause), names.index(first.effect)
    assert first.weight == graph.adjacency_[at] and first.low <= first.weight <= first.high
    bare = kind().fit(made.table)
    assert not hasattr(bare, "frequencies_") and bare.edges()[0].frequency is None
    assert bare.edges()[0].cause.startswith("x")
    few = kind(confidence=20, min_frequency=1.0, seed=1).fit(made.table[:40])
    assert (few.frequencies_[few.adjacency_ != 0] == 1).all()
    assert len(few.edges()) < int((few.confidence_.adjacency != 0).sum())
    with pytest.raises(ValueError, match="min_frequency: expected a number of samples"):
        kind(min_frequency=0.5).fit(made.table)
    with pytest.raises(ValueError, match="confidence: expected 2 to 100000, got 1"):
        kind(confidence=1).fit(made.table)


def test_confidence_of_genes_is_added(made):
    anndata = pytest.importorskip("anndata")
    from nsimplex.causal import sc

    data = anndata.AnnData(made.table.numpy())
    sc.fit(data, confidence=5, steps=2)
    expected = causal.edge_confidence(made.table, replicates=5).frequencies
    assert (data.varp["causal_frequencies"].toarray() == expected.numpy()).all()


def test_progress_counts_the_samples(made):
    seen = []
    causal.edge_confidence(made.table, replicates=3, progress=lambda *done: seen.append(done))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_an_interruption_of_the_samples_keeps_the_graph(made, monkeypatch):
    def interrupted(self, number):
        raise KeyboardInterrupt

    monkeypatch.setattr("nsimplex.causal.confidence._Samples.__call__", interrupted)
    graph = CausalGraph(standardise=True, confidence=4, min_frequency=1.0)
    with pytest.raises(KeyboardInterrupt):
        graph.fit(made.table)
    plain = CausalGraph(standardise=True).fit(made.table)
    assert graph.edges() == plain.edges() and not hasattr(graph, "confidence_")
    assert graph.score(made.table) == plain.score(made.table)


def sparse_values(table):
    table[4:, 1] = torch.nan
    return dict(missing="likelihood")


def few_rows_without_interventions(table):
    return dict(targets=[1] * (len(table) - 3) + [-1] * 3)


def nearly_constant_in_groups(table):
    groups = [row % 4 for row in range(len(table))]
    table[:, 1] = torch.tensor(groups)
    table[0, 1] += 1
    return dict(groups=groups)


def groups_of_one_row(table):
    return dict(groups=list(range(len(table) - 2)) + [0, 1])


@pytest.mark.filterwarnings("ignore::nsimplex.causal.FewRowsWarning")
@pytest.mark.parametrize("resampling", ["halves", "bootstrap"])
@pytest.mark.parametrize(
    "spoil",
    [
        sparse_values,
        few_rows_without_interventions,
        nearly_constant_in_groups,
        groups_of_one_row,
    ],
)
def test_columns_that_say_nothing_in_a_sample_have_no_edges_there(made, spoil, resampling):
    table = made.table.clone()
    options = spoil(table)
    found = causal.edge_confidence(table, replicates=12, resampling=resampling, **options)
    frequencies = found.frequencies
    assert frequencies.isfinite().all() and frequencies.max() <= 1
    if spoil is not groups_of_one_row:
        assert frequencies[1].max() < 1 and frequencies[:, 1].max() < 1
        others = [0, 2, 3, 4, 5]
        assert frequencies[others][:, others].max() > 0.5


def test_blocks_stay_together():
    """The rows of a block are in a sample together."""
    rows = torch.randn(60, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    table, own = rows.repeat_interleave(5, 0), [row // 5 for row in range(300)]
    found = causal.edge_confidence(table, replicates=8, blocks=own)
    half = torch.cat([5 * rows_of(60, 0, "halves", 0) + k for k in range(5)])
    first = causal.causal_fit(table[half]).adjacency != 0
    assert (found.connected[first] >= 1 / 8).all()
    for blocks in (5, [f"person {block}" for block in own]):
        assert found.connected.equal(
            causal.edge_confidence(table, replicates=8, blocks=blocks).connected
        )


def test_a_column_names_the_blocks(made):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(made.table.numpy(), columns=list("abcdef"))
    frame["person"] = [f"p{row // 6}" for row in range(300)]
    want = causal.edge_confidence(made.table, replicates=4, blocks=6).frequencies
    assert causal.edge_confidence(frame, replicates=4, blocks="person").frequencies.equal(want)
    for kind in (CausalGraph, CausalPipeline):
        graph = kind(confidence=4).fit(frame, blocks="person")
        assert graph.names_ == list("abcdef") and graph.frequencies_.equal(want)
    grouped = CausalGraph(confidence=4).fit(frame, blocks="person", groups="person")
    assert grouped.names_ == list("abcdef")


@pytest.mark.parametrize(
    "blocks, says",
    [
        (0, "blocks: expected at least 1 row per block, got 0"),
        (100, "blocks: expected at least 4 to sample from, got 3"),
        ([1, 2], "blocks: expected one value for each of 300 rows, got 2"),
        ([None] * 300, "blocks: expected a block in row 0, got None"),
    ],
)
def test_names_blocks_that_cannot_be(made, blocks, says):
    with pytest.raises(ValueError, match=says):
        causal.edge_confidence(made.table, blocks=blocks)
    with pytest.raises(ValueError, match="blocks: expected a number of samples, confidence, too"):
        CausalGraph().fit(made.table, blocks=blocks)
