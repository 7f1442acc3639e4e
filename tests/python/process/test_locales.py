"""Numbers in files do not depend on the language of the terminal."""

import os
import shutil
import subprocess
import sys

import pytest
from commands import QUIET


def test_a_locale_with_decimal_commas_changes_no_number(executable, tmp_path):
    """Neither in files that are written nor in tables that are read."""
    compiler = shutil.which("localedef")
    if compiler is None:
        pytest.skip("no localedef to make a locale with")
    made = [compiler, "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8"]
    if subprocess.run(made, capture_output=True).returncode:
        pytest.skip("no source of the locale de_DE")
    german = {**os.environ, "LOCPATH": str(tmp_path), "LC_ALL": "de_DE.UTF-8"}
    words = ["causal", "simulate", "--nodes", "4", "--rows", "40", "--seed", "3", *QUIET]
    for name, environment in (("plain", os.environ), ("german", german)):
        line = [executable, *words, "--out", tmp_path / name]
        subprocess.run(line, check=True, capture_output=True, env=environment)
    for name in ("table.csv", "truth.graphml", "truth.csv"):
        assert (tmp_path / "german" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
    program = (
        "import locale, sys\n"
        "locale.setlocale(locale.LC_ALL, '')\n"
        "assert locale.localeconv()['decimal_point'] == ','\n"
        "import nsimplex\n"
        "print(*nsimplex.read_table(sys.argv[1]).values[0].tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "plain" / "table.csv"],
        capture_output=True,
        text=True,
        env={**german, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    first = (tmp_path / "plain" / "table.csv").read_text().splitlines()[1]
    assert [*map(float, done.stdout.split())] == [*map(float, first.split(","))]
