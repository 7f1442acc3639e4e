"""Causal graphs of genes for users of scanpy: AnnData in, AnnData out.

    from nsimplex.causal import sc

    sc.fit(adata, layer="counts", mask_var="highly_variable")
    adata.varp["causal_graph"]     # sparse [genes, genes], row -> column
    adata.varm["X_causal"]         # [genes, d], points of the unit ball
    angles = sc.encode(adata)      # angles of the genes that have a point

Genes that the fit leaves out have no edges, and NaN in ``varm``.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .._arguments import checked
from .columns import Columns, Names, Pairs, Tiers, column_pairs, column_tiers, per_column, whole
from .frames import is_anndata
from .prior_knowledge import edges_of
from .rows import row_values, taken_column
from .saved_values import as_plain

__all__ = ["RawCountsWarning", "encode", "fit"]


def _anndata(function: str, adata: Any) -> Any:
    if not is_anndata(adata):
        raise TypeError(
            f"[{function}] adata: expected an AnnData object, got {type(adata).__name__}"
        )
    return adata


def _chosen(adata: Any, mask_var: Any) -> Any:
    """Which genes to use, as an array of booleans [genes]."""
    import numpy

    if mask_var is None:
        return numpy.ones(adata.n_vars, dtype=bool)
    if isinstance(mask_var, str):
        if mask_var not in adata.var:
            raise ValueError(
                f"[fit] mask_var: expected a column of var, which are {list(adata.var.columns)}, "
                f"got {mask_var!r}"
            )
        mask_var = adata.var[mask_var].to_numpy()
    genes = list(adata.var_names)
    mask = numpy.asarray(row_values("fit", "mask_var", mask_var, len(genes), genes, of="gene"))
    if mask.dtype != bool or mask.shape != (adata.n_vars,):
        raise ValueError(
            f"[fit] mask_var: expected {adata.n_vars} booleans, one per gene, got {mask.dtype} of "
            f"shape {list(mask.shape)}"
        )
    return mask


def _gene(genes: Columns, entry: Any) -> Any:
    """The name of the gene that an entry means by its name or its number in ``adata``; an entry
    that means none stays."""
    found = genes.find(entry)
    return entry if found is None or whole(entry) == -1 else genes.names[found]


def _of_genes(adata: Any, genes: Columns, targets: Any, others: set[str]) -> Any:
    """Interventions by the names of genes, without those on some genes."""
    if targets is None:
        return None

    def left(target: Any) -> Any:
        if isinstance(target, Iterable) and not isinstance(target, (str, Mapping)):
            named = [_gene(genes, each) for each in target]
            return [each for each in named if not (isinstance(each, str) and each in others)]
        name = _gene(genes, target)
        return None if isinstance(name, str) and name in others else name

    cells = row_values("fit", "targets", targets, adata.n_obs, list(adata.obs_names))
    return [left(each) for each in cells]


def _kinds_of(genes: Columns, kinds: Any, others: set[str]) -> Any:
    """The kinds of genes by their names, without those of some genes. A list of another length is
    one of the genes used, and stays."""
    if kinds is None or isinstance(kinds, str):
        return kinds
    found = per_column("fit", "kinds", "one kind", kinds, genes)
    if isinstance(found, list):
        if len(found) != genes.count:
            return kinds
        found = dict(enumerate(found))
    named = {genes.names[gene]: kind for gene, kind in found.items()}
    return {gene: kind for gene, kind in named.items() if gene not in others}


class RawCountsWarning(UserWarning):
    """A matrix of raw counts: the depth of cells makes genes depend on each other."""


def _is_counts(matrix: Any) -> bool:
    """Whether all numbers are whole and not negative, and some are above 1."""
    import numpy

    values = numpy.asarray(matrix.data if hasattr(matrix, "tocsr") else matrix)
    if values.size == 0 or not numpy.issubdtype(values.dtype, numpy.number):
        return False
    return bool((values >= 0).all() and (values == numpy.floor(values)).all() and values.max() > 1)


def _without_depth(
    adata: Any, source: Any, layer: str, use_raw: bool, depth: bool | None, kinds: Any
) -> tuple[Any, str]:
    """The genes to use and the layer to read, after the depth of the cells is taken out if asked.
    Wrong names of layers are left to the fit."""
    import numpy

    if layer and layer not in source.layers:
        return source, layer
    counts = _is_counts(source.layers[layer] if layer else source.X)
    if depth and not counts:
        raise ValueError("[fit] depth: expected raw counts, whole numbers from 0, got others")
    if not depth:
        if counts and depth is None and kinds is None:
            warnings.warn(
                "[fit] X looks like raw counts, and cells of different depth make genes depend on "
                "each other: depth=True takes it out, and depth=False says that it shall stay",
                RawCountsWarning,
                stacklevel=4,
            )
        return source, layer
    whole = adata.raw.X if use_raw else adata.layers[layer] if layer else adata.X
    totals = numpy.asarray(whole.sum(axis=1), dtype=float).ravel()
    totals = numpy.where(totals > 0, totals, 1.0)
    source = source.copy()
    own = source.layers[layer] if layer else source.X
    own = numpy.asarray(own.toarray() if hasattr(own, "toarray") else own, dtype=float)
    source.X = numpy.log1p(own * (numpy.median(totals) / totals)[:, None])
    return source, ""


@checked(name="fit")
def fit(
    adata: Any,
    *,
    layer: str = "",
    use_raw: bool = False,
    mask_var: Any = None,
    key_added: str = "causal",
    copy: bool = False,
    depth: bool | None = None,
    groups: Any = None,
    targets: Any = None,
    forbidden: Pairs = (),
    required: Pairs = (),
    tiers: Tiers = (),
    exogenous: Names | Sequence[int] = (),
    sinks: Names | Sequence[int] = (),
    paths: Pairs = (),
    **options: Any,
) -> Any:
    """Learns the causal graph of the genes of an AnnData object, embeds it, and adds both to it.

    Args:
        layer, use_raw: the matrix: one of ``layers``, or ``raw.X`` (the genes of ``raw`` that are
            in ``adata``); by default ``X``.
        mask_var: genes to use: a column of ``var`` with booleans, such as "highly_variable", or
            booleans.
        key_added: prefix of the names of what is added.
        copy: add it to a copy, and return that.
        depth: True: the matrix has raw counts. Each is divided by the total of its cell over all
            genes, times the median total, and becomes log(1 + x). False: take the matrix as it is.
            None: the same, with a warning if it looks like raw counts.
        groups, targets: batches and interventions of the cells, as in :meth:`CausalGraph.fit`:
            names of columns of ``obs``, or one value per cell. Interventions on genes of ``adata``
            that are not used do not count.
        forbidden, required: pairs of genes, cause and effect, that are not edges or are edges, by
            their names or, as in ``targets``, ``tiers`` and ``kinds``, their numbers in ``adata``.
            Forbidden pairs with a gene that is not used do not count.
        tiers: one number per gene of ``adata``, as in :func:`causal_fit`; a Series of ``var`` is
            matched by the names of the genes, and so is ``mask_var``.
        exogenous, sinks: genes that no other gene causes, and genes that cause none.
        paths: pairs of genes that a directed path joins, as in :func:`causal_fit`.
        options: of :class:`CausalPipeline`. By default ``drop=True``: genes without variance and
            copies of other genes are left out.

    Adds ``varp["causal_graph"]`` and ``varp["causal_scores"]`` (sparse, [genes, genes]),
    ``varm["X_causal"]`` [genes, d], ``var["causal_used"]``, ``var["causal_generality"]`` and
    ``uns["causal"]`` (the parameters, as plain values). With ``confidence`` it adds
    ``varp["causal_frequencies"]``.

    Returns:
        The copy, or None.

    Raises:
        TypeError, ValueError: the message names the argument.

    Warns:
        RawCountsWarning: the matrix looks like raw counts, ``depth`` is None and no ``kinds`` are
            given. Cells of different depth make genes depend on each other.
    """
    import numpy
    from scipy import sparse

    from .pipeline import CausalPipeline

    adata = _anndata("fit", adata)
    adata = adata.copy() if copy else adata
    mask = _chosen(adata, mask_var)
    source = adata
    if use_raw:
        if adata.raw is None:
            raise ValueError("[fit] use_raw: it has no raw")
        mask = mask & adata.var_names.isin(adata.raw.var_names)
        source = adata.raw[:, adata.var_names[mask]].to_adata()
    else:
        source = adata[:, mask]
    source, layer = _without_depth(adata, source, layer, use_raw, depth, options.get("kinds"))
    others = set(adata.var_names) - set(source.var_names)
    given: dict[str, Any] = {"drop": True} | options
    genes = Columns(list(adata.var_names), adata.n_vars)
    if others:
        given["kinds"] = _kinds_of(genes, given.get("kinds"), others)
    numbers = column_tiers("fit", tiers, genes)
    if numbers and len(numbers) != adata.n_vars:
        raise ValueError(f"[fit] tiers: expected {adata.n_vars}, one per gene, got {len(numbers)}")
    absent, present, joined = (
        [(_gene(genes, cause), _gene(genes, effect)) for cause, effect in pairs]
        for pairs in (
            column_pairs("fit", "forbidden", edges_of("fit", "forbidden", forbidden)),
            column_pairs("fit", "required", edges_of("fit", "required", required)),
            column_pairs("fit", "paths", edges_of("fit", "paths", paths)),
        )
    )
    lists: Any = (exogenous, sinks)
    first, last = (
        [gene for gene in (_gene(genes, each) for each in own) if gene not in others]
        for own in lists
    )
    pipeline = CausalPipeline(**given, layer=layer)
    pipeline.fit(
        source,
        forbidden=[pair for pair in absent if others.isdisjoint(map(str, pair))],
        required=present,
        tiers=[numbers[gene] for gene in numpy.flatnonzero(mask)] if numbers else (),
        exogenous=first,
        sinks=last,
        paths=joined,
        groups=taken_column("fit", "groups", adata, groups)[1],
        targets=_of_genes(adata, genes, taken_column("fit", "targets", adata, targets)[1], others),
    )
    used = numpy.flatnonzero(mask)[pipeline._fitted("columns_")]

    def spread(matrix: Tensor) -> Any:
        """A matrix of the genes used as one of all genes."""
        found = sparse.coo_array(matrix.numpy())
        size = (adata.n_vars, adata.n_vars)
        return sparse.csr_matrix((found.data, (used[found.row], used[found.col])), shape=size)

    plain = {
        name: as_plain("fit", name, value)
        for name, value in (pipeline.get_params() | {"use_raw": use_raw, "depth": depth}).items()
    }
    points = numpy.full((adata.n_vars, pipeline.dimension), numpy.nan)
    points[used] = pipeline.points().numpy()
    generality = numpy.full(adata.n_vars, numpy.nan)
    generality[used] = pipeline.generality_.numpy()
    matrices = {"graph": spread(pipeline.adjacency_), "scores": spread(pipeline.scores_)}
    if getattr(pipeline, "frequencies_", None) is not None:
        matrices["frequencies"] = spread(pipeline.frequencies_)
    # The object changes from here on. Nothing of an earlier fit remains.
    adata.varp.pop(f"{key_added}_frequencies", None)
    for name, matrix in matrices.items():
        adata.varp[f"{key_added}_{name}"] = matrix
    adata.varm[f"X_{key_added}"] = points
    adata.var[f"{key_added}_used"] = numpy.isin(numpy.arange(adata.n_vars), used)
    adata.var[f"{key_added}_generality"] = generality
    adata.uns[key_added] = {
        "params": json.dumps(plain),
        "model": pipeline.model_,
        "scale": pipeline.angle_scale(),
    }
    return adata if copy else None


@checked(name="encode")
def encode(
    adata: Any, *, heads: int | None = None, leading: int = 0, key: str = "causal"
) -> tuple[Tensor, list[str]]:
    """The rotary angles of the genes that :func:`fit` used, and their names.

    Args:
        heads, leading: as in :func:`causal_angles`.
        key: ``key_added`` of the fit.

    Raises:
        ValueError: the object has no fit of this name.
    """
    from .embedding import causal_angles

    adata = _anndata("encode", adata)
    if f"X_{key}" not in adata.varm or key not in adata.uns:
        raise ValueError(f"[encode] key: expected a fit in varm, got {list(adata.varm)}")
    used = adata.var[f"{key}_used"].to_numpy()
    points = torch.from_numpy(adata.varm[f"X_{key}"][used].copy())
    angles = causal_angles(
        points, heads=heads, scale=float(adata.uns[key]["scale"]), leading=leading
    )
    return angles, [str(name) for name in adata.var_names[used]]
