"""Causal graphs from tables of observations."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor

from .._arguments import checked
from .._choices import Estimator, Missing
from .._progress import progress_calls
from .arrays import read_columns
from .columns import Columns, Kinds, column_kinds, per_column
from .few_rows import warn_of_few_rows
from .frames import column_names, frame_labels, plain_table, row_labels
from .prior_knowledge import PriorKnowledge, numbered_knowledge
from .rows import row_groups, row_targets, taken_column
from .table_warnings import warn_of_table
from .watched_fit import run_watched

_P = ParamSpec("_P")
_Call = TypeVar("_Call")
_Result = TypeVar("_Result")


class NoiseDirections(NamedTuple):
    """A causal graph whose directions take account of the shape of the noise."""

    adjacency: Tensor  #: float64 [M, M]: coefficients of the regressions; 0 means no edge
    turned: list[tuple[int, int]]  #: edges (cause, effect) of the result that were reversed
    gain: float  #: decrease of the cost from the given graph
    p_value: float  #: of the hypothesis that all noises of the given graph are Gaussian
    finding: str = ""  #: what was done, and why, in a sentence; older files have none
    #: noises tell the directions: they are not Gaussian, and edges were turned or the noises of the
    #: graph are independent
    told: bool = False


class FitChoices(NamedTuple):
    """What a fit assumed about the table; the estimator "auto" chose it."""

    nonlinear: bool = False  #: effects are curves
    orient_by_noise: bool = False  #: noises that are not Gaussian tell directions
    kinds: Sequence[str] = ()  #: of the columns; empty if all are continuous
    findings: Sequence[str] = ()  #: per choice of "auto", a sentence that says why


class CausalFit(NamedTuple):
    """A causal graph of M columns. Entry ``[i, j]`` belongs to the edge i -> j, in x_j = sum_i x_i
    A_ij + noise."""

    adjacency: Tensor  #: float64 [M, M]: the graph, acyclic; 0 means no edge
    weights: Tensor  #: float64 [M, M]: the estimator's output before threshold and repair
    scores: Tensor  #: float64 [M, M]: confidence per edge, >= 0; use it to rank pairs
    removed: Tensor  #: int64 [r, 2]: cause and effect of edges that closed cycles
    model: str  #: the model that the estimator chose, or the estimator's name
    seconds: float  #: duration of the fit
    interrupted: bool = False  #: Ctrl-C ended the search: the best graph so far
    #: bool [M, M]: the edges, with both entries of those whose direction the model, interventions
    #: and prior knowledge leave open. With more than 1,000 columns all edges have their direction.
    cpdag: Tensor = torch.empty(0)
    noise: NoiseDirections | None = None  #: what noises said, if they were asked
    choices: FitChoices = FitChoices()


class FitInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a fit that had a graph by then.

        try:
            found = causal_fit(table)
        except FitInterrupted as stopped:
            found = stopped.fit        # the best graph so far

    An estimator whose ``fit`` raises it has the same graph.
    """

    def __init__(self, fit: CausalFit):
        super().__init__(fit)
        self.fit = fit

    def __str__(self) -> str:
        return "the fit ended early; its attribute fit has the best graph so far"


@dataclass(kw_only=True, eq=False, repr=False)
class FitOptions:
    """The options of a fit that are the same for every table; :func:`causal_fit` describes them.
    Functions, estimators and pipelines have these fields, and nothing else in Python lists them."""

    estimator: Estimator = "auto"
    nonlinear: bool = False
    standardise: bool = False
    threshold: float | None = None
    sparsity: float | None = None
    rank: int = 40
    sample: bool = False


@dataclass(eq=False, repr=False)
class FitCall(PriorKnowledge, FitOptions):
    """The arguments of :func:`causal_fit`."""

    table: Any
    _: KW_ONLY
    seed: int = 0
    groups: Any = None
    targets: Any = None
    soft: bool = False
    kinds: Kinds | None = None
    missing: Missing = "refuse"
    orient_by_noise: bool = False
    progress: bool | Callable[[int, int], Any] | None = None


def takes(
    call: Callable[_P, _Call],
) -> Callable[[Callable[[_Call], _Result]], Callable[_P, _Result]]:
    """Makes a function of one value into a function of the arguments of the value's class."""

    def decorate(function: Callable[[_Call], _Result]) -> Callable[_P, _Result]:
        @functools.wraps(function)
        def taking(*args: _P.args, **kwargs: _P.kwargs) -> _Result:
            return function(call(*args, **kwargs))

        own: Any = taking
        own.__signature__ = inspect.signature(call).replace(
            return_annotation=function.__annotations__["return"]
        )
        own.__annotations__ = typing.get_type_hints(call)
        return taking

    return decorate


