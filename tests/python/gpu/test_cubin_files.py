"""Files of compiled GPU kernels: what is not one of them is refused with one line."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

ARGUMENT = {"name": "q", "type": "*bf16", "divisible": 16}
KERNEL = {
    "kernel": "attention_forward_kernel",
    "code": "code0",
    "function": "attention_forward_kernel",
    "arch": 90,
    "constants": {"ORDER": 1, "PRECISION": "tf32x3", "TABLE": False},
    "arguments": [ARGUMENT, {"name": "queries", "type": "i32", "divisible": 1}],
    "warps": 8,
    "shared": 70000,
    "scratch": 0,
}
BUFFER = {"new": "buffer.0", "sizes": [0, 0], "strides": [2, 1], "type": "float32", "zero": False}
VIEW = {"tensor": "buffer.0", "sizes": [0, 0], "strides": [2, 1]}
LAUNCH = {"launch": 0, "grid": [0, 1, 1], "arguments": ["query", 0]}
PROGRAM = {
    "pass": "forward",
    "arch": 90,
    "type": "bf16",
    "order": 1,
    "grad_lse": False,
    "conditions": [["<", 0, 1]],
    "steps": [BUFFER, {"copy": [VIEW, VIEW | {"tensor": "keys.0"}]}, LAUNCH],
    "results": [VIEW, VIEW],
}
INDEX = {
    "format": "nsimplex cubins 1",
    "compiler": "none",
    "formulas": ["query.size.2", 1, ["*", 0, 1], "left.0", "logit_scale", ["bits", 2], 0.5],
    "programs": [PROGRAM],
    "kernels": [KERNEL],
}


@pytest.fixture(scope="module")
def count(build):
    """How many kernels a file has."""
    library = build / "lib" / "libnsimplex_cubins_probe.so"
    if not library.exists():
        pytest.skip(f"{library.name} is not built")
    torch.ops.load_library(str(library))
    return torch.ops.nsimplex_cubins_probe.count


def write(path, index, code=b"code0\0"):
    text = index if isinstance(index, bytes) else json.dumps(index).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("index.json", text)
        archive.writestr("code0", code)
    return str(path)


def refusal(count, path):
    with pytest.raises(RuntimeError) as error:
        count(str(path))
    (line,) = str(error.value).splitlines()
    return line


def test_a_file_is_read(tmp_path, count):
    assert count(write(tmp_path / "one.zip", INDEX)) == 1
    empty = INDEX | {"kernels": [], "programs": []}
    assert count(write(tmp_path / "none.zip", empty)) == 0


def test_missing(tmp_path, count):
    assert "No such file" in refusal(count, tmp_path / "absent.zip")


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (b"", "index.json is damaged or not one of tools/build_cubins"),
        (b"[1, 2]", "index.json is damaged or not one of tools/build_cubins"),
        (b"\xff" * 40, "index.json is damaged or not one of tools/build_cubins"),
        (b"[" * 100000, "index.json is damaged or not one of tools/build_cubins"),
        ({"format": "nsimplex cubins 1"}, "index.json is damaged or not one of tools/build_cubins"),
        (INDEX | {"format": "nsimplex cubins 2"}, "expected the format 'nsimplex cubins 1'"),
        (INDEX | {"kernels": [KERNEL | {"warps": 0}]}, "a kernel has no possible size"),
        (INDEX | {"kernels": [KERNEL | {"shared": -1}]}, "a kernel has no possible size"),
        (INDEX | {"kernels": [KERNEL | {"scratch": 1 << 40}]}, "a kernel has no possible size"),
        (INDEX | {"kernels": [KERNEL | {"code": "code1"}]}, 'expected an entry "code1"'),
        (
            INDEX | {"kernels": [KERNEL | {"arguments": [ARGUMENT | {"type": "fp8"}]}]},
            'an argument has the type "fp8"',
        ),
        (
            INDEX | {"kernels": [KERNEL | {"arguments": [ARGUMENT | {"divisible": 0}]}]},
            "an argument is divisible by no power of two",
        ),
    ],
)
def test_an_index_that_is_none(tmp_path, count, index, expected):
    path = write(tmp_path / "bad.zip", index)
    line = refusal(count, path)
    assert line.startswith(f"cannot read {path}: ") and expected in line


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"pass": "sideways"}, 'an unknown word "sideways"'),
        ({"order": 9}, "an order that cannot be"),
        ({"type": "int32"}, None),  # a type that no call has
        ({"conditions": [["~", 0, 1]]}, 'an unknown word "~"'),
        ({"conditions": [["<", 0, 7]]}, "a place outside a list"),
        ({"conditions": [["<", 0, -1]]}, "a place outside a list"),
        ({"results": [VIEW]}, "another number of results"),
        ({"results": [VIEW, VIEW | {"tensor": "buffer.1"}]}, 'an unknown buffer "buffer.1"'),
        ({"results": [VIEW, VIEW | {"sizes": []}]}, "sizes without strides"),
        ({"steps": [BUFFER, LAUNCH | {"launch": 1}]}, "a place outside a list"),
        ({"steps": [BUFFER, LAUNCH | {"arguments": [0]}]}, "another number of arguments"),
        ({"steps": [BUFFER, LAUNCH | {"arguments": ["keys.1", 0]}]}, "lack"),
        ({"steps": [BUFFER, LAUNCH | {"arguments": ["lse", 0]}]}, "lack"),
        ({"steps": [BUFFER, LAUNCH | {"arguments": ["grid", 0]}]}, 'an unknown word "grid"'),
        ({"steps": [BUFFER, {"copy": [VIEW | {"tensor": "query"}, VIEW]}]}, "onto an input"),
        ({"arch": 80}, "a kernel for another device"),
    ],
)
def test_a_program_that_is_none(tmp_path, count, change, expected):
    path = write(tmp_path / "bad.zip", INDEX | {"programs": [PROGRAM | change]})
    if expected is None:
        assert count(path) == 1
    else:
        line = refusal(count, path)
        assert line.startswith(f"cannot read {path}: index.json: ") and expected in line


@pytest.mark.parametrize(
    "formula",
    [
        "query.size.4",
        "query",
        "lse.size.3",
        "keys.9.size.0",
        "left.x",
        "width",
        ["/", 0, 1],
        ["+", 0],
    ]
    + [["+", 0, 7], ["neg"], [], None, {}],
)
def test_a_formula_that_is_none(tmp_path, count, formula):
    path = write(tmp_path / "bad.zip", INDEX | {"formulas": [*INDEX["formulas"], formula]})
    assert refusal(count, path).startswith(f"cannot read {path}: ")


def test_another_archive(tmp_path, count):
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("something.npy", b"1234")
    assert "expected a file of tools/build_cubins, which has index.json" in refusal(count, path)


def test_every_truncation(tmp_path, count):
    whole = (tmp_path / "one.zip", tmp_path / "short.zip")
    write(whole[0], INDEX)
    data = whole[0].read_bytes()
    for size in range(0, len(data), 7):
        whole[1].write_bytes(data[:size])
        assert str(whole[1]) in refusal(count, whole[1])


def test_a_changed_byte_of_the_index_is_noticed(tmp_path, count):
    path = tmp_path / "one.zip"
    write(path, INDEX)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        begin = archive.getinfo("index.json").header_offset + 30 + len("index.json")
        size = archive.getinfo("index.json").compress_size
    for place in range(begin, begin + size, 5):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        assert "damaged" in refusal(count, path)


CALLS = """
import sys, torch
import nsimplex
import cubin_launches as cubins
folder, probe, path = sys.argv[1:]
driver = cubins.FakeDriver(folder)
torch.ops.load_library(probe)
entry = {"arguments": [{"type": "*bf16"}, {"type": "i32"}]}
driver.expect({"code0": entry})

