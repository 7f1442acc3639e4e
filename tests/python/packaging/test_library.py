"""What libnsimplex.so asks for and what it shows."""

import re
import subprocess

import pytest

NEEDED = {
    "libtorch.so", "libtorch_cpu.so", "libc10.so", "libhwy.so.1", "libz.so.1",
    "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2",
}  # fmt: skip


@pytest.fixture(scope="module")
def library(build):
    return build / "lib" / "libnsimplex.so"


def tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_needs_only_torch_highway_zlib_and_the_runtime(library):
    lines = tool("readelf", "-d", library).splitlines()
    needed = {line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line}
    assert {"libtorch_cpu.so", "libc10.so"} <= needed
    assert needed <= NEEDED


def test_exports_what_the_public_headers_declare(root, library):
    """Strong symbols are ours to give; weak ones are templates and inlines of LibTorch."""
    headers = "".join(path.read_text() for path in (root / "include/nsimplex").glob("*.h"))
    declared = set(re.findall(r"\w+", headers))
    strong = [
        line.split(maxsplit=2)[2]
        for line in tool("nm", "-D", "-C", "--defined-only", library).splitlines()
        if line.split(maxsplit=2)[1] in "TDBR"
    ]
    assert any(name.startswith("nsimplex::attention(") for name in strong)
    private = [
        name
        for name in strong
        if not set(re.findall(r"\w+", re.sub(r"[(<[].*", "", name.partition("nsimplex::")[2])))
        <= declared
        or "nsimplex::" not in name
    ]
    assert private == []


def test_private_code_exports_nothing(root):
    marked = [
        str(path.relative_to(root))
        for folder in ("src", "lab")
        for path in (root / folder).rglob("*.*")
        if "NSIMPLEX_API" in path.read_text()
    ]
    assert marked == []