@checked
@takes(FitCall)
def causal_fit(call: FitCall) -> CausalFit:
    """Learns which columns of a table cause which other columns.

    Args:
        table: [n, M], observations in rows: n >= 2, M >= 2, finite, no column constant: a tensor,
            an array, a data frame. Converted to float64.
        estimator: "auto", "order", "logdet", "paper", "paper-lowrank", "lowrank", "notears" or
            "spectral"; docs/causal/structure.md lists the assumptions of each. "auto" is "order"
            with the kinds of columns, curves and directions by noise that the table calls for;
            ``choices`` of the result says why.
        nonlinear: use nonlinear regressions ("auto", "order" and "logdet").
        standardise: divide columns by their standard deviation first; weights then refer to the
            scaled columns.
        threshold: drop edges with a smaller |weight|; None: 0.2, or 0 with "auto" and "order".
        sparsity: weight of the l1 norm, which these two do not have; None: the estimator's own.
        rank: columns of the factors of "lowrank" and "paper-lowrank"; others refuse another one.
        sample: "paper" and "paper-lowrank" draw their latent variables instead of using the means.
        seed: seed of random starts, initial weights and batches.
        forbidden: pairs (cause, effect) that are not edges. Here and in the following arguments,
            columns of a data frame or genes of AnnData have numbers or names. A directed graph of
            networkx, a text ``"digraph { a -> b }"`` or a file .dot or .gv stands for its edges.
        required: pairs (cause, effect) that are edges, in the same forms.
        tiers: one whole number per column, in their order, or a dict by their names or numbers, or
            a Series by its labels; no column of a later tier causes a column of an earlier tier.
            Columns that a dict leaves out come last: ``{"age": 0}`` says that nothing causes age.
        exogenous: columns that no other column causes.
        sinks: columns that cause no other column.
        paths: pairs (cause, effect) that a directed path joins, as for ``forbidden``. If a fit
            finds none, its edge becomes a required one, and the fit is repeated.
        groups: the group or batch of each row, any values; or the name of a column that has them:
            of a data frame, where it is taken out of the table, or of ``obs`` of AnnData. A Series
            of pandas is matched by the labels of the rows, here and in ``targets``. Columns are
            centred within groups, so that effects of groups do not count; their degrees of
            freedom are paid for.
        targets: the column that was intervened on in each row: None or -1 for none, or a list of
            several; or the name of a column that has them, as for ``groups``. A mask of rows is
            refused: ``np.where(mask, column, -1)`` has the numbers. Such a row is left out of the
            regression of that column. "auto" and "order" without ``nonlinear`` only.
        soft: interventions keep the causes of their column; they give it an intercept and a noise
            variance of its own.
        kinds: how each column is regressed on its causes: "continuous" (linear), "binary" (two
            values) and "category" (at most 30 values, in any order) by a multinomial logit, "count"
            as a negative binomial count with a log link, in which it is a cause as log(1 + x). One
            kind per column, or those of some columns by number or name; the others are continuous.
            A data frame may have words in binary and category columns. "auto" and "order" without
            ``nonlinear`` only. The weight of a category is the length of its coefficients. None:
            all continuous, or what "auto" finds in the values.
        missing: "refuse", or "likelihood": nan in the table is a missing value, and the Gaussian
            likelihood of all values that are there gives the covariance, by expectation and
            maximisation. "auto" and "order" without ``nonlinear`` only, and continuous columns.
        orient_by_noise: let :func:`orient_by_noise` turn edges of the graph. It needs linear
            effects, continuous columns without gaps, and rows of one group without interventions.
        progress: a bar on standard error, unless the fit takes less than a second. None: on a
            terminal and in a notebook; True: as lines elsewhere, too; False: none. A function is
            called about ten times per second, and at the end, with the number of steps that are
            done and the number of all steps. The latter is 0 except for "paper" and
            "paper-lowrank", because the other estimators stop at convergence. What it raises ends
            the fit.

    Raises:
        ValueError, TypeError: the message names the argument, the expected value and the value
            received.
        FitInterrupted: Ctrl-C ended "auto", "order" or "spectral"; the exception has the best graph
            so far. It is a KeyboardInterrupt, which other estimators raise.

    Warns:
        TableWarning: the table has something that the fit does not assume; the message says what.
        FewRowsWarning: the table has two rows, or fewer rows than columns; or with missing values a
            column has fewer than six values for each column of the table.
    """
    values, names, arguments = call_arguments("causal_fit", call)
    warn_of_few_rows("[causal_fit] table", values, names, stacklevel=4)
    with progress_calls("causal_fit", call.progress) as told:
        fitted = fit_quietly(values, arguments, told, names)
    place, known = "[causal_fit] table", settled(arguments, fitted.choices)
    warn_of_table(place, values, fitted.adjacency, fitted.model, known, names, stacklevel=4)
    return fitted


def places_with_words(function: str, kinds: Any, table: Any) -> set[int]:
    """Numbers of the columns of a data frame that may hold words: those of kind binary and
    category."""
    labels = frame_labels(table)
    if kinds is None or not labels:
        return set()
    found = per_column(
        function, "kinds", "one kind", kinds, Columns(column_names(table), len(labels))
    )
    pairs = found.items() if isinstance(found, dict) else enumerate(found)
    return {column for column, kind in pairs if kind in ("binary", "category")}


