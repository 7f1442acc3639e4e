"""Predicts who was at a social event: the southern women of Davis as a hypergraph.

Every event is a hyperedge of the women who attended it. The model learns, from node embeddings,
which sets of three attended some event together.

    python examples/python/graph_hyperedges.py
"""

import dataclasses
import tempfile
from pathlib import Path

import networkx
import torch

from nsimplex import graph
from nsimplex.nn import GraphTransformer, fit_graphs

torch.manual_seed(0)
women = networkx.davis_southern_women_graph()
events = [sorted(women[event]) for event in women.graph["bottom"]]
hypergraph = graph.from_hyperedges(events)
print(f"{hypergraph.num_nodes} women, {hypergraph.num_edges} different events")

# The sets of three that met, as a file that other programs read, and as many that did not.
number = {name: place for place, name in enumerate(hypergraph.names)}
met = {
    tuple(sorted(number[name] for name in (a, b, c)))
    for event in events
    for i, a in enumerate(event)
    for j, b in enumerate(event[i + 1 :], i + 1)
    for c in event[j + 1 :]
}
triples = graph.from_hyperedges(sorted(met), hypergraph.num_nodes)
with tempfile.TemporaryDirectory() as folder:
    graph.write_hif(triples, Path(folder) / "triples.json")
    again = graph.read_hif(Path(folder) / "triples.json")
    assert again.num_edges == triples.num_edges

    positive, negative = triples.batch, graph.negative_tuples(triples.batch, 1.0, seed=1)
    asked = torch.cat([positive.tuples, negative.tuples])
    truth = torch.cat([torch.ones(len(positive)), torch.zeros(len(negative))])
    order = torch.argsort(asked @ torch.tensor([10**6, 10**3, 1]))
    queries = graph.tuple_batch(asked[order], hypergraph.num_nodes, symmetry="undirected")

    # No messages between women: the model knows each by a number, as in the paper's Table 4.
    data = dataclasses.replace(
        graph.from_hyperedges([], hypergraph.num_nodes),
        node_features=torch.arange(hypergraph.num_nodes)[:, None],
    )
    model = GraphTransformer(
        "hyperedge", "binary", order=1, query_sizes=[3], node_codes=[18], width=16, layers=1
    )
    split = graph.split_rows(truth[order].long(), (0.6, 0.2, 0.2), seed=2)
    options = dict(queries=queries, targets=truth[order], epochs=40, learning_rate=1e-2)
    found = fit_graphs(model, data, split, folder=folder, **options)
    saved = GraphTransformer.from_run(folder)
print(f"epoch {found.best}, validation {found.validation}, test {found.test}")
print("chances:", saved.predict(data, queries)[:4, 0].tolist())
