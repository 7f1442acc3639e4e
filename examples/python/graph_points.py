"""Learns to triangulate: from sets of points to the edges of their Delaunay triangulations.

python examples/python/graph_points.py
"""

import tempfile

import torch

from nsimplex import graph
from nsimplex.nn import GraphTransformer, fit_graphs

torch.manual_seed(0)
sets = graph.random_point_sets(40, 6, 9, seed=1)
edges = graph.delaunay_graph(sets.points, sets.node_offsets)
pairs = graph.complete_tuples(sets.node_offsets.diff(), 2, symmetry="undirected", loops=False)

# Every pair of points is judged. A pair is true if the triangulation has it.
number = len(sets.points)
key = lambda batch: batch.tuples[:, 0] * number + batch.tuples[:, 1]
data = graph.from_edge_index(
    pairs.tuples.t(),
    number,
    batch=torch.arange(40).repeat_interleave(sets.node_offsets.diff()),
    node_features=sets.points,
    targets=torch.isin(key(pairs), key(edges)).float(),
    level="edge",
    directions="undirected",
)
model = GraphTransformer(
    "edge", "binary", order=1, symmetry="undirected", node_channels=2, width=32, layers=2
)
split = graph.split_rows(40, (0.7, 0.15, 0.15), seed=1)
with tempfile.TemporaryDirectory() as folder:
    options = dict(epochs=30, batch_size=7, learning_rate=1e-2)
    found = fit_graphs(model, data, split, folder=folder, **options)
    saved = GraphTransformer.from_run(folder)
print(f"epoch {found.best}, validation {found.validation}, test {found.test}")

first = data[int(split.test[0])]
chances = saved.predict(first)[:, 0]
for pair, chance, truth in zip(first.batch.tuples.tolist()[:5], chances, first.targets):
    print(f"  points {pair}: {float(chance):.2f}, {'an' if truth else 'no'} edge")
