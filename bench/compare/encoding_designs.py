"""Three designs in which causal encodings could be better than a learned vector per feature.

    python bench/compare/encoding_designs.py --out designs.jsonl --seeds 5
    python bench/compare/encoding_designs.py --out designs.jsonl --table

The data are linear: x_j = sum of w_ij x_i + noise of deviation 0.5 to 2, on random graphs of one
edge per column. The weights are 0.5 to 2 and positive, so that a graph without weights says how
features move together. Columns are divided by their standard deviations. The graph is known.

- unseen: 24 features, of which 8 have no values in the rows to learn from. The model learns to
  restore hidden values. The test hides one of the 8 at a time and shows all other values.
- transfer: the same task with 8 tables to learn from and 4 others to test, each with a graph and
  16 columns of its own. A learned vector belongs to the number of a column.
- interventions: 16 features. A feature is set 2 deviations above its mean, and the model answers
  the changes of all others. The test sets 5 features that were never set before.

`error` is the squared error over that of the answer "the mean" ("nothing changes" for
interventions, whose answers are averaged over rows): 1 means nothing was learned. The encodings are
none, learned, cape and cape-shuffled, which has the points of cape at the wrong features. `simple`
is no transformer. For unseen and transfer it is a regression of a value on the mean of its
neighbours in the graph, with one slope for all. For interventions it has the total effects of the
known graph, whose weights are regressions on 300 rows without interventions.

Every answer is a line of `--out`, and a later call goes on where the file ends.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from scipy.stats import t as student
from torch import Tensor

from nsimplex import causal
from nsimplex.nn import FeatureTransformer, FeatureTransformerOptions

HEADS, WIDTH, BATCH = 4, 32, 48
STEPS, RATE = 250, 5e-3
ANSWERS = ("simple", "learned", "cape", "cape-shuffled", "none")


class World:
    """A linear model on a random graph; columns have deviation 1."""

    def __init__(self, features: int, seed: int) -> None:
        self.draws = torch.Generator().manual_seed(seed)
        made = causal.simulate(nodes=features, degree=1, observations=2, seed=seed)
        noise = 0.5 + 1.5 * torch.rand(features, generator=self.draws, dtype=torch.float64)
        mixing = noise[:, None] * torch.linalg.inv(
            torch.eye(features, dtype=torch.float64) - made.weights.abs()
        )
        self.mixing = mixing / mixing.square().sum(0).sqrt()  # unit noises -> columns
        self.graph = (made.weights != 0).double()
        self.neighbours = self.graph + self.graph.T

    def rows(self, count: int) -> Tensor:
        noise = torch.randn(count, len(self.graph), generator=self.draws, dtype=torch.float64)
        return noise @ self.mixing

    def effects(self) -> Tensor:
        """[i, j]: change of column j by one unit of column i."""
        return self.mixing / self.mixing.diagonal()[:, None]

    def table(self, encoding: str, seed: int) -> Tensor:
        """Angles [M, heads, planes] of the points of the graph."""
        points = causal.causal_embed(self.graph, dimension=WIDTH // 2, seed=seed).tangents
        if encoding == "cape-shuffled":
            order = torch.randperm(len(points), generator=torch.Generator().manual_seed(seed))
            points = points[order]
        ball = causal.ball_points(points)
        return causal.causal_angles(ball, heads=HEADS, by_dimension=True).float()


def model_of(features: int, encoding: str, seed: int) -> FeatureTransformer:
    options = FeatureTransformerOptions(
        features=features,
        dim=WIDTH,
        heads=HEADS,
        layers=2,
        values="linear",
        encoding="rotary" if encoding.startswith("cape") else encoding,  # type: ignore[arg-type]
    )
    return FeatureTransformer(options, torch.Generator().manual_seed(seed))


def trained(model: FeatureTransformer, loss: Callable[[], Tensor]) -> None:
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=STEPS)
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()
        schedule.step()


def neighbour_answer(worlds: list[World], tables: list[Tensor], usable: Tensor) -> float:
    """Slope of a value on the mean of its neighbours, over the usable columns."""
    above, below = 0.0, 0.0
    for world, table in zip(worlds, tables, strict=True):
        among = world.neighbours * usable * usable[:, None]
        mean = table @ (among / among.sum(0).clamp(min=1))
        above += float((mean * table)[:, usable.bool()].sum())
        below += float(mean.square()[:, usable.bool()].sum())
    return above / below


def restored(
    encoding: str, train: list[World], test: list[World], seen: Tensor, seed: int
) -> float:
    """Train on the columns that are seen; test on those that are not, or on all if all are."""
    draws = torch.Generator().manual_seed(seed)
    features = len(seen)
    tables = [world.rows(300) for world in train]
    tests = [world.rows(100) for world in test]
    asked = (seen == 0).nonzero().flatten() if (seen == 0).any() else torch.arange(features)
    if encoding == "simple":
        slope = neighbour_answer(train, tables, seen)
        squares = []
        for world, table in zip(test, tests, strict=True):
            mean = table @ (world.neighbours / world.neighbours.sum(0).clamp(min=1))
            squares.append((slope * mean - table)[:, asked].square().mean())
        return float(torch.stack(squares).mean())
    model = model_of(features, encoding, seed)
    angles = [
        world.table(encoding, seed) if encoding.startswith("cape") else None
        for world in train + test
    ]

    def loss() -> Tensor:
        at = int(torch.randint(len(train), (), generator=draws))
        if angles[at] is not None:
            model.set_table(angles[at])
        rows = torch.randint(len(tables[at]), (BATCH,), generator=draws)
        hidden = (torch.rand(BATCH, features, generator=draws) < 0.15) & seen.bool()
        hidden[:, int(seen.nonzero()[int(torch.randint(int(seen.sum()), (), generator=draws))])] = (
            True
        )
        x = tables[at][rows].float()
        answers = model.reconstruct(model(x, hidden | ~seen.bool()))
        return (answers - x)[hidden].square().mean()

    trained(model, loss)
    squares = []
    for at, table in enumerate(tests):
        if angles[len(train) + at] is not None:
            model.set_table(angles[len(train) + at])
        x = table.float()
        for column in asked.tolist():
            hidden = torch.zeros(len(x), features, dtype=torch.bool)
            hidden[:, column] = True
            with torch.no_grad():
                answer = model.reconstruct(model(x, hidden))[:, column]
            squares.append((answer - x[:, column]).square().mean())
    return float(torch.stack(squares).mean())


def unseen(encoding: str, seed: int) -> float:
    world = World(24, seed)
    seen = torch.ones(24, dtype=torch.float64)
    connected = (world.neighbours.sum(0) > 0).nonzero().flatten()
    order = torch.randperm(len(connected), generator=torch.Generator().manual_seed(seed))
    seen[connected[order[:8]]] = 0
    return restored(encoding, [world], [world], seen, seed)


def transfer(encoding: str, seed: int) -> float:
    worlds = [World(16, 100 * seed + number) for number in range(12)]
    seen = torch.ones(16, dtype=torch.float64)
    return restored(encoding, worlds[:8], worlds[8:], seen, seed)


def interventions(encoding: str, seed: int) -> float:
    world = World(16, seed)
    draws = torch.Generator().manual_seed(seed)
    effects = world.effects()
    causes = (world.graph.sum(1) > 0).nonzero().flatten()
    order = causes[torch.randperm(len(causes), generator=draws)]
    held = order[: min(5, len(order) // 2)]
    learned = torch.tensor([column for column in range(16) if column not in held.tolist()])

    def asked(targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rows in which the targets have their new values, the marks, and the changes."""
        x = world.rows(len(targets))
        marks = torch.nn.functional.one_hot(targets, 16).bool()
        change = (2 - x[marks])[:, None] * effects[targets]
        change[marks] = 0
        return torch.where(marks, 2.0, x).float(), marks, change.float()

    if encoding == "simple":
        x = world.rows(300)
        weights = torch.zeros_like(world.graph)
        for column in range(16):
            parents = world.graph[:, column].nonzero().flatten()
            fit = torch.linalg.lstsq(x[:, parents], x[:, column, None]).solution
            weights[parents, column] = fit[:, 0]
        total = torch.linalg.inv(torch.eye(16, dtype=torch.float64) - weights)
        answers = {column: 2 * total[column] for column in held.tolist()}
    else:
        model = model_of(16, encoding, seed)
        if encoding.startswith("cape"):
            model.set_table(world.table(encoding, seed))

        def loss() -> Tensor:
            picked = learned[torch.randint(len(learned), (BATCH,), generator=draws)]
            x, marks, change = asked(picked)
            return (model.reconstruct(model(x, marked=marks)) - change).square().mean()

        trained(model, loss)
        answers = {}
        for column in held.tolist():
            x, marks, _ = asked(torch.full((200,), column))
            with torch.no_grad():
                answers[column] = model.reconstruct(model(x, marked=marks)).mean(0).double()
    errors = nothing = 0.0
    for column, answer in answers.items():
        truth, others = 2 * effects[column], torch.arange(16) != column
        errors += float((answer - truth)[others].square().sum())
        nothing += float(truth[others].square().sum())
    return errors / nothing