def table_of(function: str, call: FitCall) -> Any:
    """A table whose columns can be chosen by name."""
    given = call.table
    return given if isinstance(given, Tensor) else plain_table(f"[{function}] table", given)


def call_arguments(function: str, call: FitCall) -> tuple[Tensor, list[str], dict[str, Any]]:
    """The numbers of a table, the names of its columns, and the other arguments of operators that
    fit a graph."""
    table = table_of(function, call)
    table, groups = taken_column(function, "groups", table, call.groups)
    table, targets = taken_column(function, "targets", table, call.targets)
    words = places_with_words(function, call.kinds, table)
    values, names, _ = read_columns(function, "table", table, words=words)
    rows, count = values.shape if values.dim() == 2 else (0, 0)
    columns, labels = Columns(names, count), row_labels(table)
    arguments = fit_arguments(
        call,
        seed=call.seed,
        **numbered_knowledge(function, call, columns),
        groups=row_groups(function, groups, rows, labels),
        targets=row_targets(function, targets, rows, columns, labels=labels),
        soft=call.soft,
        kinds=column_kinds(function, call.kinds, columns),
        missing=call.missing,
        orient_by_noise=call.orient_by_noise,
    )
    return values, names, arguments


def fit_arguments(
    options: FitOptions,
    *,
    seed: int = 0,
    forbidden: Iterable[tuple[int, int]] = (),
    required: Iterable[tuple[int, int]] = (),
    tiers: Sequence[int] = (),
    exogenous: Sequence[int] = (),
    sinks: Sequence[int] = (),
    paths: Iterable[tuple[int, int]] = (),
    groups: Sequence[int] = (),
    targets: Sequence[Sequence[int]] = (),
    soft: bool = False,
    kinds: Sequence[str] = (),
    missing: str = "refuse",
    orient_by_noise: bool = False,
) -> dict[str, Any]:
    """The arguments of operators that fit a graph, after the table. Columns are numbers."""
    return {each.name: getattr(options, each.name) for each in fields(FitOptions)} | {
        "seed": seed,
        "forbidden": edge_pairs(forbidden),
        "required": edge_pairs(required),
        "tiers": list(tiers),
        "exogenous": list(exogenous),
        "sinks": list(sinks),
        "paths": edge_pairs(paths),
        "groups": list(groups),
        "targets": target_pairs(targets),
        "soft": soft,
        "kinds": list(kinds),
        "missing": missing,
        "orient_by_noise": orient_by_noise,
    }


def settled(arguments: dict[str, Any], choices: FitChoices) -> dict[str, Any]:
    """The arguments with what the estimator "auto" chose in their place."""
    if arguments["estimator"] != "auto":
        return arguments
    own = {name: getattr(choices, name) for name in ("nonlinear", "orient_by_noise", "kinds")}
    return arguments | own | {"estimator": "order"}


def fit_quietly(
    values: Tensor,
    arguments: dict[str, Any],
    progress: Callable[[int, int], Any] | None = None,
    names: Sequence[str] = (),
) -> CausalFit:
    """:func:`causal_fit` of float64 values without its warning. Errors have the ``names`` of the
    columns, or else their numbers. Threads may call it at the same time."""
    answer, early, reason = run_watched(values, arguments | {"names": [*names]}, progress)
    fitted = _fit_of(answer, early)
    if isinstance(reason, KeyboardInterrupt) or (early and reason is None):
        raise FitInterrupted(fitted) from None
    if reason is not None:
        raise reason
    return fitted


def _fit_of(answer: Sequence[Any], interrupted: bool) -> CausalFit:
    adjacency, weights, scores, removed, model, cpdag, turned, *rest, seconds = answer
    gain, p_value, finding, told, *chosen = rest
    turned = getattr(turned, "full_tensor", lambda: turned)()  # of a table that is a DTensor
    pairs = [(cause, effect) for cause, effect in turned.tolist()]
    directions = NoiseDirections(adjacency, pairs, gain, p_value, finding, told)
    return CausalFit(
        adjacency,
        weights,
        scores,
        removed,
        model,
        seconds,
        interrupted,
        cpdag,
        directions if finding else None,
        FitChoices(*chosen),
    )


def target_pairs(targets: Sequence[Sequence[int]]) -> Tensor | None:
    """int64 [k, 2]: pairs of a row and a column that was intervened on in it; None for none."""
    pairs = [(row, column) for row, own in enumerate(targets) for column in own]
    return edge_pairs(pairs) if targets else None


def edge_pairs(pairs: Iterable[tuple[int, int]]) -> Tensor:
    """int64 [k, 2]."""
    rows = [list(pair) for pair in pairs]
    return torch.tensor(rows, dtype=torch.int64) if rows else torch.empty(0, 2, dtype=torch.int64)