def call(length, offset=0):
    whole = torch.zeros(8 * length + offset, dtype=torch.bfloat16)
    query = whole[offset:].view(1, 1, length, 8)
    try:
        torch.ops.nsimplex_cubins_probe.forward(path, query, [query], [query], [-1, 0], [1.0, 1.0])
        return "done"
    except RuntimeError as error:
        return str(error)

print(call(3))
made = driver.made[-1]
print(made.grid, made.threads, made.shared, made.values[1])
print(call(4000))
print(call(3, offset=1))
driver.set_capability(100)
print(call(3))
driver.set_capability(90)
driver.expect({})
print(call(3))
"""


def test_calls_that_the_file_does_not_serve(tmp_path, build, subprocess_env):
    """The reason is what the operator warns of before it takes the composite."""
    probe = build / "lib" / "libnsimplex_cubins_probe.so"
    if not probe.exists():
        pytest.skip(f"{probe.name} is not built")
    small = PROGRAM | {"conditions": [["<", 0, 7]], "steps": [BUFFER, LAUNCH]}
    index = INDEX | {"formulas": [*INDEX["formulas"], 100], "programs": [small]}
    path = write(tmp_path / "one.zip", index)
    environment = dict(subprocess_env)
    environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent)
    run = subprocess.run(
        [sys.executable, "-c", CALLS, str(tmp_path), str(probe), path],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    served, launch, large, unaligned, other_device, driver = run.stdout.splitlines()
    assert (served, launch) == ("done", "(3, 1, 1) 256 70000 3")
    assert large == "the file of compiled kernels has none for these sizes, types and windows"
    assert (
        unaligned == "the compiled kernel attention_forward_kernel wants q to be a multiple of 16"
    )
    assert other_device == "the file of compiled kernels has none for compute capability 10.0"
    assert driver.startswith(
        "[attention] CUDA driver: cuLaunchKernel failed: error 1, invalid value"
    )


OPERATOR = """
import os, sys, torch
import nsimplex
import cubin_launches as cubins
driver = cubins.FakeDriver(sys.argv[1])
driver.expect({"code0": {"arguments": [{"type": "*bf16"}, {"type": "i32"}]}})
query = torch.randn(1, 1, 3, 8).bfloat16()

