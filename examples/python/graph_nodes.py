"""Classifies the members of the karate club: a graph of NetworkX, a trained model, its file.

python examples/python/graph_nodes.py
"""

import tempfile

import networkx
import torch

from nsimplex import graph
from nsimplex.nn import GraphTransformer, MessagePassing, fit_graphs

torch.manual_seed(0)
data = graph.from_networkx(networkx.karate_club_graph(), edge_features=["weight"], target="club")
data = graph.with_laplacian_encodings(data, 4)
split = graph.split_rows(data.targets, (0.4, 0.3, 0.3), seed=1)

models = {
    "gcn": MessagePassing("node", "classes", 2, node_channels=4, edge_channels=1, width=16),
    "transformer": GraphTransformer(
        "node", "classes", 2, node_channels=4, edge_channels=1, width=16, layers=2, form="kernel"
    ),
}
for name, model in models.items():
    with tempfile.TemporaryDirectory() as folder:
        found = fit_graphs(model, data, split, epochs=30, learning_rate=1e-2, folder=folder)
        saved = type(model).from_run(folder)
    print(f"{name}: epoch {found.best}, validation {found.validation}, test {found.test}")
    chances = saved.predict(data)[split.test]
    for member, chance in list(zip(split.test.tolist(), chances))[:3]:
        best = int(chance.argmax())
        print(f"  member {data.names[member]}: {data.classes[best]} ({float(chance[best]):.2f})")
