"""Learns the solubility of molecules: SMILES in a csv file, a trained model, its predictions.

    python examples/python/graph_molecules.py delaney.csv --target logp

It needs RDKit (pip install rdkit).
"""

import argparse
import tempfile
from pathlib import Path

import torch

from nsimplex import graph, molecules
from nsimplex.nn import GraphTransformer, MessagePassing, fit_graphs


def read(source, target, count):
    """Graphs of the first molecules of a csv file."""
    with tempfile.TemporaryDirectory() as folder:
        molecules.convert(source, Path(folder) / "a.npz", target=target, skip_bad=True)
        return graph.read_molecules(Path(folder) / "a.npz")[:count]


parser = argparse.ArgumentParser()
parser.add_argument("source", nargs="?", help="csv with a column smiles")
parser.add_argument("--target", default="logp")
parser.add_argument("--molecules", type=int, default=1200)
parser.add_argument("--epochs", type=int, default=20)
options = parser.parse_args()
if options.source is None:
    raise SystemExit(print("skipped: no csv file of molecules is given"))

torch.manual_seed(0)
data = read(options.source, options.target, options.molecules)
codes = dict(
    node_codes=molecules.ATOM_FEATURES.values(), edge_codes=molecules.BOND_FEATURES.values()
)
codes = {name: list(counts) for name, counts in codes.items()}
split = graph.split_rows(len(data), seed=1)
for model in (MessagePassing(kind="gin", **codes), GraphTransformer(form="kernel", **codes)):
    with tempfile.TemporaryDirectory() as folder:
        found = fit_graphs(model, data, split, epochs=options.epochs, folder=folder)
        saved = type(model).from_run(folder)
    print(f"{type(model).__name__}: validation {found.validation}, test {found.test}")
    print("  first predictions:", saved.predict(data[split.test[:3]])[:, 0].tolist())
