"""What the C++ modules gave, for the Python modules to repeat."""

import subprocess

import pytest

from nsimplex._safetensors import Safetensors


@pytest.fixture(scope="module")
def exported(build, tmp_path_factory):
    """name -> (weights, inputs, output, metadata), as the C++ library wrote them."""
    program = build / "bin" / "export_models"
    if not program.exists():
        pytest.skip("the C++ tests are not built")
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([program, folder], check=True)

    def read(name):
        file = Safetensors(folder / f"{name}.safetensors")
        tensors = {name: file.tensor(name) for name in file.names}
        output = tensors.pop("output")
        names = sorted(key for key in tensors if key.startswith("input."))
        inputs = [tensors.pop(key) for key in names]
        return tensors, inputs, output, file.metadata

    return read
