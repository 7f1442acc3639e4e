"""The operators of causal graphs, called without the Python functions that check before them: what
does not belong together is refused in one line, and nothing is read or written out of bounds."""

import math
import re

import pytest
import torch

from nsimplex.causal.structure import FitOptions, fit_arguments

OPERATORS = torch.ops.nsimplex
ROWS, COLUMNS = 20, 4
PAIRS = torch.zeros(0, 2, dtype=torch.int64)
LINE = re.compile(r"\[\w+\] [\w\[\]]+: expected .+, got .+")


def table():
    return torch.randn(ROWS, COLUMNS, dtype=torch.float64, generator=torch.Generator())


def graph():
    return torch.ones(COLUMNS, COLUMNS, dtype=torch.float64).triu(1)


def fit_options(estimator="order", **changed):
    options = FitOptions(estimator=estimator, standardise=True)
    return fit_arguments(options, seed=1) | changed


def fit_rows(table, **options):
    return OPERATORS.causal_fit_rows(table, **fit_options(**options))


def samples(table, graph=None, resampling="bootstrap", first=0, count=2, blocks=(), **options):
    own = torch.ones(COLUMNS, COLUMNS, dtype=torch.float64).triu(1) if graph is None else graph
    drawn = dict(resampling=resampling, first=first, count=count, blocks=list(blocks))
    return OPERATORS.causal_edge_samples(table, **fit_options(**options), graph=own, **drawn)


def warned(table, graph, **options):
    known = dict(graph=graph, model="free variances", names=[])
    return OPERATORS.causal_warnings(table, **fit_options(**options), **known)


def limits(table, graph, names=(), level=0.05):
    return OPERATORS.causal_limits(table, graph, list(names), level)


def model(table, graph, groups=(), targets=None):
    return OPERATORS.causal_linear_model(table, graph, list(groups), targets)


def turned(table, graph, level=0.01, forbidden=PAIRS, required=PAIRS, tiers=()):
    return OPERATORS.causal_orient_by_noise(
        table, graph, level, forbidden, required, list(tiers), [], [], PAIRS
    )


def effect(table, graph, cause=0, effect=1, level=0.9, samples=()):
    return OPERATORS.causal_effect(table, graph, cause, effect, level, list(samples))


def check(table, graph, learned=None, names=(), level=0.05, permutations=2):
    return OPERATORS.causal_check_graph(table, graph, learned, list(names), level, permutations, 0)


def sampled(coefficients, intercepts=None, variances=None):
    ones = torch.ones(COLUMNS, dtype=torch.float64)
    intercepts = ones if intercepts is None else intercepts
    return OPERATORS.causal_sample_model(
        coefficients, intercepts, ones if variances is None else variances, 3, [], [], 0
    )


def counterfactual(table, coefficients):
    ones = torch.ones(COLUMNS, dtype=torch.float64)
    return OPERATORS.causal_counterfactual(coefficients, ones, table, [0], [1.0])


def simulate(dag=None, **changed):
    options = dict(
        graph="er", nodes=4, degree=1, observations=9, mechanism="linear", noise="gaussian",
        equal_variances=True, weight_low=0.5, weight_high=2.0, seed=0, sample_seed=0, features=[],
        values=[],
    )  # fmt: skip
    return OPERATORS.causal_simulate(dag, **options | changed)


def embed(adjacency, **changed):
    options = dict(
        dimension=3, optimiser="tangent", steps=2, learning_rate=None, hops=None, side=None,
        weight="paths", decay=0.5, negatives=None, generality=0.7, relative=True, restart=0.15,
        dangling="uniform", seed=0,
    )  # fmt: skip
    return OPERATORS.causal_embed(adjacency, **options | changed)


def angles(ball, heads=0, scale=1.0, head_scale=None, leading=0):
    return OPERATORS.causal_angles(ball, heads, scale, False, head_scale, leading)


def screen(table, count=2):
    return OPERATORS.causal_screen_columns(table, count, "variance")


def usable(table, names=()):
    return OPERATORS.causal_usable_table(table, list(names), "means", False)


