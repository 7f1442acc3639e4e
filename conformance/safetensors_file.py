"""The safetensors format with NumPy alone: eight bytes of header length, a JSON header, the
data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

DTYPES = {"F64": np.float64, "F32": np.float32, "I64": np.int64, "BOOL": np.bool_}


def read(path: Path) -> dict[str, np.ndarray]:
    data = Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            arrays[name] = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(
                entry["shape"]
            )
    return arrays


def write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
    header, offset = {}, 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": names[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data starts aligned
    body = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    Path(path).write_bytes(len(text).to_bytes(8, "little") + text + body)
