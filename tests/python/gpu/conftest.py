"""Runs the tests marked ``interpreted`` in a process of their own.

Triton decides while it is imported whether kernels are interpreted, and the rest of a pytest
session compiles models and imports nsimplex. So the session that pytest started sends these tests,
all at once, to a second pytest with TRITON_INTERPRET=1 and shows its reports as its own. Selections
(-k, -m, a file, a test) work as for every other test. For a debugger or prints, run them directly:

    TRITON_INTERPRET=1 python -m pytest tests/python/gpu/test_gpu_attention.py -k decode --pdb

They are skipped where Triton, or the version whose interpreter is patched, is absent.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import interpreter
import pytest

HERE = Path(__file__).resolve().parent
#: Whether this process is the one that interprets kernels, and where it writes its reports.
INTERPRETS = os.environ.get("TRITON_INTERPRET") == "1"
REPORTS = "NSIMPLEX_GPU_REPORTS"

sys.path.insert(0, str(HERE.parent / "attention"))  # definition, problems, options


def _absent() -> str | None:
    """Why kernels cannot be interpreted, without importing Triton."""
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return "Triton is not installed"
    if version != interpreter.VERSION:
        return f"the interpreter of Triton {interpreter.VERSION} is needed, this is {version}"
    return None


def pytest_configure(config) -> None:
    config.addinivalue_line("markers", "interpreted: runs kernels in Triton's interpreter")
    config.addinivalue_line("markers", "compiled: compiles kernels, for GPUs that are not here")
    if INTERPRETS and _absent() is None:
        import torch

        interpreter.install()
        torch.set_num_threads(1)
        # torch.empty is filled with NaN, so that a result that nobody wrote shows.
        torch.use_deterministic_algorithms(True)


def pytest_collection_modifyitems(config, items) -> None:
    absent = _absent()
    for item in items:
        if HERE not in item.path.parents:
            continue
        interpreted = item.get_closest_marker("interpreted") is not None
        compiled = item.get_closest_marker("compiled") is not None
        if absent and (interpreted or compiled):
            item.add_marker(pytest.mark.skip(reason=absent))
        elif compiled and INTERPRETS:
            item.add_marker(pytest.mark.skip(reason="TRITON_INTERPRET=1 leaves no compiler"))


class Process:
    """The second pytest, and the reports it has written so far."""

    def __init__(self, config, nodes: list[str]) -> None:
        self.config, self.seen = config, {}
        self.folder = tempfile.TemporaryDirectory(prefix="nsimplex-gpu-")
        root = Path(self.folder.name)
        (root / "nodes").write_text("\n".join(nodes))
        (root / "reports").touch()
        self.reports, self.output = (root / "reports").open(), root / "output"
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short"]
        self.process = subprocess.Popen(
            [*command, f"@{root / 'nodes'}"],
            cwd=config.rootpath,
            env=interpreter.environment() | {REPORTS: str(root / "reports")},
            stdout=self.output.open("w"),
            stderr=subprocess.STDOUT,
        )

    def of(self, node: str) -> list:
        """The reports of a test, when it has ended; none if the process died before."""
        pending = ""
        while True:
            line = self.reports.readline()
            if not line:
                if self.process.poll() is not None and not self.reports.read(1):
                    return self.seen.pop(node, [])
                try:  # noqa: SIM105
                    self.process.wait(0.05)
                except subprocess.TimeoutExpired:
                    pass
                continue
            pending += line
            if not line.endswith("\n"):
                continue
            data, pending = json.loads(pending), ""
            report = self.config.hook.pytest_report_from_serializable(config=self.config, data=data)
            self.seen.setdefault(report.nodeid, []).append(report)
            if report.nodeid == node and report.when == "teardown":
                return self.seen.pop(node)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reports.close()
        self.folder.cleanup()


PROCESS = pytest.StashKey[Process]()


def _elsewhere(item) -> bool:
    return (
        not INTERPRETS
        and item.get_closest_marker("interpreted") is not None
        and item.get_closest_marker("skip") is None
    )


def pytest_runtest_protocol(item, nextitem):
    if not _elsewhere(item):
        return None
    config = item.config
    # A worker of pytest-xdist knows every test but runs some.
    everything = [item] if hasattr(config, "workerinput") else item.session.items
    if PROCESS not in config.stash or hasattr(config, "workerinput"):
        _stop(config)
        nodes = [other.nodeid for other in everything if _elsewhere(other)]
        config.stash[PROCESS] = Process(config, nodes)
    process = config.stash[PROCESS]
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = process.of(item.nodeid)
    if not reports:
        text = f"the process that interprets kernels ended:\n{process.output.read_text()[-4000:]}"
        reports = [
            pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call"),
        ]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _stop(config) -> None:
    if PROCESS in config.stash:
        config.stash[PROCESS].stop()
        del config.stash[PROCESS]


def pytest_unconfigure(config) -> None:
    _stop(config)


class _Writer:
    """Writes the reports of this process for the one that started it."""

    def __init__(self, config, path: str) -> None:
        self.config, self.file = config, Path(path).open("a")  # noqa: SIM115

    def pytest_runtest_logreport(self, report) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.file.write(json.dumps(data) + "\n")
        self.file.flush()


if REPORTS in os.environ and INTERPRETS:

    def pytest_collection_finish(session) -> None:
        session.config.pluginmanager.register(_Writer(session.config, os.environ[REPORTS]))


@pytest.fixture
def bench():
    """The settings of the interpreter and its counts of launches, as they were before."""
    before = vars(interpreter.settings).copy()
    interpreter.launches.clear()
    yield interpreter
    vars(interpreter.settings).update(before)
