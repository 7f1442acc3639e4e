"""Data sets of a few lines, and the parts of the command without its processes."""

import csv
import random

from nsimplex.graph_command.comparing import train_all
from nsimplex.graph_command.predicting import predict

DEFAULTS = {
    "data": "",
    "nodes": "",
    "graphs": "",
    "seed": 1,
    "threads": 1,
    "folder": "",
    "resume": False,
    "task": "node",
    "target": "label",
    "kind": "auto",
    "smiles": "smiles",
    "ignore": "",
    "directed": False,
    "skip_bad": False,
    "structure": "auto",
    "validation": 0.2,
    "test": 0.2,
    "split_seed": 0,
    "model": "gcn",
    "models": [],
    "seeds": 1,
    "width": 8,
    "layers": 1,
    "heads": 2,
    "form": "softmax",
    "readout": "same",
    "order": "data",
    "virtual_node": False,
    "local": False,
    "random_walk": 0,
    "laplacian": 0,
    "dropout": 0.0,
    "epochs": 2,
    "batch": 16,
    "learning_rate": 1e-2,
    "weight_decay": 1e-2,
    "warmup": 10,
    "patience": 20,
    "loss": "default",
    "device": "cpu",
    "explain": 0,
}


class Channel:
    """Keeps what a program says, and asks it to stop after some epochs."""

    def __init__(self, most=10**9):
        self.lines, self.warnings, self.tables, self.most = [], [], [], most

    def begin(self):
        pass

    def sync(self):
        pass

    def stops(self):
        return len(self.of_kind("graph_epoch") + self.of_kind("graph_point")) >= self.most

    def line(self, kind, /, **fields):
        self.lines.append({"kind": kind, **fields})

    def progress(self, done, total, detail):
        pass

    def warning(self, text):
        self.warnings.append(text)

    def table(self, rows):
        self.tables.append(rows)

    def of_kind(self, kind):
        return [line for line in self.lines if line["kind"] == kind]


def trained(channel=None, **request):
    channel = channel or Channel()
    train_all({**DEFAULTS, **{name: _text(own) for name, own in request.items()}}, channel)
    return channel


def predicted(run, **request):
    channel = Channel()
    own = {name: _text(value) for name, value in request.items()}
    predict({**DEFAULTS, "run": str(run), **own}, channel)
    return channel


def _text(value):
    return value if isinstance(value, (str, int, float, bool, list)) else str(value)


def write(path, text):
    path.write_text(text)
    return path


def two_groups(folder, rng=None):
    """A graph of two groups of people, most of whose edges stay inside, as edges and nodes."""
    rng = rng or random.Random(0)
    group = [i % 2 for i in range(40)]
    pairs = sorted(
        (i, j)
        for j in range(40)
        for i in range(j)
        if rng.random() < (0.3 if group[i] == group[j] else 0.02)
    )
    edges = "".join(f"p{i},p{j},{rng.random():.3f}\n" for i, j in pairs)
    nodes = "".join(
        f"p{i},{rng.gauss(40 + 8 * own, 5):.2f},{rng.choice(['red', 'blue'])},{'ab'[own]}\n"
        for i, own in enumerate(group)
    )
    return (
        write(folder / "edges.csv", "from,to,weight\n" + edges),
        write(folder / "nodes.csv", "name,age,colour,label\n" + nodes),
    )


def rings(folder, count=20):
    """Rings of three to eight nodes, whose numbers begin anew in each."""
    sizes = [3 + k % 6 for k in range(count)]
    edges = "".join(f"{i},{(i + 1) % n},r{k}\n" for k, n in enumerate(sizes) for i in range(n))
    nodes = "".join(f"{i},r{k},{i / n}\n" for k, n in enumerate(sizes) for i in range(n))
    graphs = "".join(f"r{k},{n % 2},{n},{'xyz'[n % 3]}\n" for k, n in enumerate(sizes))
    return (
        write(folder / "edges.csv", "a,b,graph\n" + edges),
        write(folder / "nodes.csv", "node,graph,place\n" + nodes),
        write(folder / "graphs.csv", "name,odd,size,letter\n" + graphs),
    )


def predictions(folder):
    with open(folder / "predictions.csv", newline="") as file:
        return list(csv.DictReader(file))
