"""What the program and the library are as files of a process: search paths, hardening, names shared
with others."""

import itertools
import os
import re
import subprocess

import pytest
import tomllib
from test_library import tool


def files_of(folder):
    return [
        folder / "bin" / "nsimplex",
        folder / "lib" / "libnsimplex.so",
        folder / "lib" / "libnsimplex_cli.so",
        folder / "lib" / "nsimplex_ranks.so",
        folder / "lib" / "nsimplex_sentencepiece.so",
    ]


@pytest.fixture(params=["build", "prefix"])
def products(request):
    """The executable and the libraries, in the build folder and installed."""
    files = [path for path in files_of(request.getfixturevalue(request.param)) if path.exists()]
    assert len(files) >= 2
    return files


def test_search_paths_have_no_folder_that_the_user_is_in(products):
    for path in products:
        found = re.search(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", tool("readelf", "-d", path))
        entries = found[1].split(":") if found else []
        assert path.suffix == ".so" or entries
        for entry in entries:
            # An empty or relative entry is the current folder; only torch is found by its own
            # place.
            assert entry.startswith("$ORIGIN") or (
                entry.startswith("/") and entry.endswith("/torch/lib")
            ), (path, entries)


def test_a_library_in_the_current_folder_is_not_loaded(products, tmp_path):
    if subprocess.run(["cc", "--version"], capture_output=True).returncode:
        pytest.skip("no C compiler")
    (tmp_path / "evil.c").write_text(
        '#include <unistd.h>\n__attribute__((constructor)) void f(void) { write(2, "evil", 4); '
        "_exit(9); }\n"
    )
    for name in ("libz.so.1", "libhwy.so.1", "libnsimplex.so", "libsentencepiece.so.0"):
        subprocess.run(
            ["cc", "-shared", "-fPIC", "evil.c", "-o", name, f"-Wl,-soname,{name}"],
            cwd=tmp_path,
            check=True,
        )
    done = subprocess.run([products[0], "--version"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "" and done.stdout.startswith("nsimplex ")


def test_hardening(products):
    """Stack canaries, checked library calls, read-only tables of functions, shadow stacks, no
    executable stack."""
    for path in products:
        dynamic, segments = tool("readelf", "-dW", path), tool("readelf", "-lW", path)
        assert "BIND_NOW" in dynamic, path
        assert "GNU_RELRO" in segments, path
        assert not re.search(r"GNU_STACK.*RWE", segments), path
        symbols = tool("nm", "-D", path)
        assert "__stack_chk_fail" in symbols, path
        if "sentencepiece" not in path.name:  # it calls nothing that has a checked form
            assert re.search(r"__\w+_chk\b(?<!__stack_chk)", symbols), path
        if "X86-64" in tool("readelf", "-h", path):
            assert "SHSTK" in tool("readelf", "-n", path), path


def test_landing_pads_are_marked_where_the_start_files_have_them(products):
    """The linker marks what it makes of objects that all have them, as all of ours do."""
    names = ("crti.o", "crtn.o", "Scrt1.o")
    start = [tool("cc", f"-print-file-name={name}").strip() for name in names]
    if "X86-64" not in tool("readelf", "-h", products[0]):
        pytest.skip("landing pads of this kind are those of x86-64")
    expected = all("IBT" in tool("readelf", "-n", path) for path in start)
    for path in products:
        if "sentencepiece" not in path.name:  # the package's own objects are in it
            assert ("IBT" in tool("readelf", "-n", path)) == expected, path


def test_programs_are_position_independent(products):
    assert "Type:" in tool("readelf", "-h", products[0]) and "DYN" in tool(
        "readelf", "-h", products[0]
    )


def libraries_of(path):
    lines = tool("ldd", path).splitlines()
    return [line.split("=>")[1].split()[0] for line in lines if "=> /" in line]


def data_symbols(path):
    """Names of data that other libraries can see; weak and unique ones are meant to be shared."""
    symbols = set()
    for line in tool("nm", "-D", "--defined-only", path).splitlines():
        _, kind, name = line.split(maxsplit=2)
        if kind in "BDRGS":
            symbols.add(name)
    return symbols - {"__bss_start", "_edata", "_end"}  # marks that linkers leave


def test_no_two_libraries_of_the_process_define_the_same_data(build):
    """The loader gives both the same place, whatever their types are, and each spoils it for the
    other."""
    names = {
        path: data_symbols(path)
        for path in [str(build / "bin" / "nsimplex"), *libraries_of(build / "bin" / "nsimplex")]
    }
    assert any(
        "libc10" in path and "FLAGS_minloglevel" in symbols for path, symbols in names.items()
    )
    for one, other in itertools.combinations(names, 2):
        assert not names[one] & names[other], (one, other)


def test_a_file_that_may_not_grow_is_one_line(build, tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat on the mat\n" * 50)
    run = (
        f"{build}/bin/nsimplex lm train --text text.txt --out run --width 64 --layers 1 --heads 1 "
        "--steps 2 --context 8 --json"
    )
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 20; exec {run}"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, (
        done.returncode,
        done.stderr,
    )
    assert "File too large" in done.stderr
    assert not list((tmp_path / "run").glob("*.tmp"))


def test_an_option_that_is_no_utf8_is_refused_before_anything_is_made(build, tmp_path):
    name = os.fsdecode(b"b\xff.txt")
    (tmp_path / name).write_text("the cat sat on the mat\n" * 50)
    words = [
        "lm",
        "train",
        "--text",
        name,
        "--out",
        "run",
        "--width",
        "8",
        "--layers",
        "1",
        "--heads",
        "1",
        "--steps",
        "1",
    ]
    done = subprocess.run(
        [build / "bin" / "nsimplex", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2 and "UTF-8" in done.stderr and "b\\xff.txt" in done.stderr, (
        done.stderr
    )
    assert len(done.stderr.splitlines()) == 1 and not (tmp_path / "run").exists()


@pytest.mark.parametrize("group", ["build", "test", "docs", "wheel"])
def test_packages_to_install_have_hashes(root, group):
    """pip takes no other files then. Every package of the group is there."""
    text = (root / "tools" / f"requirements-{group}.txt").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if re.match(r"[^#-]", line)]
    own = tomllib.loads((root / "tools" / "pyproject.toml").read_text())["dependency-groups"][group]
    names = {re.match(r"[\w-]+", package)[0] for package in own}
    assert names <= {re.match(r"[\w-]+", line)[0] for line in lines}
    for line in lines:
        assert re.match(r"[\w.\[\]-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line
