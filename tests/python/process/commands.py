"""Every command that writes files, on inputs of a few lines, and what must hold of the files that
it leaves."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import subprocess
import xml.etree.ElementTree as xml
from pathlib import Path

import numpy
import tomllib

from nsimplex.molecules import ATOM_FEATURES, BOND_FEATURES

#: Options of each command beside --out; names in capitals are files of ``make_inputs``. They run
#: for seconds or longer, so that a signal meets them at work.
COMMANDS = {
    "analyze curvature": "GRAPHS",
    "analyze model": "MODEL",
    "bench attention": "--seq 256 --repeats 2000",
    "bench sparse": "--repeats 2000",
    "causal check": "TABLE --graph EDGES --permutations 100000",
    "causal effect": "TABLE --graph EDGES --effect c",
    "causal task classify": "TABLE --labels LABELS",
    "causal task cluster": "TABLE --labels LABELS",
    "causal embed": "EDGES --steps 200000",
    "causal encode": "EMBEDDING",
    "causal fit": "TABLE --estimator paper",
    "causal task perturb": "",
    "causal predict": "FEATURES TABLE",
    "causal task regress": "TABLE",
    "causal simulate": "--nodes 200 --rows 5000 --mechanism mlp",
    "graph expressivity": "--order 2 --control 100000",
    "graph predict": "GRAPHRUN LINKS",
    "graph train": "LINKS --task edge --target sign --epochs 100000 --patience 0 --width 8",
    "lab attenuation": "",
    "lab chains": "",
    "lab complexity": "",
    "lab delaunay": "",
    "lab graph-scaling": "",
    "lab hyperedges": "--train TUPLES --test TUPLES",
    "lab jets": "",
    "lab lipschitz": "",
    "lab lm-compare": "--text TEXT",
    "lab lm-scaling": "--text TEXT",
    "lab match2": "",
    "lab match3": "",
    "lab match4": "",
    "lab molecules": "MOLECULES",
    "lab robustness": "",
    "lab sensitivity": "",
    "lab smoothing": "",
    "lab synthetic": "",
    "lab transfer": "--text TEXT",
    "lm train": "--text TEXT --width 16 --layers 1 --context 32 --batch 2 --checkpoint-every 3 "
    "--log-every 1 --eval-every 3",
}
QUIET = ("--threads", "1", "--json")


#: Commands that write no run directory.
OTHERS = (
    "analyze attention",
    "completion",
    "info",
    "lab pays",
    "lm eval",
    "lm sample",
    "man",
    "report",
    "verify",
)


def all_commands(executable):
    """Commands as the help lists them: by themselves, or in groups."""

    def listed(*words):
        text = subprocess.run(
            [executable, *words, "--help"], capture_output=True, text=True, check=True
        ).stdout
        return re.findall(r"^  (\S+)  ", text.partition("\nCommands:\n")[2], re.MULTILINE)

    def below(*words):
        group = listed(*words)
        for name in group:
            yield from below(*words, name)
        if not group:
            yield " ".join(words)

    for name in [*listed(), "lab"]:
        yield from below(name)


#: How a text was read and what a command warns of, which are no errors.
_NOTE = re.compile(r"^nsimplex: (\S+: read \d+ |warning: )")


def errors_in(text):
    """Lines of standard error but notes about how texts were read, and warnings."""
    return [line for line in text.splitlines() if line and not _NOTE.search(line)]


def write_molecules(path, count=60):
    """Chains of three atoms, as nsimplex.molecules writes them without RDKit's knowledge."""
    numbers = numpy.arange(count)
    numpy.savez(
        path,
        atoms=numpy.ones((3 * count, len(ATOM_FEATURES)), numpy.uint8),
        atom_offsets=numpy.arange(count + 1) * 3,
        atom_categories=numpy.array(list(ATOM_FEATURES.values())),
        bonds=numpy.tile(numpy.array([[0, 1], [1, 2]], numpy.int32), (count, 1)),
        bond_types=numpy.zeros((2 * count, len(BOND_FEATURES)), numpy.uint8),
        bond_offsets=numpy.arange(count + 1) * 2,
        bond_categories=numpy.array(list(BOND_FEATURES.values())),
        targets=numbers / count,
        fingerprints=numpy.zeros((count, 8), numpy.uint8),
        lines=numbers,
    )


#: Files that commands make of others, in the folder that they are told.
_MADE = {"EMBEDDING": "embedding.safetensors", "FEATURES": "model-cape-1-1.safetensors"}


