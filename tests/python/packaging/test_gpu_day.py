"""tools/gpu_day without a GPU: the folder it makes, a rehearsal, and what failures of a part do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

TOOLS = Path(__file__).resolve().parents[3] / "tools"
sys.path.insert(0, str(TOOLS / "gpu"))

import device_plugin
import parts
import prepare
import runner
import suite

#: Answers like worker.py, except for items of these names.
WORKER = """
import json, os, sys, time
for line in sys.stdin:
    item = line.strip()
    if item == "ends":
        os._exit(7)
    if item == "hangs":
        time.sleep(60)
    broken = item == "breaks the device"
    print(json.dumps({"ok": not broken, "broken": broken, "process": os.getpid()}), flush=True)
"""


@pytest.fixture
def phase(tmp_path, monkeypatch):
    """Runs items by the worker above: records by item."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    monkeypatch.setattr(runner, "WORKER", script)
    monkeypatch.setitem(parts.PARTS, "tried", parts.Part("tried", 1.0, 2, 2.0))

    def run(items, seconds=30.0, processes=2):
        output = runner.Output(tmp_path / "out", None)
        runner.run_phase("tried", "run", items, processes, seconds, None, output)
        return {record["item"]: record for record in output.records}

    return run


def test_a_process_that_ends_costs_one_item(phase):
    records = phase(["a", "ends", "b", "c"], processes=1)
    assert list(records) == ["a", "ends", "b", "c"]
    assert "status 7" in records["ends"]["error"]
    assert all(records[item]["ok"] for item in "abc")
    assert records["a"]["process"] != records["b"]["process"] == records["c"]["process"]


def test_a_broken_device_costs_one_item(phase):
    records = phase(["a", "breaks the device", "b"], processes=1)
    assert [records[item]["ok"] for item in records] == [True, False, True]
    assert records["a"]["process"] != records["b"]["process"]


def test_an_item_that_hangs_is_killed(phase):
    records = phase(["hangs", "a", "b"])
    assert records["hangs"]["error"] == "more than 2.0 s"
    assert records["a"]["ok"] and records["b"]["ok"]


def test_the_time_of_a_part_ends(phase, tmp_path):
    records = phase(["hangs", "a"], seconds=0.5, processes=1)
    assert records["hangs"]["late"] and records["a"]["late"]
    output = runner.Output(tmp_path / "out", None)
    assert output.finished("tried", "run") == set()  # they run in the next call
    assert len(output.of("tried")) == 2


def test_every_part_has_a_module():
    for part in parts.PARTS.values():
        assert (TOOLS / "gpu" / f"{part.module}.py").exists()


def test_results_of_tests_are_read_from_what_pytest_says():
    said = """
[gw3] [ 12%] PASSED tests/a.py::test_x[key masks]
[gw0] [100%] FAILED tests/a.py::test_y
tests/b.py::test_z[first axis inner] PASSED                     [ 10%]
tests/b.py::test_z[mask] SKIPPED (no GPU)                         [ 20%]
FAILED tests/a.py::test_y - AssertionError: PASSED is no result
"""
    assert suite.tests_of(said) == {
        "tests/a.py::test_x[key masks]": "PASSED",
        "tests/a.py::test_y": "FAILED",
        "tests/b.py::test_z[first axis inner]": "PASSED",
        "tests/b.py::test_z[mask]": "SKIPPED",
    }


@pytest.mark.parametrize("make", [torch.zeros, torch.randn, torch.rand])
def test_the_plugin_moves_what_tests_make(make):
    generator = torch.Generator().manual_seed(1)
    with device_plugin.OnDevice("meta"):
        drawn = [] if make is torch.zeros else [make(3, generator=generator, requires_grad=True)]
        made = make(3, dtype=torch.float64)
        assert torch.ones(2, device="cpu").device.type == "cpu"
    assert made.device.type == "meta" and made.dtype == torch.float64
    assert all(x.device.type == "meta" and x.is_leaf and x.requires_grad for x in drawn)


@pytest.fixture(scope="module")
def folder(build, tmp_path_factory):
    made = tmp_path_factory.mktemp("gpu-day") / "folder"
    assert prepare.prepare(build, made) == 0
    return made


def test_the_folder_is_small_and_complete(folder):
    files = [path for path in folder.rglob("*") if not path.is_dir()]
    assert not any(path.is_symlink() for path in files)
    assert sum(path.stat().st_size for path in files) < prepare.LARGEST
    code = "import nsimplex; print(nsimplex.__file__)"
    path = str(folder / "python")
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert out.stdout.strip() == str(folder / "python" / "nsimplex" / "__init__.py"), out.stderr


def test_a_rehearsal_in_the_folder(folder, tmp_path):
    words = "run --rehearse --plain --parts correctness+timings --processes 1 --minutes 5 --only"
    done = subprocess.run(
        [folder / "tools" / "gpu_day", *words.split(), "order 1", "--out", tmp_path / "out"],
        env={**os.environ, "GPU_DAY_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert {record["part"] for record in records} == {"correctness", "timings"}
    assert all(record["ok"] for record in records), done.stdout
    assert "bf16 plain" in done.stdout and "order 1 causal D128" in done.stdout


def test_without_a_gpu_it_says_so(folder, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    done = subprocess.run(
        [folder / "tools" / "gpu_day", "run", "--out", tmp_path],
        env={**os.environ, "GPU_DAY_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "no GPU that torch can use" in done.stdout