def attention(**options):
    # The kernel for CUDA tensors, whatever the tensors are.
    operator = torch.ops.nsimplex.attention.default
    return operator._op_dk(torch._C.DispatchKey.CUDA, query, [query], [query], **options)

OPTIONS = {
    "form": {"form": "determinant"},
    "reduce": {"reduce": "sum"},
    "normalizer": {"normalizer": "sigmoid"},
    "key_lengths": {"key_lengths": torch.tensor([2])},
    "key_masks": {"key_masks": [torch.tensor([[True, False, True]])]},
    "cu_seqlens": {"cu_seqlens": torch.tensor([0, 1, 3])},
    "mask": {"mask": torch.tensor([0.0, 1.0, 2.0])},
    "sink": {"sink": torch.zeros(1), "normalizer": "softmax_sink"},
    "distinct": {"distinct": "with_query"},
    "dropout_p": {"dropout_p": 0.5, "seed": 1},
    "query_positions": {"query_positions": torch.tensor([0]), "causal": True},
    "softcap": {"softcap": 0.5},
    "alibi_slopes": {"alibi_slopes": torch.ones(1)},
    "pair_masks": {"pair_masks": [torch.ones(1, 1)]},
}
attention(causal=True)
print(len(driver.made))
every = [a.name for a in torch.ops.nsimplex.attention.default._schema.arguments if a.kwarg_only]
left = sorted(set(every) - set(torch.classes.nsimplex.AttentionPaths.options("cubins")))
print(*left)
for options in ({"causal": False}, *map(OPTIONS.get, left)):
    got, expected = attention(**options), torch.ops.nsimplex.attention_reference(
        query, [query], [query], **options
    )
    print(torch.equal(got[0], expected[0]), len(driver.made))
"""


def run_operator(tmp_path, subprocess_env, file):
    environment = subprocess_env | {"NSIMPLEX_CUBINS": file, "NSIMPLEX_WARN_FALLBACK": "1"}
    environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent)
    command = [sys.executable, "-c", OPERATOR, str(tmp_path)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_the_operator_takes_the_file_or_the_composite(tmp_path, subprocess_env):
    causal = PROGRAM | {"conditions": [["==", 3, 7]], "steps": [BUFFER, LAUNCH]}
    index = INDEX | {"formulas": [*INDEX["formulas"], 0], "programs": [causal]}
    index["formulas"][3] = "right.0"
    run = run_operator(tmp_path, subprocess_env, write(tmp_path / "one.zip", index))
    made, left, *computed = run.stdout.splitlines()
    names = left.split()
    assert made == "1" and computed == ["True 1"] * (1 + len(names)), run.stderr
    for name in names:  # a sink comes with another normalizer
        reason = f"the compiled kernels do not take the option {name}"
        assert (reason in run.stderr) == (name != "sink"), run.stderr
    assert "the file of compiled kernels has none for these sizes" in run.stderr


def test_the_operator_refuses_a_damaged_file(tmp_path, subprocess_env):
    path = tmp_path / "bad.zip"
    path.write_bytes(b"PK")
    run = run_operator(tmp_path, subprocess_env, str(path))
    line = run.stderr.splitlines()[-1]
    assert line.startswith(f"ValueError: [attention] NSIMPLEX_CUBINS: cannot read {path}: ")
