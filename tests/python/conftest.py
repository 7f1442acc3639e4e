"""Makes the tests import the package of a build folder: NSIMPLEX_BUILD_DIR, else build/release.

NSIMPLEX_BUILD_DIR set to nothing leaves sys.path alone, so that an installed package is tested.
"""

import html
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A shell that starts the tests in the background ignores Ctrl-C, and so would the programs that the
# tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

BUILD = os.environ.get("NSIMPLEX_BUILD_DIR", str(ROOT / "build" / "release"))

if BUILD:
    sys.path.insert(0, str(Path(BUILD).absolute() / "python"))
# The tables of calls and their definitions serve the tests of every folder.
_TABLES = "packaging", "attention", "equivariant", "process"
sys.path += [str(ROOT / "tests" / "python" / name) for name in _TABLES]


def _seed():
    random.seed(0)
    if "numpy" in sys.modules:  # tests of the command line import neither
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(scope="module", autouse=True)
def _seeded_module():
    """Fixtures of a module draw the same numbers in every run."""
    _seed()


@pytest.fixture(autouse=True)
def _seeded():
    """A test draws the same numbers in every run, and alone as among others. Random numbers that
    differ between runs make a test fail once in many runs, where nobody can repeat it."""
    _seed()


@pytest.fixture(scope="session")
def root():
    """The source tree."""
    return ROOT


@pytest.fixture(scope="session")
def build():
    """The build folder under test; tests of its files are skipped where an installed package is
    tested."""
    if not BUILD:
        pytest.skip("an installed package is tested, not a build folder")
    return Path(BUILD).absolute()


@pytest.fixture(scope="session")
def subprocess_env():
    """The environment of a process that imports the package as the tests do."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture(scope="session")
def executable(build):
    """The command line under test."""
    path = build / "bin" / "nsimplex"
    if not path.exists():
        pytest.skip("no command line in this build")
    return path


@pytest.fixture(scope="session")
def chromium():
    """A browser; tests that need one are skipped where there is none."""
    names = "chromium", "chromium-headless-shell", "chromium-browser", "google-chrome"
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no browser")
    return found


@pytest.fixture
def opened(chromium):
    """Opens a page in a browser and returns the data attributes of its body, in which scripts of a
    test leave what they saw."""

    def open_page(path, *options):
        words = [chromium, "--headless", "--no-sandbox", "--disable-gpu", *options, "--dump-dom"]
        words += [f"--user-data-dir={path.parent}/own", f"file://{path}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        body = re.search(r'<body((?: [\w-]+="[^"]*")+)>', done.stdout)
        assert body, done.stderr
        found = re.findall(r' data-(\w+)="([^"]*)"', body[1])
        return {name: html.unescape(value) for name, value in found}

    return open_page


@pytest.fixture
def same_bits():
    """Calls a function that returns tensors with several numbers of threads, and compares: what the
    first call returned."""
    import torch

    def compare(call, threads=(1, 2, 3, 4, 7, 16, 1)):
        before, results = torch.get_num_threads(), []
        try:
            for count in threads:
                torch.set_num_threads(count)
                results.append(call())
        finally:
            torch.set_num_threads(before)
        for count, result in zip(threads, results):
            differ = [
                i
                for i, (own, first) in enumerate(zip(result, results[0], strict=True))
                if not torch.equal(own, first)
            ]
            assert not differ, f"tensors {differ} have other bits with {count} threads"
        return results[0]

    return compare