def make_inputs(folder, executable):
    """The files that commands read, by the name that COMMANDS has for them."""
    rng, files = random.Random(0), {}

    def write(name, file, lines):
        files[name] = str(folder / file)
        Path(files[name]).write_text("".join(f"{line}\n" for line in lines))

    write(
        "TEXT",
        "text.txt",
        ("".join(rng.choice("abcdefgh ") for _ in range(60)) for _ in range(400)),
    )
    rows = [",".join(f"{rng.gauss(0, 1):.4f}" for _ in range(4)) for _ in range(200)]
    write("TABLE", "table.csv", ["a,b,c,d", *rows])
    write("LABELS", "labels.csv", ["label", *(rng.choice("xy") for _ in range(200))])
    write("EDGES", "edges.tsv", ["a\tb", "b\tc", "a\tc", "c\td"])
    write("GRAPHS", "graphs.g6", ["D?{", "Dqc"] * 500)
    pairs = [(i, j) for j in range(9) for i in range(j)]
    write("LINKS", "links.csv", ["a,b,sign", *(f"{i},{j},{(i + j) % 2}" for i, j in pairs)])
    write(
        "TUPLES",
        "tuples.csv",
        (f"{rng.randrange(9)},{rng.randrange(9, 20)},{rng.randrange(20, 30)}" for _ in range(80)),
    )
    files["MOLECULES"] = str(folder / "molecules.npz")
    write_molecules(files["MOLECULES"])
    for name, words in (
        ("EMBEDDING", ["causal", "embed", files["EDGES"], "--steps", "5"]),
        (
            "FEATURES",
            [
                "causal",
                "classify",
                files["TABLE"],
                "--labels",
                files["LABELS"],
                "--encodings",
                "cape",
                "--splits",
                "1",
                "--seeds",
                "1",
                "--epochs",
                "1",
                "--restore-epochs",
                "1",
                "--embed-steps",
                "5",
                "--save-models",
            ],
        ),
        (
            "GRAPHRUN",
            [
                "graph",
                "train",
                files["LINKS"],
                *"--task edge --target sign --model gcn --width 8 --epochs 1".split(),
            ],
        ),
        (
            "MODEL",
            [
                "lm",
                "train",
                "--text",
                files["TEXT"],
                "--width",
                "16",
                "--layers",
                "1",
                "--context",
                "32",
                "--steps",
                "2",
            ],
        ),
    ):
        made = folder / name.lower()
        subprocess.run([executable, *words, *QUIET, "--out", made], check=True, capture_output=True)
        files[name] = str(made / _MADE[name]) if name in _MADE else str(made)
    return files


def line_of(executable, command, files, out):
    words = [files.get(word, word) for word in COMMANDS[command].split()]
    return [str(executable), *command.split(), *words, *QUIET, "--out", str(out)]


def _whole_tensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    assert len(data) == 8 + size + max(ends, default=0)


def _whole_table(path, delimiter):
    text = path.read_text()
    assert not text or text.endswith("\n")
    assert len({len(row) for row in csv.reader(text.splitlines(), delimiter=delimiter)}) <= 1


def _whole_lines(path):
    text = path.read_text()
    assert not text or text.endswith("\n")
    for line in text.splitlines():
        assert isinstance(json.loads(line), dict)


_WHOLE = {
    ".safetensors": _whole_tensors,
    ".jsonl": _whole_lines,
    ".json": lambda path: json.loads(path.read_text()),
    ".toml": lambda path: tomllib.loads(path.read_text()),
    ".csv": lambda path: _whole_table(path, ","),
    ".tsv": lambda path: _whole_table(path, "\t"),
    ".graphml": lambda path: xml.parse(path),
    ".dot": lambda path: _ends(path, "}\n"),
    ".gml": lambda path: _ends(path, "]\n"),
    ".html": lambda path: _ends(path, "</html>\n"),
    ".npy": lambda path: _whole_array(path),
}


def _ends(path, text):
    assert path.read_text().endswith(text)


def _whole_array(path):
    numpy.load(path, allow_pickle=False)


def left_over(path):
    """Whether a file is one that a writer which was killed could not remove; nobody reads those."""
    return path.name.endswith((".tmp", ".partial"))


def assert_whole(folder, *, killed=False):
    """Every file below a folder is one that its readers take, whatever happened while it was
    written."""
    for path in sorted(Path(folder).rglob("*")):
        if path.is_dir() or path.name.startswith(".lock") or path.suffix == ".lock":
            continue
        if left_over(path):
            assert killed, f"{path} is left over"
            continue
        assert path.suffix in _WHOLE, f"a file of an unknown kind, {path}"
        try:
            _WHOLE[path.suffix](path)
        except Exception as error:
            raise AssertionError(f"{path} is not whole: {error!r}") from error


def processes_of(session):
    """Processes of a session that still run."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry))
    return found