#: By the name of an argument, calls that take it as a float64 matrix.
TABLES = [
    lambda odd: fit_rows(odd),
    lambda odd: samples(odd),
    lambda odd: limits(odd, graph()),
    lambda odd: model(odd, graph()),
    lambda odd: turned(odd, graph()),
    lambda odd: effect(odd, graph()),
    lambda odd: check(odd, graph()),
    lambda odd: counterfactual(odd, graph()),
    lambda odd: OPERATORS.causal_baselines(odd),
    lambda odd: OPERATORS.causal_sortability(odd, graph()),
    lambda odd: OPERATORS.causal_variance_order(odd, graph()),
    lambda odd: screen(odd),
    lambda odd: usable(odd),
    lambda odd: OPERATORS.causal_few_rows(odd, []),
    lambda odd: warned(odd, graph()),
]
GRAPHS = [
    lambda odd: samples(table(), odd),
    lambda odd: limits(table(), odd),
    lambda odd: warned(table(), odd),
    lambda odd: model(table(), odd),
    lambda odd: turned(table(), odd),
    lambda odd: OPERATORS.causal_metrics(odd, graph()),
    lambda odd: OPERATORS.causal_metrics(graph(), odd),
    lambda odd: OPERATORS.causal_edge_curves(graph(), odd),
    lambda odd: OPERATORS.causal_sortability(table(), odd),
    lambda odd: OPERATORS.causal_variance_order(table(), odd),
    lambda odd: effect(table(), odd),
    lambda odd: effect(table(), graph(), samples=[odd]),
    lambda odd: check(table(), odd),
    lambda odd: check(table(), graph(), odd),
    lambda odd: sampled(odd),
    lambda odd: counterfactual(table(), odd),
    lambda odd: simulate(odd),
]
#: Calls that take any floating point numbers.
FLOATS = [
    lambda odd: embed(odd),
    lambda odd: OPERATORS.causal_ranking(graph(), odd),
    lambda odd: OPERATORS.causal_ranking(odd, graph()),
    lambda odd: OPERATORS.causal_embedding_warning(odd),
    lambda odd: OPERATORS.causal_embedding_warning(graph(), odd),
    lambda odd: OPERATORS.hyperbolic_distances(odd),
    lambda odd: angles(odd),
    lambda odd: angles(graph(), heads=4, head_scale=odd[0] if odd.dim() == 2 else odd),
]
KEEP_GAPS = TABLES[3:4] + TABLES[11:]


def refused(call, *given):
    with pytest.raises((ValueError, TypeError)) as raised:
        call(*given)
    assert LINE.fullmatch(str(raised.value)), str(raised.value)
    return str(raised.value)


def with_hole(matrix, bad):
    matrix[0, 2] = bad
    return matrix


@pytest.mark.parametrize("length", [1, ROWS - 1, ROWS + 1, 100_000])
@pytest.mark.parametrize("estimator", ["order", "logdet"])
@pytest.mark.parametrize("resampling", ["halves", "bootstrap"])
def test_lists_are_as_long_as_the_table(length, estimator, resampling):
    values = table()
    calls = {
        "groups": [
            lambda: fit_rows(values, estimator=estimator, groups=[0] * length),
            lambda: samples(
                values, estimator=estimator, groups=[0] * length, resampling=resampling
            ),
            lambda: model(values, graph(), groups=[0] * length),
        ],
        "kinds": [
            lambda: fit_rows(values, kinds=["continuous"] * length),
            lambda: samples(values, kinds=["continuous"] * length, resampling=resampling),
        ],
        "tiers": [
            lambda: fit_rows(values, estimator=estimator, tiers=[0] * length),
            lambda: samples(values, estimator=estimator, tiers=[0] * length, resampling=resampling),
            lambda: turned(values, graph(), tiers=[0] * length),
        ],
        "names": [
            lambda: limits(values, graph(), names=["a"] * length),
            lambda: usable(values, names=["a"] * length),
            lambda: OPERATORS.causal_few_rows(values, ["a"] * length),
        ],
    }
    for argument, all_calls in calls.items():
        for call in all_calls:
            said = refused(call)
            assert f"] {argument}: expected " in said and said.endswith(f", got {length}")


@pytest.mark.parametrize("number", [-1, ROWS, 2**31, 2**62, -(2**63)])
def test_numbers_of_rows_and_columns_are_those_of_the_table(number):
    values = table()
    rows, columns = torch.tensor([[number, 0]]), torch.tensor([[0, number]])
    for pairs in (rows, columns):
        for call in (
            lambda own: fit_rows(values, targets=own),
            lambda own: samples(values, targets=own),
            lambda own: model(values, graph(), targets=own),
        ):
            assert "] targets: expected " in refused(call, pairs)
        for name in ("forbidden", "required"):
            for call in (fit_rows, samples):
                assert f"] {name}[0]: expected " in refused(lambda: call(values, **{name: pairs}))
            assert f"] {name}[0]: expected " in refused(
                lambda: turned(values, graph(), **{name: pairs})
            )
    assert "interventions: " in refused(lambda: simulate(features=[number], values=[1.0]))
    assert "interventions: " in refused(lambda: simulate(features=[0, 1], values=[1.0]))


