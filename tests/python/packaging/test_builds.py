"""A wheel may hold the library for several versions of torch."""

import subprocess
import sys
from pathlib import Path

import pytest

from nsimplex._builds import build_for

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("torch_version", "folder"),
    [
        ("2.13.0+cpu", "."),
        ("2.13.5", "."),
        ("2.12.1", "torch2.12"),
        ("2.9.0", "torch2.9"),
    ],
)
def test_the_build_of_the_same_minor_is_taken(tmp_path, torch_version, folder):
    for name in ("torch2.12", "torch2.9"):
        (tmp_path / name).mkdir()
    assert build_for(tmp_path, torch_version, "2.13.0+cpu") == tmp_path / folder


def test_another_torch_is_refused_in_one_line(tmp_path):
    for name in ("torch2.12", "torch2.9"):
        (tmp_path / name).mkdir()
    with pytest.raises(ImportError) as error:
        build_for(tmp_path, "2.14.1", "2.13.0")
    assert str(error.value) == (
        "nsimplex was built with torch 2.9, 2.12, 2.13, but torch 2.14.1 is installed: "
        "install torch 2.13, or build nsimplex again"
    )


def package_of(folder, torch_version):
    """A site-packages folder in which the program of the package says where it lies."""
    package = folder / "nsimplex"
    for prefix in (package, package / "torch2.12"):
        program = prefix / "bin" / "nsimplex"
        program.parent.mkdir(parents=True)
        program.write_text('#!/bin/sh\necho "$0 $1"\n')
        program.chmod(0o755)
    (package / "__init__.py").write_text("raise SystemExit('the package was imported')\n")
    (package / "_build_info.py").write_text('TORCH_VERSION = "2.13.0"\n')
    source = ROOT / "python" / "nsimplex" / "_builds.py"
    (package / "_builds.py").write_text(source.read_text())
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')\n")
    metadata = folder / f"torch-{torch_version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {torch_version}\n")
    return package


@pytest.mark.parametrize(
    ("torch_version", "prefix"), [("2.13.1", ""), ("2.12.0", "torch2.12/"), ("2.14.0", None)]
)
def test_the_console_script_runs_the_program_for_the_installed_torch(
    tmp_path, subprocess_env, torch_version, prefix
):
    package = package_of(tmp_path, torch_version)
    paths = f"{tmp_path}:{ROOT / 'python'}"
    run = subprocess.run(
        [sys.executable, "-S", "-c", "import nsimplex_command; nsimplex_command.main()", "info"],
        env={**subprocess_env, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    if prefix is None:
        assert run.returncode == 1
        assert run.stderr.startswith("nsimplex was built with torch 2.12, 2.13, but")
        assert run.stderr.count("\n") == 1
    else:
        assert (run.returncode, run.stdout) == (0, f"{package}/{prefix}bin/nsimplex info\n")
