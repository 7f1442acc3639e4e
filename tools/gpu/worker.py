"""One process of a part: reads names of items, answers with one line of JSON per item.

worker.py PART list|warm|run
"""

from __future__ import annotations

import json
import os
import sys
import traceback

import parts


def broken_device(error: Exception) -> bool:
    """After such an error every later call of the process fails as well."""
    text = f"{type(error).__name__} {error}"
    return "CUDA error" in text or "AcceleratorError" in text or "Triton Error [CUDA]" in text


def main() -> None:
    name, phase = sys.argv[1:3]
    # What a library prints goes to the log; only answers go to the pipe.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    module = parts.PARTS[name].load()
    import setups

    setup = setups.make()
    work = module.warm if phase == "warm" else module.run
    for line in sys.stdin:
        item, broken = line.rstrip("\n"), False
        try:
            record = work(item, setup) or {}
            record.setdefault("ok", True)
        except Exception as error:
            print(f"==== {name}: {item}", file=sys.stderr)
            traceback.print_exc()
            broken = broken_device(error)
            record = {"ok": False, "error": f"{type(error).__name__}: {error}"[:600]}
        answers.write(json.dumps({**record, "broken": broken}) + "\n")
        setups.clean()


if __name__ == "__main__":
    main()
