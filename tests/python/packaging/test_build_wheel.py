"""tools/build_wheel puts the builds for several versions of torch into one wheel."""

import base64
import hashlib
import json
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
INFO = "nsimplex_attention-0.2.0.dist-info/"


def libtorch(folder, minor):
    """The folder of a LibTorch, as far as versions are read from it."""
    header = folder / "include" / "torch" / "headeronly" / "version.h"
    header.parent.mkdir(parents=True)
    major, minor = minor.split(".")
    header.write_text(f"#define TORCH_VERSION_MAJOR {major}\n#define TORCH_VERSION_MINOR {minor}\n")
    library = folder / "lib" / "libtorch_cpu.so"
    library.parent.mkdir()
    library.touch()
    return str(folder)


def wheel_of(folder, torch):
    """What pip leaves: a program, a library, a header and the metadata."""
    folder.mkdir()
    wheel = folder / "nsimplex_attention-0.2.0-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        program = zipfile.ZipInfo("nsimplex/bin/nsimplex")
        program.external_attr = 0o100755 << 16
        file.writestr(program, f"program for {torch}")
        file.writestr("nsimplex/lib/libnsimplex.so", f"library for {torch}")
        file.writestr("nsimplex/include/nsimplex/nn.h", "header")
        file.writestr("nsimplex/__init__.py", "")
        text = "Name: nsimplex-attention\nVersion: 0.2.0\n"
        text += "License-Expression: MIT\nLicense-File: LICENSE\n"
        text += "Requires-Dist: numpy\nRequires-Dist: torch==2.0.*\n"
        file.writestr(INFO + "METADATA", text)
        file.writestr(INFO + "licenses/LICENSE", "MIT")
        file.writestr(INFO + "RECORD", "")


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """The script's own functions, with pip and the checks of the wheel replaced: ``main`` leaves
    the wheel as ``wheel.whl``, and ``calls`` has what pip was asked for."""
    script = runpy.run_path(str(ROOT / "tools" / "build_wheel"))
    functions = script["main"].__globals__
    functions["calls"] = []

    def pip(command, env):
        words = [str(word) for word in command]
        settings = [word.removeprefix("--config-settings=") for word in words]
        defined = [each.split("=", 1)[1] for each in settings if each.startswith("cmake.define.")]
        folder = next(each for each in settings if each.startswith("build-dir="))
        chosen = [value for value in defined if value.startswith("/")]
        functions["calls"].append((chosen, folder, env))
        wheel_of(Path(command[command.index("--wheel-dir") + 1]), chosen[0])
        return subprocess.CompletedProcess(command, 0)

    def finish(wheel, folder):
        functions["name"] = Path(wheel).name
        Path(wheel).rename(tmp_path / "wheel.whl")

    functions["subprocess"] = type("Subprocess", (), {"run": staticmethod(pip)})
    functions["finish"] = finish
    functions["packages_inside"] = lambda tree: ["libeigen3-dev"]
    functions["add_sbom"] = lambda tree, packages, _: (tree / "sbom").write_text(" ".join(packages))
    functions["minor_of_torch"] = lambda chosen: (
        "2.13" if "TORCH_PYTHON" in chosen else script["minor_of_torch"](chosen)
    )
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("NSIMPLEX_LIBTORCH", "/of/the/shell")
    return functions


