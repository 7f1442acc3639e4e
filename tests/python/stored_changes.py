"""Changes of files that valid checksums do not show, and sweeps over readers of such files.

A change has a name for messages. Every sweep draws the same changes in every run."""

import copy
import json
import math
import os
import random
import re
import resource
import signal
import struct
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

FREE_BYTES = 1 << 29  # that a reader of a small file may take
MOST_SECONDS = 30  # of processor time, for one file

#: Values of JSON that stand for another one. The last are names and numbers of PyTorch and Python.
IMPOSTORS = {
    "null": None,
    "true": True,
    "false": False,
    "0": 0,
    "-1": -1,
    "1": 1,
    "2": 2,
    "2^31": 2**31,
    "2^40": 2**40,
    "2^63": 2**63,
    "2^64": 2**64,
    "2^70": 2**70,
    "a half": 0.5,
    "-0.5": -0.5,
    "1e308": 1e308,
    "nan": math.nan,
    "infinity": math.inf,
    "-infinity": -math.inf,
    "no text": "",
    "x": "x",
    "a text of 2": "2",
    "a line break": "a\nb",
    "a long text": "y" * 10_000,
    "nul": "a\0b",
    "a surrogate": "\ud800",
    "__class__": "__class__",
    "no list": [],
    "[null]": [None],
    "[1]": [1],
    "['x']": ["x"],
    "many": [1] * 5000,
    "no object": {},
    "an object": {"x": 1},
}


def impostors(own):
    """Names and values that a field may have instead of its own."""
    for name, value in IMPOSTORS.items():
        if json.dumps(value) != json.dumps(own):
            yield name, value
    if isinstance(own, (bool, int, float)):
        yield "its text", json.dumps(own)
        yield "in a list", [own]
    if isinstance(own, int) and not isinstance(own, bool):
        yield "its float", float(own)
        yield "one more", own + 1
        yield "twice", 2 * own
        yield "negative", -own or -2
    if isinstance(own, str):
        yield "in capitals", own.upper() if own != own.upper() else own.lower()
        yield "with a blank", own + " "
        yield "in a list", [own]
    if isinstance(own, list):
        yield "one fewer", own[:-1]
        yield "one twice", [*own, *own[:1]]
        yield "reversed", own[::-1]
    if isinstance(own, dict):
        yield "as pairs", [list(pair) for pair in own.items()]


