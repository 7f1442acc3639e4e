"""Lists of tuples made from tables of keys, graphs and hyperedges."""

from __future__ import annotations

from contextlib import nullcontext

import torch
import torch._C._functorch as functorch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from ._arguments import checked
from ._library import operators

__all__ = ["hyperedge_list", "neighbours", "path_list", "product_list"]


@checked
def product_list(table: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """All tuples I_i x .. x I_i of a table of keys, as a list (indices, offsets).

    Args:
        table: int64 [B, Tq, k]; -1 marks an empty entry.
        order: N.

    Returns:
        (indices int64 [nnz, N], offsets int64 [B, 1, Tq + 1]), in the order of the table's columns.
    """
    return operators.product_list(table, order)


@checked
def path_list(table: Tensor, order: int, *, queries: int | None = None) -> tuple[Tensor, Tensor]:
    """All paths of a table of keys as a list of tuples, with j1 in I_i, j2 in I_{j1}, ..

    Args:
        table: int64 [B, T, k], keys below T; -1 marks an empty entry.
        order: N.
        queries: the number of queries, which are the last rows of the table; None: all rows.

    Returns:
        (indices int64 [nnz, N], offsets int64 [B, 1, queries + 1]).
    """
    if queries is not None and queries < 0:
        raise ValueError(f"[path_list] queries: expected 0 or more, got {queries}")
    return operators.path_list(table, order, -1 if queries is None else queries)


@checked
def neighbours(adjacency: Tensor, *, self_loops: bool = True) -> Tensor:
    """The table of a graph's neighbours. Use it with the product pattern or, for walks, with the
    path pattern.

    Args:
        adjacency: bool [T, T] or [B, T, T], or sparse CSR [T, T], whose values are ignored. Entry
            (i, j) makes j a neighbour of i.
        self_loops: every i is its own neighbour, regardless of the adjacency.

    Returns:
        int64 [1 or B, T, largest degree], ascending, each neighbour once, -1 after the last. A
        graph without edges has one column of -1.

    Raises:
        ValueError: a shape that does not fit, or a CSR tensor whose indices are out of range.
        TypeError: another dtype than bool.
    """
    if adjacency.layout != torch.sparse_csr:
        return operators.neighbours(adjacency, self_loops=self_loops)
    # Transforms of torch.func cannot wrap the matrix, but its parts are plain tensors.
    inside = functorch.peek_interpreter_stack() is not None
    with temporarily_clear_interpreter_stack() if inside else nullcontext():
        parts = adjacency.crow_indices(), adjacency.col_indices()
    return operators.neighbours_csr(*parts, adjacency.size(-1), self_loops=self_loops)


@checked
def hyperedge_list(
    hyperedges: Tensor, nodes: int, *, permute: bool = True
) -> tuple[Tensor, Tensor]:
    """The list of tuples that the given hyperedges define.

    Args:
        hyperedges: int64 [E, N + 1], nodes below ``nodes``.
        nodes: T, the number of queries.
        permute: if True, each node of a hyperedge becomes a query, and its tuples are the other
            nodes in every order. If False, the first column is the query and the remaining columns
            are the tuple.

    Returns:
        (indices int64 [nnz, N], offsets int64 [1, 1, T + 1]); repeated tuples count once.
    """
    return operators.hyperedge_list(hyperedges, nodes, permute=permute)