@pytest.mark.parametrize(
    ("minors", "label"),
    [
        (["2.11", "2.14"], "+torch2.11.torch2.13.torch2.14"),
        (["2.11", "2.12", "2.14"], ""),  # all that are supported
    ],
)
def test_a_wheel_holds_a_build_for_each_torch(tool, tmp_path, monkeypatch, minors, label):
    """pip replaces no torch that is supported, and the version says which ones the wheel serves."""
    others = [libtorch(tmp_path / name, name) for name in minors]
    monkeypatch.setattr(sys, "argv", ["build_wheel", *others])
    tool["main"]()
    with zipfile.ZipFile(tmp_path / "wheel.whl") as wheel:
        files = {name: wheel.read(name).decode() for name in wheel.namelist()}
        modes = {info.filename: info.external_attr >> 16 for info in wheel.infolist()}
    info = INFO.replace("0.2.0", f"0.2.0{label}")
    assert tool["name"] == f"nsimplex_attention-0.2.0{label}-py3-none-linux_x86_64.whl"
    folders = [f"torch{minor}/" for minor in minors]
    for prefix, torch in zip(["", *folders], [ROOT / ".venv/bin/python", *others]):
        assert files[f"nsimplex/{prefix}bin/nsimplex"] == f"program for {torch}"
        assert modes[f"nsimplex/{prefix}bin/nsimplex"] & 0o111 == 0o111
        assert files[f"nsimplex/{prefix}lib/libnsimplex.so"] == f"library for {torch}"
        assert files[f"nsimplex/{prefix}include/nsimplex/nn.h"] == "header"
    assert [name for name in files if name.endswith("__init__.py")] == ["nsimplex/__init__.py"]
    metadata = files[info + "METADATA"].splitlines()
    assert f"Version: 0.2.0{label}" in metadata
    requirements = [line for line in metadata if "Requires-Dist" in line]
    assert requirements == [
        "Requires-Dist: numpy",
        "Requires-Dist: torch>=2.11,<2.15",
    ]
    inside = [line for line in metadata if line.startswith("License-File")]
    assert inside == ["License-File: LICENSE", "License-File: fmt", "License-File: libeigen3-dev"]
    assert "Victor Zverovich" in files[info + "licenses/fmt"]
    assert "Permission is hereby granted, free of charge" in files[info + "licenses/fmt"]
    assert files["sbom"] == "libeigen3-dev"
    assert "Exhibit A - Source Code Form License Notice" in files[info + "licenses/libeigen3-dev"]
    lines = dict(line.split(",", 1) for line in files.pop(info + "RECORD").splitlines())
    assert lines.pop(info + "RECORD") == ","
    assert lines == {name: recorded(text) for name, text in files.items()}


def recorded(text):
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"sha256={digest},{len(text.encode())}"


def test_a_build_sees_one_torch_only(tool, tmp_path, monkeypatch):
    """Not the one of the shell, nor the one of an earlier run in the same folder."""
    other = libtorch(tmp_path / "other", "2.11")
    monkeypatch.setattr(sys, "argv", ["build_wheel", other])
    tool["main"]()
    assert [(chosen, folder) for chosen, folder, _ in tool["calls"]] == [
        ([str(ROOT / ".venv/bin/python")], "build-dir=build/wheel-2.13"),
        ([other], "build-dir=build/wheel-2.11"),
    ]
    first, second = (env for _, _, env in tool["calls"])
    assert "NSIMPLEX_LIBTORCH" not in first
    assert (second["NSIMPLEX_LIBTORCH"], "TORCH_PYTHON" in second) == (other, False)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (["2.11", "2.11.1"], "has torch 2.11, as another one of the list"),
        (["2.13"], "has torch 2.13, as another one of the list"),
        (["missing"], "expected an interpreter or the folder of a LibTorch, got '.*missing'"),
    ],
)
def test_a_wrong_list_is_refused_before_a_build(tool, tmp_path, monkeypatch, others, message):
    folders = [
        str(tmp_path / name)
        if name == "missing"
        else libtorch(tmp_path / name, ".".join(name.split(".")[:2]))
        for name in others
    ]
    monkeypatch.setattr(sys, "argv", ["build_wheel", *folders])
    with pytest.raises(SystemExit, match=message):
        tool["main"]()
    assert not tool["calls"]


def test_a_wheel_lists_what_is_compiled_in(tmp_path):
    """With name, version and licence, beside the list that auditwheel makes."""
    python = ROOT / ".venv-wheel" / "bin" / "python"
    if not list((ROOT / ".venv-wheel").glob("lib/*/site-packages/cyclonedx")):
        pytest.skip("make wheel makes .venv-wheel, which has the tool for this list")
    licences = runpy.run_path(str(ROOT / "tools" / "licences"))
    packages = sorted(licences["HEADER_ONLY"].values())
    wheel_of(tmp_path / "wheel", "torch")
    with zipfile.ZipFile(next((tmp_path / "wheel").glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path)
    fmt = licences["fmt_version"](licences["folder_of_torch"](sys.executable))
    subprocess.run(
        [python, ROOT / "tools" / "wheel_sbom.py", tmp_path, fmt, *packages], check=True, cwd=ROOT
    )
    written = json.loads((tmp_path / INFO / "sboms" / "nsimplex.cdx.json").read_text())
    components = {each["name"]: each for each in written["components"]}
    assert set(components) == {"fmt", *packages}
    assert all(each["version"] and each["licenses"] for each in components.values())
    assert components["fmt"]["version"] == fmt and fmt.count(".") == 2
    assert written["metadata"]["component"]["purl"] == "pkg:pypi/nsimplex-attention@0.2.0"
    assert len(written["dependencies"][-1]["dependsOn"]) == len(components)