def _places(tree, place=()):
    """The place of every value of a tree of JSON: names and numbers from the root."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree[:3])
    for name, value in pairs:
        yield (*place, name)
        if isinstance(value, (dict, list)):
            yield from _places(value, (*place, name))


def _at(tree, place):
    for name in place:
        tree = tree[name]
    return tree


def changed_json(tree):
    """Trees with one value changed, missing or added."""
    for place in _places(tree):
        own = _at(tree, place)
        where = "/".join(map(str, place))

        def change(act):
            other = copy.deepcopy(tree)
            act(_at(other, place[:-1]))
            return other

        for name, value in impostors(own):
            yield f"{where}={name}", change(lambda holder: holder.__setitem__(place[-1], value))
        yield f"no {where}", change(lambda holder: holder.pop(place[-1]))
    for place in ((), *(each for each in _places(tree) if isinstance(_at(tree, each), dict))):
        for name in ("__class__", "__dict__", "self", "forward", "x" * 1000):
            other = copy.deepcopy(tree)
            _at(other, place)[name] = 1
            yield f"{'/'.join(map(str, place))}+{name[:20]}", other


#: What no state of a file is.
BROKEN = ("", "[]", "null", "{}", "{", "1", '"x"', "[" * 100_000, '{"a":' * 100_000, "\x00", "NaN")


def changed_tensors(tensors, names=()):
    """Tensors by name with one of them gone or changed, or another one beside them.

    Args:
        names: of tensors that are added, beside those that no file has.
    """
    for name, own in tensors.items():
        yield f"no {name}", {key: each for key, each in tensors.items() if key != name}
        wrong = {
            "longer": torch.cat([own.reshape(-1)] * 2),
            "flat": own.reshape(-1)[:, None],
            "empty": own.reshape(-1)[:0],
            "scalar": torch.zeros((), dtype=own.dtype),
            "of one more axis": own[None],
            "turned": own.mT.contiguous()
            if own.dim() > 1
            else own[:-1]
            if own.dim()
            else own[None],
            "integers": own.double().nan_to_num().clamp(-9, 9).to(torch.int32),
            "flags": own != 0,
        }
        if own.is_floating_point():
            wrong |= {"nan": torch.full_like(own, math.nan), "double": own.double()}
            wrong |= {"infinite": torch.full_like(own, -math.inf), "half": own.half()}
        else:
            wrong["floats"] = own.float()
        for kind, tensor in wrong.items():
            if tensor.shape != own.shape or not tensor.equal(own):
                yield f"{name} {kind}", {**tensors, name: tensor}
    for name in ("__class__", "x", "", "a/../b", "n" * 5000, *names):
        yield f"+{name[:30]}", {**tensors, name: torch.zeros(2)}


def changed_header(data):
    """Safetensors files without checksums whose header tells something else of one tensor, of their
    metadata or of itself."""
    (length,) = struct.unpack("<Q", data[:8])
    header, rest = json.loads(data[8 : 8 + length]), data[8 + length :]

    def packed(fields):
        text = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
        return struct.pack("<Q", len(text)) + text + rest

    names = [name for name in header if name != "__metadata__"]
    for name in names:
        own = header[name]
        begin, end = own["data_offsets"]
        fields = {
            "shape": ([], [2**40], [2**62, 4], [0], [0, 2**62], [-1], [1.0], [True], "x", [1], None,
                      [*own["shape"], 1], own["shape"][::-1], [1] * 65, {}),
            "dtype": ("F64", "F16", "I32", "BOOL", "F4", "X", None, 1, ["F32"], "f32"),
            "data_offsets": ([0, 0], [5, 1], [0, 2**40], [2**63, 2**64], [-1, 4], [begin], None,
                             [begin + 1, end + 1], [begin, end - 1], [float(begin), end], "x"),
        }  # fmt: skip
        for field, values in fields.items():
            for value in values:
                if value != own[field]:
                    changed = {**header, name: {**own, field: value}}
                    yield f"{name} {field}={value!r}"[:80], packed(changed)
            left = {key: each for key, each in own.items() if key != field}
            yield f"{name} no {field}", packed({**header, name: left})
        renamed = {"other" if key == name else key: entry for key, entry in header.items()}
        yield f"{name} renamed", packed(renamed)
        yield f"no {name}", packed({key: each for key, each in header.items() if key != name})
        twice = json.dumps(header)[:-1] + f", {json.dumps(name)}: {json.dumps(own)}}}"
        yield f"{name} twice", packed(twice.encode())
        for value in (None, [], 1, "x", {}):
            yield f"{name}={value!r}", packed({**header, name: value})
    for other in names[1:]:  # two names for the same bytes
        yield f"{other} shared", packed({**header, other: header[names[0]]})
    for value in (None, [], 1, {"format": 1}, {"format": "x"}, {"format": None}):
        yield f"metadata={value!r}", packed({**header, "__metadata__": value})
    for text in BROKEN:
        yield f"header {text[:10]!r}", packed(text.encode())
    yield "header of bytes", packed(b"\xff")
    for size in (0, 7, 8, 100, length, len(data) - 1):
        yield f"cut at {size}", data[:size]
    yield "longer", data + b"\0"
    for size in (2**63, 2**64 - 1, len(data), 100_000_001):
        yield f"header of {size}", struct.pack("<Q", size) + data[8:]


def mutated(content, draw):
    """The bytes with one or a few of them changed, left out or repeated."""
    own = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 4])):
        if not own:
            break
        place = draw.randrange(len(own))
        kind = draw.randrange(4)
        if kind == 0:
            own[place] ^= 1 << draw.randrange(8)
        elif kind == 1:
            own[place] = draw.choice([0, 1, 127, 128, 255])
        elif kind == 2:
            del own[place : place + draw.choice([1, 2, 50])]
        else:
            own[place:place] = own[place : place + draw.choice([1, 8, 50])]
    return bytes(own) or b"\0"


def some(changes, count):
    """That many of the changes, the same in every run; None: all of them."""
    own = list(changes)
    if count is None or len(own) <= count:
        return own
    return random.Random(len(own)).sample(own, count)


@contextmanager
def limited(free=FREE_BYTES):
    """Room for as much memory as a reader of a small file may take, and bounded processor time."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    used = int(pages) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)

    def expired(*_):
        raise AssertionError(f"more than {MOST_SECONDS} s of processor time")

    handler = signal.signal(signal.SIGPROF, expired)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (used + free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)


