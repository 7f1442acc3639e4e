"""Makes the folder that a machine with a GPU needs: package, program, libraries, tests, tools."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 64 << 20
#: What the parts read, besides the package.
TESTS = ["attention", "packaging", "gpu", "nn", "transformers"]
FOLDERS = [*(f"tests/python/{name}" for name in TESTS), "docs/attention", "tools/gpu"]
FILES = ["tests/python/conftest.py", "bench/cases/attention.txt", "tools/gpu_day", "pyproject.toml"]
#: Libraries that every Linux with Python and torch has.
PRESENT = re.compile(r"(ld-.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|z|c10|torch.*))\.so.*")


def ignored(_, names: list[str]) -> list[str]:
    return [n for n in names if n in ("__pycache__", "lib", "bin") or n.endswith(".pyc")]


def missing_libraries(binary: Path) -> list[Path]:
    """The libraries that the binary itself names and the other machine may lack."""
    named = re.findall(r"NEEDED +(\S+)", output_of("objdump", "-p", binary))
    found = dict(re.findall(r"^\s*(\S+) => (/\S+)", output_of("ldd", binary), re.MULTILINE))
    return [
        Path(found[name])
        for name in named
        if not PRESENT.fullmatch(name) and not name.startswith("libnsimplex")
    ]


def output_of(*words) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def newest_glibc(binary: Path) -> str:
    text = output_of("objdump", "-T", binary)
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)\)", text)]
    return ".".join(map(str, max(versions, default=(0,))))


def prepare(build: Path, into: Path) -> int:
    library, program = build / "lib" / "libnsimplex.so", build / "bin" / "nsimplex"
    commands = build / "lib" / "libnsimplex_cli.so"
    ranks = build / "lib" / "nsimplex_ranks.so"  # the program for python -m nsimplex.lm
    if not library.exists():
        print(f"gpu_day: no {library}; build the library for the torch of that machine first:")
        print(f"  cmake --preset release -B {build} -DNSIMPLEX_TESTS=OFF -DNSIMPLEX_BENCH=OFF \\")
        print("    -DNSIMPLEX_LIBTORCH=FOLDER_OF_THAT_TORCH")
        print(f"  cmake --build {build}")
        return 1
    shutil.rmtree(into, ignore_errors=True)
    package = into / "python" / "nsimplex"
    shutil.copytree(ROOT / "python" / "nsimplex", package, ignore=ignored)
    for folder in FOLDERS:
        if (ROOT / folder).exists():
            shutil.copytree(ROOT / folder, into / folder, ignore=ignored)
    for file in FILES:
        (into / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, into / file)
    info = build / "python" / "nsimplex" / "_build_info.py"
    shutil.copyfile(info, package / "_build_info.py")

    # Stripped: symbols for debuggers are most of the size.
    for source, folder in ((library, "lib"), (commands, "lib"), (ranks, "lib"), (program, "bin")):
        (package / folder).mkdir(exist_ok=True)
        if source.exists():
            target = package / folder / source.name
            subprocess.run(["strip", "-o", target, source], check=True)
            target.chmod(0o755)
            print(f"{target.name}: {target.stat().st_size >> 20} MiB, glibc {newest_glibc(target)}")
    for binary in filter(Path.exists, (library, commands)):
        for path in missing_libraries(binary):
            shutil.copyfile(path.resolve(), package / "lib" / path.name)
            print(f"{binary.name} needs {path.name}, which comes along")
    size = sum(path.stat().st_size for path in into.rglob("*") if path.is_file())
    print(f"{into}: {size / (1 << 20):.1f} MiB, torch {info.read_text().split(chr(34))[-2]}")
    if size > LARGEST:
        print(f"gpu_day: more than {LARGEST >> 20} MiB", file=sys.stderr)
        return 1
    return 0
