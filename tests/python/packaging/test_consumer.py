"""An installed nsimplex serves a C++ project that knows only the prefix."""

import os
import re
import subprocess
import sys

import pytest
import torch

import nsimplex

CONFIG = 'message(FATAL_ERROR "TorchConfig.cmake was used")\n'


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def consumer(root, prefix, tmp_path_factory):
    """The consumer, built where find_package(Torch) would fail: nothing of ours may call it."""
    trap = tmp_path_factory.mktemp("trap")
    (trap / "TorchConfig.cmake").write_text(CONFIG)
    folder = tmp_path_factory.mktemp("consumer")
    run(
        "cmake",
        "-S",
        root / "tests" / "consumer",
        "-B",
        folder,
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DTorch_DIR={trap}",
        f"-DTORCH_PYTHON={sys.executable}",
    )
    run("cmake", "--build", folder)
    return folder


def test_installed_tree(prefix):
    for name in (
        "lib/libnsimplex.so",
        "lib/libhwy.so.1",
        "include/nsimplex/attention.h",
        "lib/cmake/nsimplex/nsimplexConfig.cmake",
        "bin/nsimplex",
    ):
        assert (prefix / name).is_file(), name
    sections = run("readelf", "-d", prefix / "lib" / "libnsimplex.so")
    assert re.search(r"RUNPATH.*\[\$ORIGIN[:\]]", sections)


@pytest.mark.parametrize("program", ["call", "by_name", "catch"])
def test_consumer_runs(consumer, program):
    run(consumer / program, env={**os.environ, "LD_LIBRARY_PATH": ""})


def test_a_compiled_layer_runs_without_python(consumer, tmp_path):
    """As docs/tour.md shows."""
    torch.manual_seed(0)
    layer = nsimplex.nn.SimplicialAttention(64, heads=4, order=2, causal=True, window=(8, 32))
    tokens = torch.export.Dim("tokens", min=2, max=4096)
    example = torch.randn(2, 48, 64)
    program = torch.export.export(layer.eval(), (example,), dynamic_shapes=({1: tokens},))
    file = tmp_path / "layer.pt2"
    torch._inductor.aoti_compile_and_package(program, package_path=str(file))
    printed = run(consumer / "package", file, env={**os.environ, "LD_LIBRARY_PATH": ""})
    own = layer(torch.linspace(-1, 1, 2 * 100 * 64).view(2, 100, 64)).square().sum().item()
    assert float(printed) == pytest.approx(own, rel=1e-6)


@pytest.mark.parametrize("folder", ["nsimplex", "nsimplex/torch2.13"])
def test_the_torch_beside_the_package_is_found(root, prefix, tmp_path, folder):
    """As in an environment that is not the one of python3: a wheel has the builds for some versions
    of torch in folders of their own."""
    package = tmp_path / "packages" / folder
    package.parent.mkdir(parents=True, exist_ok=True)
    package.symlink_to(prefix)
    beside = tmp_path / "packages" / "torch"
    beside.symlink_to(os.path.dirname(torch.__file__))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("python3", "python"):  # without torch
        (programs / name).write_text("#!/bin/sh\nexit 1\n")
        (programs / name).chmod(0o755)
    names = ("TORCH_PYTHON", "NSIMPLEX_LIBTORCH")
    free = {name: value for name, value in os.environ.items() if name not in names}
    build = tmp_path / "build"
    run(
        *("cmake", "-S", root / "tests" / "consumer", "-B", build),
        f"-DCMAKE_PREFIX_PATH={package}",
        env={**free, "PATH": f"{programs}:{free['PATH']}"},
    )
    assert f"NSIMPLEX_LIBTORCH:PATH={beside}" in (build / "CMakeCache.txt").read_text()


def test_other_torch_minor_is_refused(root, prefix, tmp_path):
    """A torch of another minor version is named at configure time, not by undefined symbols."""
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nprintf '/opt/torch;2.12.1;none;1'\n")
    fake.chmod(0o755)
    result = subprocess.run(
        [
            "cmake",
            "-S",
            root / "tests" / "consumer",
            "-B",
            tmp_path / "build",
            f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DTORCH_PYTHON={fake}",
        ],
        capture_output=True,
        text=True,
    )
    assert result.returncode != 0
    assert "has torch 2.12.1" in " ".join(result.stderr.split())


def configured(root, prefix, folder, *options, **env):
    return subprocess.run(
        [
            "cmake",
            "-S",
            root / "tests" / "consumer",
            "-B",
            folder,
            f"-DCMAKE_PREFIX_PATH={prefix}",
            *options,
        ],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
    )


def test_an_interpreter_without_torch_can_be_replaced(root, prefix, tmp_path):
    """What a failed configure used is not remembered: the next one reads TORCH_PYTHON again."""
    for first in ({"TORCH_PYTHON": "/bin/false"}, {}):
        folder = tmp_path / f"build{len(first)}"
        options = [] if first else ["-DTORCH_PYTHON=/bin/false"]
        failed = configured(root, prefix, folder, *options, **first)
        assert failed.returncode != 0 and "Set TORCH_PYTHON=" in " ".join(failed.stderr.split())
        repaired = configured(root, prefix, folder, TORCH_PYTHON=sys.executable)
        assert repaired.returncode == 0, repaired.stderr


def test_a_libtorch_without_python_serves(root, prefix, tmp_path):
    """The folder of a torch package has the layout of LibTorch's zip."""
    libtorch = os.path.dirname(torch.__file__)
    done = configured(
        root,
        prefix,
        tmp_path / "build",
        f"-DNSIMPLEX_LIBTORCH={libtorch}",
        TORCH_PYTHON="/bin/false",
    )
    assert done.returncode == 0, done.stderr
    run("cmake", "--build", tmp_path / "build", "--target", "call")
    run(tmp_path / "build" / "call", env={**os.environ, "LD_LIBRARY_PATH": ""})
    wrong = configured(root, prefix, tmp_path / "wrong", f"-DNSIMPLEX_LIBTORCH={tmp_path}")
    assert wrong.returncode != 0
    assert "NSIMPLEX_LIBTORCH: expected a folder" in " ".join(wrong.stderr.split())
