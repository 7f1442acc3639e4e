"""The project's own tests with tensors on the GPU: every operator, what users do with a model, and
the tests of attention and of layers under device_plugin.py."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Files whose tests state nothing about the CPU, in order of importance.
ATTENTION = """
    test_hostile test_kernel_options test_options test_large_masks test_query_positions
    test_identities test_attention test_gradients test_merge_attention test_kv_cache
    test_sparse_attention test_separable_attention test_separable_cache test_feature_map
    test_rotary test_augment
    test_attention_weights test_face_attention test_static_cache test_continuous_order
""".split()
LAYERS = "test_layer_options test_select test_static_decoding".split()
#: By item: the folder and its files, and whether device_plugin.py moves their tensors.
ITEMS = {
    "every operator": ("gpu", ["test_every_operator"], False),
    "users": ("gpu", ["test_on_a_gpu"], False),
    "attention": ("attention", ATTENTION, True),
    "layers": ("nn", LAYERS, True),
}
STOPPED = "stopped: the time was up"
KINDS = "PASSED|FAILED|ERROR|SKIPPED|XFAIL"
#: With processes (xdist) the result comes first; names may have spaces.
RESULT = re.compile(
    rf"^(?:\[gw\d+\].*?({KINDS}) (\S+::.+)|(\S+::.+?) ({KINDS})\b.*)$", re.MULTILINE
)


def items(setup) -> list[str]:
    return list(ITEMS)


def files_of(item: str, setup) -> list[Path]:
    folder, names, _ = ITEMS[item]
    if setup.rehearse and item == "attention":
        names = ["test_merge_attention"]
    files = [setup.root / "tests" / "python" / folder / f"{name}.py" for name in names]
    return [path for path in files if path.exists()]


def tests_of(text: str) -> dict[str, str]:
    """The result of every test that ended; pytest's summary may be missing."""
    found = {}
    for first, name, other, last in RESULT.findall(text):
        found[(name or other).strip()] = first or last
    return found


def run(item: str, setup) -> dict:
    files = files_of(item, setup)
    if not files:
        return {"text": "no such tests"}
    chosen = "cuda" if setup.device == "cuda" else "simulated and attention_weights"
    plugin = ["-p", "device_plugin"] if ITEMS[item][2] else []
    if item == "every operator":
        plugin = ["-k", chosen]
    plugin += ["-p", "failures_plugin"]
    if importlib.util.find_spec("xdist"):
        plugin += ["-n", str(min(os.cpu_count() or 1, 8)), "--dist", "worksteal"]
    env = {**os.environ, "GPU_DAY_DEVICE": setup.device, "NSIMPLEX_WARN_FALLBACK": ""}
    env["PYTHONUSERBASE"] = str(user_base(setup))
    words = [sys.executable, "-m", "pytest", "-v", "--tb=short", "-p", "no:cacheprovider"]
    words += ["-m", "not slow", *plugin, *map(str, files)]
    process = subprocess.Popen(
        words,
        env=env,
        cwd=setup.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=max(5.0, seconds_left() - 4))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        text, _ = process.communicate()
        text += f"\n{STOPPED}"
    print(f"==== {item}\n{text[-3_000_000:]}", file=sys.stderr)
    results = tests_of(text)
    counts = {kind: list(results.values()).count(kind) for kind in ("PASSED", "FAILED", "ERROR")}
    failed = [name for name, kind in results.items() if kind in ("FAILED", "ERROR")]
    last = text.strip().splitlines()[-1].strip("= ") if text.strip() else ""
    record = {"ok": not failed and process.returncode in (0, 5), "counts": counts, "text": last}
    if last == STOPPED and not failed:
        record["ok"] = None
    elif not record["ok"]:
        short = [name.rpartition("/")[2] for name in failed]
        record |= {"failed": short, "error": f"{last[:60]}: {', '.join(short)}"}
    return record


def user_base(setup) -> Path:
    """The user's packages with a link to this one. Commands that start Python look there, and not
    in PYTHONPATH."""
    base = Path(tempfile.mkdtemp(prefix="gpu-day-"))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = base / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    (packages / "nsimplex").symlink_to(setup.root / "python" / "nsimplex")
    return base


def seconds_left() -> float:
    return float(os.environ.get("GPU_DAY_UNTIL", time.time() + 600)) - time.time()


def lines(records: list[dict]) -> list[str]:
    table = []
    for record in records:
        table.append(f"{record['item']}: {record.get('counts', '')} {record.get('text', '')[:80]}")
        table += [f"   {name}"[:110] for name in record.get("failed", [])[:12]]
    return table
