"""The kernel encoder of a graph, 4 layers and a read-out: plan, forward, backward, memory; one JSON
object a line.

    python bench/encoder.py                      # 3277 nodes, 36 thousand rows
    python bench/encoder.py --nodes 1000 --nodes 10000 --nodes 100000
    python bench/encoder.py --form softmax --nodes 1450 --forward-only

Graphs are Barabasi-Albert with 5 links a new node, both directions of each link and a loop of every
node. Four layers 2 -> 2 and one 2 -> 0 of width 32, heads of 8 channels, 16 features: Table 6a of
Kim, Oh and Hong, arXiv 2110.14416. Medians; the first run of each is not counted. "peak_mb" is the
most memory the process had above what it had before the model was made. "plan_ms" is done once a
graph for all layers, "readout_plan_ms" for the read-out.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

from nsimplex import equivariant_encoder_plan
from nsimplex.graph import barabasi_albert_graph, edge_tuples, project_tuples
from nsimplex.nn import EquivariantEncoder, RandomFeatures

sys.path.insert(0, str(Path(__file__).parent / "compare"))
from turns import medians

WIDTH, HEADS, LAYERS, LINKS = 32, 4, 4, 5


class Model(torch.nn.Module):
    def __init__(self, form: str) -> None:
        super().__init__()
        features = None if form == "softmax" else RandomFeatures(WIDTH // HEADS)
        shared = {"heads": HEADS, "form": form, "features": features}
        self.layers = torch.nn.ModuleList(
            [EquivariantEncoder(2, 2, WIDTH, WIDTH, **shared) for _ in range(LAYERS)]
        )
        self.readout = EquivariantEncoder(2, 0, WIDTH, WIDTH, **shared)

    def forward(self, x, plans):
        for layer in self.layers:
            x = layer(x, plans[0])
        return self.readout(x, plans[1])


def status(field: str) -> float:
    """Of the process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {field} in /proc/self/status")


def seconds(function, repeats: int) -> float:
    function()
    return 1e-3 * medians({"call": function}, repeats)["call"]


def measure(nodes: int, form: str, repeats: int, forward_only: bool) -> dict:
    links = barabasi_albert_graph(nodes, LINKS, seed=0)
    graph = edge_tuples(links.tuples, nodes, loops=True).batch
    whole = project_tuples(graph, 0)

    def plan_to(target):
        return lambda: equivariant_encoder_plan(graph, target, form=form)

    torch.manual_seed(0)
    makers = [plan_to(graph), plan_to(whole)]
    plan_seconds, plans = [seconds(make, repeats) for make in makers], [make() for make in makers]
    x = torch.randn(len(graph.tuples), WIDTH)
    Path("/proc/self/clear_refs").write_text("5")  # peak memory counts from here
    before = status("VmRSS")
    model = Model(form)

    def forward():
        with torch.no_grad():
            model(x, plans)

    def both():
        model(x, plans).sum().backward()
        model.zero_grad()

    forward_seconds = seconds(forward, repeats)
    both_seconds = float("nan") if forward_only else seconds(both, repeats)
    return {
        "form": form,
        "nodes": nodes,
        "rows": len(x),
        "threads": torch.get_num_threads(),
        "parameters": sum(p.numel() for p in model.parameters()),
        "plan_ms": 1e3 * plan_seconds[0],
        "readout_plan_ms": 1e3 * plan_seconds[1],
        "forward_seconds": forward_seconds,
        "backward_seconds": both_seconds - forward_seconds,
        "peak_mb": status("VmHWM") - before,
        "process_mb": status("VmHWM"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, action="append", help="default: 3277")
    parser.add_argument("--form", choices=["softmax", "kernel", "decoupled"], default="kernel")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--forward-only", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for nodes in arguments.nodes or [3277]:
        print(
            json.dumps(measure(nodes, arguments.form, arguments.repeats, arguments.forward_only)),
            flush=True,
        )


if __name__ == "__main__":
    main()