@pytest.mark.parametrize(
    "pairs", [torch.zeros(2, 3).long(), torch.zeros(4).long(), torch.zeros(1, 2), PAIRS.to_sparse()]
)
def test_pairs_are_int64_of_two_columns(pairs):
    values = table()
    for name in ("forbidden", "required", "targets"):
        assert f"] {name}: expected " in refused(lambda: fit_rows(values, **{name: pairs}))
        assert f"] {name}: expected " in refused(lambda: samples(values, **{name: pairs}))
    assert "] targets: expected " in refused(lambda: model(values, graph(), targets=pairs))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_no_numbers_of_tables_graphs_and_points(bad):
    for call in TABLES:
        if math.isnan(bad) and call in KEEP_GAPS:
            continue
        said = refused(call, with_hole(table(), bad))
        assert said.endswith(f"] table: expected finite numbers, got {bad} in row 0, column 2")
    for call in GRAPHS:
        said = refused(call, with_hole(graph(), bad))
        assert said.endswith(f": expected finite numbers, got {bad} in row 0, column 2")
    for call in FLOATS:
        refused(call, with_hole(graph(), bad))
    refused(lambda: embed(with_hole(graph(), bad).to_sparse()))
    refused(lambda: simulate(features=[0], values=[bad]))
    refused(lambda: simulate(weight_high=bad))
    refused(lambda: angles(graph(), scale=bad))
    refused(lambda: limits(table(), graph(), level=bad))
    infinite = with_hole(graph(), bad)
    if math.isnan(bad):
        refused(OPERATORS.causal_edge_curves, infinite, graph())
    else:
        OPERATORS.causal_edge_curves(infinite, graph())  # a score, which may be infinite


ODD = {
    "float32": lambda: graph().float(),
    "int64": lambda: graph().long(),
    "bool": lambda: graph().bool(),
    "complex": lambda: graph().to(torch.complex128),
    "vector": lambda: graph()[0],
    "three axes": lambda: graph()[None],
    "sparse": lambda: graph().to_sparse(),
    "csr": lambda: graph().to_sparse_csr(),
    "meta": lambda: graph().to("meta"),
    "nested": lambda: torch.nested.nested_tensor([graph(), graph()]),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.filterwarnings("ignore")
def test_matrices_are_dense_float64_on_the_cpu(kind):
    for call in TABLES + GRAPHS + [lambda odd: OPERATORS.causal_edge_curves(odd, graph())]:
        refused(call, ODD[kind]())


@pytest.mark.parametrize("kind", ["int64", "bool", "complex", "vector", "nested"])
@pytest.mark.filterwarnings("ignore")
def test_points_and_weights_are_floating_point_matrices(kind):
    for call in FLOATS[:-2]:
        refused(call, ODD[kind]())


def test_graphs_are_square():
    for call in GRAPHS + FLOATS[:2]:
        refused(call, torch.zeros(3, 4, dtype=torch.float64))
    for call in GRAPHS[:-1] + FLOATS[1:2]:  # of as many columns as the table or the other graph
        refused(call, torch.zeros(3, 3, dtype=torch.float64))


def test_empty_tables_are_refused():
    for shape in ((0, 4), (20, 0), (1, 4)):
        for call in (fit_rows, samples, OPERATORS.causal_baselines, screen):
            refused(call, torch.zeros(shape, dtype=torch.float64))
    for call in (limits, model, turned, OPERATORS.causal_sortability):
        refused(call, torch.zeros(0, 4, dtype=torch.float64), graph())


def test_other_strides_and_negated_views_have_the_same_meaning():
    values, edges = table(), graph()

    def views(matrix):
        pairs = torch.stack([torch.zeros_like(matrix), -matrix], -1)
        yield torch.view_as_complex(pairs).conj().imag  # lazily negated
        yield torch.cat([matrix, matrix], 1)[:, ::1][:, : matrix.size(1)]
        yield matrix.t().contiguous().t()

    def same(one, other):
        for first, second in zip(one, other, strict=True):
            if isinstance(first, torch.Tensor):
                assert torch.equal(first, second)

    adjacency = fit_rows(values)[0]
    for view in views(values):
        assert fit_rows(view)[0].equal(adjacency)
        assert OPERATORS.causal_sortability(view, edges) == OPERATORS.causal_sortability(
            values, edges
        )
        same(samples(view), samples(values))
        same(model(view, edges), model(values, edges))
    for view in views(edges):
        assert OPERATORS.causal_edge_curves(view, edges) == (1.0, 1.0)
        same(embed(view), embed(edges))
        assert OPERATORS.hyperbolic_distances(view).equal(OPERATORS.hyperbolic_distances(edges))
    targets = torch.tensor([[3, 1], [4, 1], [5, 2]])
    negated = torch._neg_view(-targets)
    assert fit_rows(values, targets=negated)[0].equal(fit_rows(values, targets=targets)[0])


def test_the_name_in_a_message_is_that_of_the_function():
    constant = torch.ones(9, 4, dtype=torch.float64)
    said = refused_of(lambda: OPERATORS.causal_variance_order(constant, graph()))
    assert said.startswith("[variance_order] table: column 0")
    said = refused_of(lambda: limits(constant, graph()))
    assert said.startswith("[causal_limits] table: column 0")
    assert refused(samples, table(), None, "thirds").startswith("[edge_confidence] resampling")


def refused_of(call):
    with pytest.raises(ValueError) as raised:
        call()
    return str(raised.value)