_SAYS = re.compile(r"(cannot (read|use) |\[from_pretrained\])[^\n]+")
_FOREIGN = re.compile(r"Allocator|Error\b|Traceback|Exception|std::|bad_alloc|0x[0-9a-f]{6}")


def fault_of(said, path, names=()):
    """What is wrong with a message about a file, which should be one line that names it."""
    if not any(str(each) in said for each in (path, *names)):
        return "does not name the file"
    if not _SAYS.fullmatch(said):
        return "begins with other words, or has several lines"
    if _FOREIGN.search(said):
        return "has words of another program"
    return "is too long" if len(said) > 500 + len(str(path)) else None


def sweep(changes, write, read, path, taken=lambda what, change, answer: None):
    """Reads every change of a file. Each is refused in one line, or taken for what it says.

    Args:
        changes: names and changes.
        write: puts a change into the file.
        path: of the file, which messages name.
        taken: what is wrong with a change that was read, if anything.

    Returns:
        How many were read and how many refused.
    """
    faults, refused, count = [], 0, 0
    for what, change in changes:
        count += 1
        write(change)
        try:
            with limited():
                answer = read()
        except ValueError as error:
            refused += 1
            wrong = fault_of(str(error), path)
            if wrong:
                faults.append(f"{what}: {wrong}: {str(error)[:300]!r}")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            faults.append(f"{what}: {type(error).__name__}: {str(error)[:300]!r}")
        else:
            wrong = taken(what, change, answer)
            if wrong:
                faults.append(f"{what}: {wrong}")
    assert not faults, "\n".join([f"{len(faults)} of {count}", *faults])
    return count, refused


class ForkedCommands:
    """Runs commands of `nsimplex` in forks of one process, with bounds on memory and time."""

    def __init__(self, build):
        self._program = Path(build) / "bin" / "forked_commands"

    def __enter__(self):
        if not self._program.exists():
            pytest.skip("the C++ tests are not built")
        bounds = [str(FREE_BYTES >> 20), str(MOST_SECONDS)]
        self._process = subprocess.Popen(
            [self._program, *bounds],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        assert self._process.wait() == 0
        self._process.stdout.close()

    def run(self, words):
        """Exit code, signal, standard output and error of a command."""
        self._process.stdin.write(json.dumps([str(word) for word in words]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def read(self, words):
        """The output of a command that succeeds.

        Raises:
            ValueError: bad input, as the line on standard error says.
            AssertionError: it ended in another way.
        """
        done = self.run(words)
        lines = [line for line in done["err"].splitlines() if not _NOTE.match(line)]
        if done["code"] == 2 and len(lines) == 1:
            raise ValueError(lines[0].removeprefix("nsimplex: "))
        assert done["code"] == 0, (done["code"], done["signal"], lines[-5:])
        return done["out"]


#: Progress, and how a text was read; no error.
_NOTE = re.compile(r"(train|step) |nsimplex: (\S+: read \d+ |warning: )|\s*$")
