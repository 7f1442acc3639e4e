#!/usr/bin/env python3
"""Times of preparing graphs against their size: bench/graph_preparation.py [EDGES ...]

Random graphs of ten neighbours a node, edges in random order. Prints seconds for each function,
best of three, and the slope of their logarithm between the first and the last size: 1 is linear
time.
"""

import argparse
import math
import time

import torch

from nsimplex import graph


def random_edges(count):
    """`count` different edges between count / 5 nodes, as (low, high), in random order."""
    nodes = max(count // 5, 8)
    generator = torch.Generator().manual_seed(count)
    drawn = torch.randint(nodes, (2 * count, 2), generator=generator)
    pairs = drawn[drawn[:, 0] != drawn[:, 1]].sort(1).values
    keys = (pairs[:, 0] * nodes + pairs[:, 1]).unique()
    keys = keys[torch.randperm(len(keys), generator=generator)][:count]
    return torch.stack([keys // nodes, keys % nodes], 1), nodes


def best_of_three(call):
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def cases(count):
    edges, nodes = random_edges(count)
    undirected = graph.edge_tuples(edges, nodes, symmetry="undirected").batch
    return {
        "tuple_batch, any order": lambda: graph.tuple_batch(edges, nodes, symmetry="undirected"),
        "tuple_batch, ascending": lambda: graph.tuple_batch(
            undirected.tuples, nodes, symmetry="undirected"
        ),
        "edge_tuples with loops": lambda: graph.edge_tuples(edges, nodes, loops=True),
        "adjacency": lambda: graph.adjacency(undirected),
        "connected_components": lambda: graph.connected_components(undirected),
        "simplices up to 3": lambda: graph.simplices(undirected, 3),
        "line_graph": lambda: graph.line_graph(undirected),
    }


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    sizes = [10_000, 100_000, 1_000_000]
    parser.add_argument("edges", type=int, nargs="*", default=sizes, help="sizes of the graphs")
    sizes = parser.parse_args().edges
    torch.set_num_threads(1)
    times = {
        size: {name: best_of_three(call) for name, call in cases(size).items()} for size in sizes
    }
    print(f"{'seconds for edges':24}" + "".join(f"{size:>12}" for size in sizes) + f"{'slope':>8}")
    for name in times[sizes[0]]:
        row = [times[size][name] for size in sizes]
        slope = (
            math.log(row[-1] / row[0]) / math.log(sizes[-1] / sizes[0])
            if len(sizes) > 1
            else math.nan
        )
        print(f"{name:24}" + "".join(f"{each:12.4f}" for each in row) + f"{slope:8.2f}")


if __name__ == "__main__":
    main()