DESIGNS = {
    "unseen": unseen,
    "transfer": transfer,
    "interventions": interventions,
}


def interval(values: list[float]) -> str:
    """Mean and 95 % interval of paired differences, by Student's t."""
    mean, count = statistics.fmean(values), len(values)
    half = float(student.ppf(0.975, count - 1)) * statistics.stdev(values) / math.sqrt(count)
    return f"{mean:+.3f} [{mean - half:+.3f}, {mean + half:+.3f}]"


def print_table(lines: list[dict]) -> None:
    print("| design | answer | error | error minus that of cape |\n| --- | --- | --- | --- |")
    for design in DESIGNS:
        by_answer: dict[str, dict[int, float]] = {}
        for line in lines:
            if line["design"] == design:
                by_answer.setdefault(line["encoding"], {})[line["seed"]] = line["error"]
        for answer, errors in by_answer.items():
            mean = statistics.fmean(errors.values())
            spread = statistics.stdev(errors.values()) if len(errors) > 1 else math.nan
            pairs = [errors[seed] - by_answer["cape"][seed] for seed in errors]
            lead = "" if answer == "cape" or len(pairs) < 2 else interval(pairs)
            print(f"| {design} ({len(errors)}) | {answer} | {mean:.3f} ± {spread:.3f} | {lead} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="file of JSON lines, continued")
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--answers", nargs="+", choices=ANSWERS, default=list(ANSWERS))
    parser.add_argument("--seeds", type=int, default=5, help="seeds 1, 2, ...")
    parser.add_argument("--table", action="store_true", help="print what the file has, and end")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = options.out.read_text() if options.out.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    if options.table:
        print_table(lines)
        return
    done = {(line["design"], line["encoding"], line["seed"]) for line in lines}
    with options.out.open("a") as file:
        for seed in range(1, options.seeds + 1):
            for design in options.designs:
                for encoding in options.answers:
                    if (design, encoding, seed) not in done:
                        error = DESIGNS[design](encoding, seed)
                        line = dict(design=design, encoding=encoding, seed=seed, error=error)
                        print(json.dumps(line), file=file, flush=True)


if __name__ == "__main__":
    main()
