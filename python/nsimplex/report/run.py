"""What a run directory holds, read leniently: a run that failed half-way is still worth a page."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from pathlib import Path

from .ball import Ball, read_ball
from .learned import LearnedGraph, read_learned
from .lines import Row, file_name, having, number, read_lines, read_text

#: Lines of `nsimplex causal`, which are no trainings.
CAUSAL_TASKS = ("fit", "simulate", "embed", "encode", "synthetic", "attenuation", "robustness", "complexity", "predict")


@dataclass(frozen=True)
class Arm:
    """One of the models that a match task compares."""

    order: int
    depth: int = 1
    sparse: str = "dense"
    topk: int = 0

    @staticmethod
    def of(row: Row) -> Arm:
        depth, topk = number(row, "depth"), number(row, "topk")
        return Arm(int(row["order"]), int(depth or 1), str(row.get("sparse") or "dense"), int(topk or 0))

    def __str__(self) -> str:
        parts = [f"order {self.order}"]
        if self.depth > 1:
            parts.append(f"{self.depth} layers")
        if self.sparse != "dense":
            parts.append(f"{self.sparse} {self.topk}")
        return ", ".join(parts)


@dataclass
class MatchRun:
    """One `task match2`, `match3` or `match4`: points of the curves and one result an arm and seed."""

    name: str
    points: list[Row]
    results: list[Row]

    @property
    def task(self) -> str:
        return next((str(row["task"]) for row in self.results + self.points if "task" in row), "match3")

    @property
    def arms(self) -> list[Arm]:
        arms = {Arm.of(row) for row in self.points + self.results}
        return sorted(arms, key=lambda a: (a.order, a.depth, a.sparse, a.topk))

    def values(self, arm: Arm, key: str) -> list[float]:
        """What the results of an arm say, one number a seed."""
        values = [number(row, key) for row in self.results if Arm.of(row) == arm]
        return [value for value in values if value is not None]


@dataclass
class LanguageRun:
    """One `lm train`: its metrics, step by step."""

    name: str
    metrics: list[Row]


@dataclass
class ComparisonRun:
    """One ``lm compare``: validation losses, one result an arm and seed, differences of pairs, speed-ups by step."""

    name: str
    points: list[Row]
    results: list[Row]
    pairs: list[Row]
    speed_ups: list[Row]


@dataclass
class ScalingRun:
    """One ``lm scaling``: losses by size, and the lines fitted to them and to published losses."""

    name: str
    points: list[Row]
    fits: list[Row]


@dataclass
class GraphRun:
    """One `graph chains`, `delaunay`, ..: validations, results of a seed, means over seeds; or what passes cost."""

    name: str
    task: str
    points: list[Row]
    results: list[Row]
    means: list[Row]
    costs: list[Row]


@dataclass
class EncodingRun:
    """One `causal classify`, `cluster`, `regress` or `perturb`: trials of every encoding, and what they come to."""

    name: str
    task: str
    trials: list[Row]
    summary: list[Row]


@dataclass
class AnalysisRun:
    """One ``analyze`` command: statements that it put to the test, and what it measured for them."""

    name: str
    kind: str  #: of the lines that are not statements alone
    rows: list[Row]
    statements: list[Row]


@dataclass
class Run:
    name: str
    match: list[MatchRun] = field(default_factory=list)
    language: list[LanguageRun] = field(default_factory=list)
    comparisons: list[ComparisonRun] = field(default_factory=list)
    scaling: list[ScalingRun] = field(default_factory=list)
    graphs: list[GraphRun] = field(default_factory=list)
    causal: list[tuple[str, Row]] = field(default_factory=list)  #: name of the folder, line
    learned: list[LearnedGraph] = field(default_factory=list)
    balls: list[Ball] = field(default_factory=list)
    encodings: list[EncodingRun] = field(default_factory=list)
    analyses: list[AnalysisRun] = field(default_factory=list)
    samples: list[Row] = field(default_factory=list)
    bench: list[Row] = field(default_factory=list)
    compare: list[Row] = field(default_factory=list)
    info: Row = field(default_factory=dict)
    machine: Row = field(default_factory=dict)
    command: str = ""
    commands: list[str] = field(default_factory=list)

    def is_empty(self) -> bool:
        trained = self.match, self.language, self.comparisons, self.scaling, self.graphs, self.causal, self.encodings
        return not any((*trained, self.analyses, self.balls, self.samples, self.bench, self.compare))


def _command_of(config: Path) -> str:
    first = read_text(config).partition("\n")[0]
    return first[1:].strip() if first.startswith("# nsimplex ") else ""


def machine_facts() -> Row:
    """The machine this runs on, as far as it says."""
    facts = {"system": f"{platform.system()} {platform.release()}", "cores": os.cpu_count()}
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        facts["processor"] = next(l.partition(":")[2].strip() for l in lines if l.startswith("model name"))
    except (OSError, StopIteration):
        facts["processor"] = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kilobytes = next(int(l.split()[1]) for l in lines if l.startswith("MemTotal"))
        facts["memory"] = f"{kilobytes / 2**20:.1f} GiB"
    except (OSError, StopIteration, ValueError):
        pass
    return facts


def _comparison(name: str, rows: list[Row]) -> ComparisonRun:
    return ComparisonRun(
        name,
        points=[r for r in having(rows, "step", "val_loss") if isinstance(r.get("equal"), str)],
        results=having(rows, "steps", "val_loss"),
        pairs=[r for r in having(rows, "difference") if isinstance(r.get("over"), str)],
        speed_ups=[r for r in having(rows, "step", "speed_up") if isinstance(r.get("over"), str)],
    )


def _add_arms(run: Run, name: str, rows: list[Row]) -> None:
    """Lines about several models, each called an arm by name."""
    fits = [r for r in rows if number(r, "alpha") is not None]
    if fits:
        points = [r for r in having(rows, "parameters", "val_loss") if r["parameters"] > 0 and r["val_loss"] > 0]
        run.scaling.append(ScalingRun(name, points, fits))
    elif (comparison := _comparison(name, rows)).points:
        run.comparisons.append(comparison)


def _latest(rows: list[Row], *names: str) -> list[Row]:
    """The last line of each kind: a run that was interrupted and went on has that of the part before, too."""
    return list({tuple(str(row.get(name)) for name in names): row for row in rows}.values())


def _add_graphs(run: Run, name: str, rows: list[Row]) -> None:
    """Lines about models of one task on sets and graphs."""
    for task in dict.fromkeys(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == task]
        costs = [r for r in own if number(r, "edges") and number(r, "forward_seconds") is not None]
        points = [r for r in own if number(r, "epoch") is not None]
        results = _latest([r for r in own if "seed" in r and r not in costs and r not in points], "model", "seed")
        means = _latest([r for r in own if "seed" not in r], "model")
        run.graphs.append(GraphRun(name, task, points, results, means, costs))


def _add_encodings(run: Run, name: str, rows: list[Row]) -> None:
    """Lines about encodings of features."""
    for task in dict.fromkeys(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == task]
        trials = _latest([r for r in own if "trial" in r or "seed" in r], "encoding", "trial", "seed")
        summary = _latest([r for r in own if number(r, "trials") is not None], "encoding")
        if trials:
            run.encodings.append(EncodingRun(name, task, trials, summary))


def _add_analysis(run: Run, name: str, rows: list[Row]) -> None:
    """Lines of one folder about statements."""
    kinds = [str(row["analysis"]) for row in rows if "analysis" in row]
    if rows:
        kind = "sensitivity" if "sharpness" in kinds else next(iter(kinds), "")
        measured = [row for row in rows if "analysis" in row]
        run.analyses.append(AnalysisRun(name, kind, measured, [row for row in rows if "statement" in row]))


def _add_metrics(run: Run, folder: Path) -> None:
    rows = read_lines(folder / "metrics.jsonl")
    name = file_name(folder)
    run.causal += [(name, r) for r in rows if r.get("task") in CAUSAL_TASKS]
    fits = [r for r in rows if r.get("task") == "fit"]
    if fits and (graph := read_learned(folder, has_truth=fits[-1].get("sortability_of") == "truth")):
        run.learned.append(graph)
    rows = [r for r in rows if r.get("task") not in CAUSAL_TASKS]
    _add_analysis(run, name, [r for r in rows if isinstance(r.get("statement"), str) or isinstance(r.get("analysis"), str)])
    _add_arms(run, name, [r for r in rows if isinstance(r.get("arm"), str)])
    _add_graphs(run, name, [r for r in rows if isinstance(r.get("model"), str) and isinstance(r.get("task"), str)])
    _add_encodings(run, name, [r for r in rows if isinstance(r.get("encoding"), str) and isinstance(r.get("task"), str)])
    rows = [r for r in rows if not {"arm", "model", "encoding", "analysis"} & set(r)]
    arms = [r for r in rows if number(r, "order") is not None]
    points = [r for r in arms if "step" in r and number(r, "accuracy") is not None]
    results = [r for r in arms if "step" not in r and number(r, "majority") is not None]
    if points or results:
        run.match.append(MatchRun(name, points, results))
    metrics = [r for r in rows if "train_loss" in r and number(r, "step") is not None]
    if metrics:
        run.language.append(LanguageRun(name, metrics))


def read_run(root: Path) -> Run:
    """Reads a run directory and the folders directly below it."""
    run = Run(name=file_name(root.resolve()), machine=machine_facts())
    for folder in [root, *sorted(p for p in root.iterdir() if p.is_dir())]:
        _add_metrics(run, folder)
        if ball := read_ball(folder):
            run.balls.append(ball)
        run.samples += [r for r in read_lines(folder / "samples.jsonl") if isinstance(r.get("text"), str)]
        run.bench += [r for r in read_lines(folder / "bench.jsonl") if number(r, "gflops") is not None]
        run.compare += [r for r in read_lines(folder / "compare.jsonl") if number(r, "speedup") is not None]
        for row in read_lines(folder / "info.json"):
            run.info.update(row)
        if command := _command_of(folder / "config.toml"):
            run.commands.append(command)
    run.command = read_text(root / "command.txt").strip()
    return run
