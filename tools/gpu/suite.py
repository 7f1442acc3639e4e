"""The project's own tests, file by file, with tensors on the GPU (device_plugin.py)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

#: Files whose tests state nothing about the CPU, in order of importance.
ATTENTION = """
    test_hostile test_kernel_options test_options test_large_masks test_query_positions
    test_identities test_attention test_gradients test_merge_attention test_kv_cache
    test_sparse_attention test_separable_attention test_rotary test_augment
    test_attention_weights test_face_attention test_static_cache test_continuous_order
""".split()


def items(setup) -> list[str]:
    tests = setup.root / "tests" / "python"
    own = sorted(path.name for path in (tests / "gpu").glob("test_*.py"))
    own.sort(key=lambda name: name != "test_every_operator.py")
    attention = [f"{name}.py" for name in ATTENTION]
    found = [f"gpu/{name}" for name in own] + [f"attention/{name}" for name in attention]
    if setup.rehearse:
        found = [name for name in found if "test_merge" in name or "test_every" in name]
    return [name for name in found if (tests / name).exists()]


def run(item: str, setup) -> dict:
    here = Path(__file__).parent
    # Tests of this folder ask for a device themselves.
    plugin = [] if item.startswith("gpu/") else ["-p", "device_plugin"]
    env = {**os.environ, "GPU_DAY_DEVICE": setup.device, "NSIMPLEX_WARN_FALLBACK": ""}
    env["PYTHONPATH"] = os.pathsep.join([str(here), env.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x" if setup.rehearse else "--maxfail=40"]
        + ["-m", "not slow", "--tb=short", "-p", "no:cacheprovider", *plugin]
        + [str(setup.root / "tests" / "python" / item)],
        env=env,
        cwd=setup.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(f"==== {item}\n{done.stdout[-200000:]}", file=sys.stderr)
    failed = re.findall(r"^(?:FAILED|ERROR) \S*?::(\S+)", done.stdout, re.MULTILINE)
    text = done.stdout.strip().splitlines()[-1:] or [""]
    record = {"ok": done.returncode in (0, 5), "text": text[0].strip("= ")}
    if not record["ok"]:
        record["error"] = f"{text[0].strip('= ')}: {', '.join(failed)}"
        record["failed"] = failed
    return record


def lines(records: list[dict]) -> list[str]:
    return [f"{r['item']}: {r.get('text', r.get('error', ''))}" for r in records]
