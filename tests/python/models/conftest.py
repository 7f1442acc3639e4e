"""What the C++ modules gave, for the Python modules to repeat."""

import json
import math
import subprocess

import pytest
import torch


def read_safetensors(path):
    """(tensors by name, metadata) of a file of float32 and int64 tensors."""
    data = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__", {})
    for checksums in ("tensor_checksums", "header_checksum"):
        metadata.pop(checksums)  # every file has them; they are none of its writer's fields
    dtypes = {"F32": torch.float32, "I64": torch.int64}
    tensors = {
        name: torch.frombuffer(
            data,
            dtype=dtypes[entry["dtype"]],
            offset=start + entry["data_offsets"][0],
            count=math.prod(entry["shape"]),
        ).view(entry["shape"])
        for name, entry in header.items()
    }
    return tensors, metadata


@pytest.fixture(scope="module")
def exported(build, tmp_path_factory):
    """name -> (weights, inputs, output, metadata), as the C++ library wrote them."""
    program = build / "bin" / "export_models"
    if not program.exists():
        pytest.skip("the C++ tests are not built")
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([program, folder], check=True)

    def read(name):
        tensors, metadata = read_safetensors(folder / f"{name}.safetensors")
        output = tensors.pop("output")
        names = sorted(key for key in tensors if key.startswith("input."))
        inputs = [tensors.pop(key) for key in names]
        return tensors, inputs, output, metadata

    return read
