"""Runs parts in processes of their own, with a deadline each, and writes results as they come.

Only a part's table is printed: at most a hundred lines in all.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import parts

LARGEST_LOG = 12 << 20
WORKER = Path(__file__).with_name("worker.py")


def environment(root: Path, options: argparse.Namespace) -> dict[str, str]:
    """What all processes share: the package beside this tool, one cache of kernels."""
    build = root if (root / "python" / "nsimplex" / "lib").exists() else root / "build" / "release"
    ours = {
        "GPU_DAY_ROOT": str(root),
        "GPU_DAY_OUT": str(options.out.absolute()),
        "GPU_DAY_REHEARSE": "1" if options.rehearse or options.interpret else "",
        "GPU_DAY_PLAIN": "1" if options.plain else "",
        "GPU_DAY_INTERPRET": "1" if options.interpret else "",
        "NSIMPLEX_BUILD_DIR": str(build),
        "NSIMPLEX_WARN_FALLBACK": "1",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        "TRITON_DISABLE_LINE_INFO": "1",
        "TRITON_CACHE_DIR": os.environ.get("TRITON_CACHE_DIR", "/tmp/gpu-day-triton"),
    }
    if options.interpret:
        ours["TRITON_INTERPRET"] = "1"
    tests = root / "tests" / "python"
    paths = [build / "python", root / "tools" / "gpu", tests / "attention", tests / "gpu"]
    before = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([*map(str, paths), *([before] if before else [])])
    return {**os.environ, **ours, "PYTHONPATH": path}


class Output:
    """results.jsonl, log.txt and summary.txt in the folder of results."""

    def __init__(self, folder: Path, done: Path | None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.results = folder, folder / "results.jsonl"
        self.lock = threading.Lock()
        self.log = (folder / "log.txt").open("ab", buffering=0)
        sources = [path for path in (done, self.results) if path and path.exists()]
        self.records = [
            json.loads(line) for path in sources for line in path.read_text().splitlines()
        ]

    def add(self, record: dict) -> None:
        with self.lock:
            self.records.append(record)
            with self.results.open("a") as file:
                file.write(json.dumps(record) + "\n")

    def of(self, part: str) -> list[dict]:
        return [record for record in list(self.records) if record["part"] == part]

    def finished(self, part: str, phase: str) -> set[str]:
        return {r["item"] for r in self.of(part) if r["phase"] == phase and not r.get("late")}

    def note(self, text: str) -> None:
        if self.log.tell() < LARGEST_LOG:
            self.log.write(text.encode())


class Worker:
    """One process that is sent names of items and answers with a line per item."""

    def __init__(self, name: str, phase: str, env: dict[str, str], output: Output) -> None:
        self.item, self.since, self.buffer = None, 0.0, b""
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), name, phase],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output.log if output.log.tell() < LARGEST_LOG else subprocess.DEVNULL,
            env=env,
            start_new_session=True,
        )

    def send(self, item: str) -> None:
        self.item, self.since = item, time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # the end of its output says so, too
            self.process.stdin.write((item + "\n").encode())
            self.process.stdin.flush()

    def read(self) -> list[dict] | None:
        """Complete answers; None at the end of the process."""
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        if not data:
            return None
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def run_phase(name, phase, items, processes, seconds, env, output) -> None:
    """Hands items to processes until all are done or the time is up."""
    part, deadline = parts.PARTS[name], time.monotonic() + seconds
    waiting, workers, selector = list(items), [], selectors.DefaultSelector()

    def record(item, **fields):
        output.add({"part": name, "phase": phase, "item": item, **fields})

    def start():
        worker = Worker(name, phase, env, output)
        workers.append(worker)
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
        worker.send(waiting.pop(0))

    def stop(worker):
        selector.unregister(worker.process.stdout)
        workers.remove(worker)
        worker.kill()

    while waiting and len(workers) < processes:
        start()
    while workers and time.monotonic() < deadline:
        for key, _ in selector.select(timeout=0.5):
            worker, answers = key.data, key.data.read()
            if answers is None:
                stop(worker)
                if worker.item is not None:
                    code = worker.process.returncode
                    record(worker.item, ok=False, error=f"the process ended with status {code}")
                continue
            for answer in answers:
                broken = answer.pop("broken", False)
                record(worker.item, seconds=round(time.monotonic() - worker.since, 2), **answer)
                worker.item = None
                if broken or not waiting:
                    stop(worker)
                else:
                    worker.send(waiting.pop(0))
        for worker in list(workers):
            if time.monotonic() - worker.since > part.item_seconds:
                stop(worker)
                record(worker.item, ok=False, error=f"more than {part.item_seconds} s")
        while waiting and len(workers) < processes and time.monotonic() < deadline:
            start()
    for worker in list(workers):
        record(worker.item, ok=None, late=True, error="the time of this part was up")
        stop(worker)
    for item in waiting:
        record(item, ok=None, late=True, error="not started: the time of this part was up")


def run_part(name: str, seconds: float, options, setup, env, output: Output) -> None:
    part, begin = parts.PARTS[name], time.monotonic()
    env = {**env, "GPU_DAY_UNTIL": str(time.time() + seconds)}
    try:
        module = part.load()
        items = [item for item in module.items(setup) if options.only in item]
    except Exception as error:  # the other parts still run
        output.note(traceback.format_exc())
        text = f"{type(error).__name__}: {error}"
        output.add({"part": name, "phase": "list", "item": "list", "ok": False, "error": text})
        return
    processes = min(options.processes or os.cpu_count() or 1, part.processes)
    left = lambda: seconds - (time.monotonic() - begin)
    todo = [item for item in items if item not in output.finished(name, "run")]
    warm = getattr(module, "WARM", "")
    if warm:
        run_phase(name, "warm", todo, processes, 0.6 * left(), env, output)
        processes = 1
        warmed = [r for r in output.of(name) if r["phase"] == "warm" and not r["ok"]]
        skipped = {r["item"] for r in warmed if warm == "required" or not r.get("late")}
        todo = [item for item in todo if item not in skipped]
    run_phase(name, "run", todo, processes, left(), env, output)


def table(name: str, output: Output) -> list[str]:
    records = output.of(name)
    bad = [r for r in records if r["ok"] is False]
    late = {r["item"] for r in records if r.get("late") and r["phase"] == "run"}
    late -= output.finished(name, "run")
    ran = output.finished(name, "run")
    lines = [f"== {name}: {len(ran)} items ran, {len(bad)} failed, {len(late)} had no time"]
    try:
        lines += parts.PARTS[name].load().lines([r for r in records if r["phase"] == "run"])
    except Exception as error:  # a table never costs the results of the other parts
        lines.append(f"no table: {type(error).__name__}: {error}")
    for record in bad[:8]:
        lines.append(f"   FAILED {record['item']}: {str(record.get('error', ''))[:150]}")
    return lines


def run(options: argparse.Namespace, root: Path, start: float) -> int:
    env = environment(root, options)
    os.environ.update(env)
    sys.path[:0] = env["PYTHONPATH"].split(os.pathsep)
    import setups  # and torch: not for preparing

    try:
        setup = setups.make()
    except Exception as error:
        print(f"gpu_day: {type(error).__name__}: {error}")
        return 1
    output = Output(options.out.absolute(), options.done)
    end = start + 60 * options.minutes - 5
    groups = [group.split("+") for group in options.parts.split(",")]
    weights = [sum(parts.PARTS[name].weight for name in names) for names in groups]
    for position, names in enumerate(groups):
        begin = time.monotonic()
        seconds = (end - begin) * weights[position] / sum(weights[position:])
        if seconds < 2:
            print(f"== {', '.join(names)}: no time left", flush=True)
            continue
        print(f"-- {', '.join(names)}: at most {seconds:.0f} s", flush=True)
        with ThreadPoolExecutor(len(names)) as pool:
            for name in names:
                pool.submit(run_part, name, seconds, options, setup, env, output)
        lines = [line for name in names for line in table(name, output)]
        lines.append(f"   ({time.monotonic() - begin:.0f} s)")
        print("\n".join(lines), flush=True)
        with (output.folder / "summary.txt").open("a") as file:
            file.write("\n".join(lines) + "\n")
    return 0
