"""Calls of the system that fail, one after the other: a line that says so, exit code 1 or 2, and
whole files.

The calls fail in failing_calls.c, which is loaded into the command before the C library.
"""

import errno
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import QUIET, assert_whole, errors_in

ERRORS = {
    "open": errno.EIO,
    "write": errno.ENOSPC,
    "rename": errno.EIO,
    "fsync": errno.EIO,
    "memory": errno.ENOMEM,
    "map": errno.ENOMEM,
}
#: Small runs that end by themselves, by what they write.
RUNS = {
    "lm train": "--text TEXT --width 16 --layers 1 --context 32 --batch 2 --steps 4 "
    "--checkpoint-every 2 --log-every 1",
    "causal simulate": "--nodes 5 --rows 50",
    "causal fit": "TABLE",
    "causal embed": "EDGES --steps 5",
    "causal encode": "EMBEDDING",
    "causal predict": "FEATURES TABLE",
    "causal task classify": "TABLE --labels LABELS --encodings cape --splits 1 --seeds 1 "
    "--epochs 1 --restore-epochs 1 --embed-steps 5 --save-models",
    "lab chains": "--models mlp --seeds 1 --epochs 2 --train 6 --validation 2 --test 2 --nodes 4 "
    "--test-nodes 6",
    "analyze curvature": "GRAPHS",
    "lab match2": "--steps 3 --order 1",
}


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler cc to make calls of the system fail with")
    library = tmp_path_factory.mktemp("failing") / "failing_calls.so"
    source = Path(__file__).with_name("failing_calls.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


class Finished:
    """A run in which one call failed, or none (number 0)."""

    def __init__(self, line, library, call, number, log, **more):
        log.unlink(missing_ok=True)
        environment = {
            **os.environ,
            "LD_PRELOAD": str(library),
            "NSIMPLEX_FAIL": f"{call} {number} {ERRORS[call]}",
            "NSIMPLEX_FAIL_LOG": str(log),
            "NSIMPLEX_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(sys.path),
            **more,
        }
        done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=120)
        self.code, self.error = done.returncode, done.stderr
        notes = [note.split() for note in log.read_text().splitlines()] if log.exists() else []
        self.folders = [int(value) for name, value in notes if name == "folder"]
        self.failed = any(name == "failed" for name, _ in notes)
        self.counts = {name: int(value) for name, value in notes if name in ERRORS}
        self.said = (
            f"{' '.join(map(str, line[1:3]))}, {call} {number}: exit code {self.code}, "
            f"{self.error!r}"
        )


def assert_told(finished, call):
    """One line and an exit code; of memory, a smaller amount may have been enough."""
    assert finished.failed, f"the call never came: {finished.said}"
    if call in ("memory", "map") and finished.code == 0:
        return
    assert finished.code in (1, 2), finished.said
    lines = errors_in(finished.error)
    assert len(lines) == 1 and lines[0].startswith("nsimplex: "), finished.said


def numbers(count, most, rng):
    """The first and the last call, and some of those between."""
    return sorted({1, count, *rng.sample(range(1, count + 1), min(count, most))}) if count else []


def fail_often(command, call, most, executable, inputs, failing, folder):
    words = [inputs.get(word, word) for word in RUNS[command].split()]
    line = [executable, *command.split(), *words, *QUIET]
    log, plain = folder / "log", folder / "plain"
    subprocess.run([*line, "--out", plain], check=True, capture_output=True)
    shutil.copytree(plain, folder / "again")
    counted = Finished([*line, "--out", folder / "again", "--overwrite"], failing, call, 0, log)
    assert counted.code == 0, counted.said
    earlier = sorted(path.name for path in plain.iterdir())
    for number in numbers(counted.counts[call], most, random.Random(command + call)):
        out = folder / str(number)
        # In place of an earlier run, whose files are replaced or stay.
        shutil.copytree(plain, out)
        finished = Finished([*line, "--out", out, "--overwrite"], failing, call, number, log)
        assert_told(finished, call)
        assert_whole(out)
        if command == "lm train" and finished.code:
            assert (out / "config.toml").exists() and set(earlier) >= {
                path.name for path in out.iterdir()
            }, finished.said
    return counted.counts[call]


@pytest.mark.parametrize("call", ERRORS)
@pytest.mark.parametrize("command", ["lm train", "causal fit"])
def test_a_call_that_fails_is_told_in_one_line(
    executable, inputs, failing, tmp_path, command, call
):
    count = fail_often(command, call, 1, executable, inputs, failing, tmp_path)
    assert count > 0 or call == "memory"  # what a small table needs may be too small to count


@pytest.mark.slow
@pytest.mark.parametrize("call", ERRORS)
@pytest.mark.parametrize("command", RUNS)
def test_every_call_that_fails_is_told_in_one_line(
    executable, inputs, failing, tmp_path, command, call
):
    fail_often(command, call, 25, executable, inputs, failing, tmp_path)


def test_the_folders_of_a_new_run_are_synced(executable, inputs, failing, tmp_path):
    """A file is there after a loss of power if its folder is, and so on upwards."""
    words = [inputs.get(word, word) for word in RUNS["causal fit"].split()]
    out = tmp_path / "new" / "run"
    line = [executable, "causal", "fit", *words, *QUIET, "--out", out]
    assert Finished(line, failing, "fsync", 0, tmp_path / "log").code == 0
    done = Finished([*line, "--overwrite"], failing, "fsync", 0, tmp_path / "log")
    assert done.code == 0 and _number(out) in done.folders
    (tmp_path / "log").unlink()
    out = tmp_path / "newer" / "run"
    done = Finished([*line[:-1], out], failing, "fsync", 0, tmp_path / "log")
    assert {_number(folder) for folder in (out, out.parent, tmp_path)} <= set(done.folders)


def _number(folder):
    """As failing_calls.c tells it."""
    number = folder.stat().st_ino & 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number


@pytest.mark.parametrize("call", ["write", "rename", "fsync"])
def test_a_run_that_failed_goes_on_from_its_last_checkpoint(
    executable, inputs, failing, tmp_path, call
):
    """With the bits of a run that nothing happened to."""
    words = [inputs.get(word, word) for word in RUNS["lm train"].split()]
    line = [executable, "lm", "train", *words, *QUIET]
    log, whole, broken = tmp_path / "log", tmp_path / "whole", tmp_path / "broken"
    counted = Finished([*line, "--out", whole], failing, call, 0, log)
    number = counted.counts[call] * 3 // 4  # after the checkpoint of the second step
    assert_told(Finished([*line, "--out", broken], failing, call, number, log), call)
    assert (broken / "checkpoint.safetensors").exists()
    subprocess.run(
        [executable, "lm", "train", "--resume", broken, *QUIET], check=True, capture_output=True
    )
    assert (broken / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


@pytest.mark.parametrize("call", ["open", "write", "rename", "fsync"])
def test_a_call_that_fails_in_a_report_is_told_in_one_line(executable, failing, tmp_path, call):
    """The page is drawn by a Python of its own, so the calls are those of that process."""
    (tmp_path / "metrics.jsonl").write_text(
        "".join(f'{{"step": {i}, "train_loss": {1.5 - i / 99}}}\n' for i in range(9))
    )
    page, line, log = tmp_path / "report.html", [executable, "report", tmp_path], tmp_path / "log"
    Finished(
        line, failing, call, 0, log, NSIMPLEX_FAIL_IN_CHILD="1"
    )  # caches of fonts and bytecode are made by now
    counted = Finished(line, failing, call, 0, log, NSIMPLEX_FAIL_IN_CHILD="1")
    assert counted.code == 0 and counted.counts[call] >= 1, counted.said
    drawn = page.read_text()
    for i, number in enumerate(numbers(counted.counts[call], 3, random.Random(call))):
        old = ("", "old</html>\n")[i % 2]
        page.unlink(missing_ok=True)
        if old:
            page.write_text(old)
        finished = Finished(line, failing, call, number, log, NSIMPLEX_FAIL_IN_CHILD="1")
        if (call, number) == ("fsync", 2):
            # Of the folder, which some file systems do not know: the page is there.
            assert finished.code == 0 and page.read_text() == drawn, finished.said
            continue
        assert_told(finished, call)
        assert (page.read_text() if page.exists() else "") == old != drawn, finished.said
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
            {"log", "metrics.jsonl", *(["report.html"] if old else [])}
        )


@pytest.mark.parametrize("number", [1, 2])
def test_pages_that_are_not_there_are_told_with_the_files_name(
    executable, failing, tmp_path, number
):
    """The second call makes room for a file that does not tell its size."""
    if (size := len(Path("/proc/kallsyms").read_bytes())) < 1 << 17:
        pytest.skip(f"/proc/kallsyms has {size} bytes here")
    finished = Finished(
        [executable, "causal", "fit", "/proc/kallsyms", "--out", tmp_path / "run"],
        failing,
        "map",
        number,
        tmp_path / "log",
    )
    assert finished.failed and finished.code == 2, finished.said
    assert finished.error == "nsimplex: cannot read /proc/kallsyms: Cannot allocate memory\n"
    assert not (tmp_path / "run").exists()


def test_memory_that_is_not_there_is_told_in_one_line(executable, inputs, tmp_path):
    """Of tensors, too, whose allocations fail inside of torch."""
    line = (
        f"ulimit -v 2500000; exec '{executable}' lm train --text '{inputs['TEXT']}' --width 8000 "
        "--heads 2 --layers 2 --steps 2"
    )
    done = subprocess.run(
        ["bash", "-c", f"{line} {' '.join(QUIET)} --out '{tmp_path / 'run'}'"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.splitlines()) == 1 and "memory" in done.stderr, done.stderr


def test_a_report_on_a_full_disk_is_told_in_one_line(tmp_path, subprocess_env):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "train_loss": 1.5}\n')
    (tmp_path / "report.html").write_text("old</html>\n")
    program = """if True:
        import errno, os, sys
        def fail(descriptor):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync = fail
        sys.argv = ["report", sys.argv[1]]
        from nsimplex.report.__main__ import main
        sys.exit(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path],
        capture_output=True,
        text=True,
        env=subprocess_env,
    )
    assert (
        done.returncode == 2
        and "No space left on device" in done.stderr
        and len(done.stderr.splitlines()) == 1
    )
    assert (tmp_path / "report.html").read_text() == "old</html>\n"
    assert_whole(tmp_path)
