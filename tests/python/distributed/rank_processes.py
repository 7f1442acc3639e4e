"""Ranks of a training that a test starts, as torchrun does."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time

import pytest
import ranks as launcher

#: Makes a rank hang: its handler waits for another signal.
HANG = signal.SIGUSR1


def _on_rank(rank, ranks, port, folder, command, words, pause):
    """One rank, as torchrun starts it: the store is another process's."""
    time.sleep(pause)
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(ranks),
        LOCAL_RANK=str(rank),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        TORCHELASTIC_USE_AGENT_STORE="True",
    )
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    for stream, name in ((1, "out"), (2, "error")):
        os.dup2(
            os.open(os.path.join(folder, f"{name}{rank}"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC),
            stream,
        )
    c = ctypes.CDLL(None)
    c.signal(HANG, ctypes.cast(c.pause, ctypes.c_void_p))
    from nsimplex._on_ranks import run_command

    os._exit(run_command(command, words))


def new_store():
    """The store that an agent of torchrun has."""
    import torch.distributed as dist

    return dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


class Ranks:
    """Ranks of one training that run side by side. Rank 0 may start ``pause`` seconds late, and the
    store may be one that earlier ranks have used, as after a restart of torchrun."""

    def __init__(self, count, folder, words, command="lm", store=None, pause=0):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._store = store or new_store()
        launcher.start_server()
        self.processes = [
            launcher.context.Process(
                target=_on_rank,
                args=(
                    rank,
                    count,
                    self._store.port,
                    str(folder),
                    command,
                    [str(word) for word in words],
                    0 if rank else pause,
                ),
                daemon=True,
            )
            for rank in range(count)
        ]
        for process in self.processes:
            process.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.join()

    def codes(self):
        """The exit codes by rank."""
        for process in self.processes:
            process.join(300)
        return [process.exitcode for process in self.processes]

    def errors(self):
        """The lines about errors of all ranks together."""
        lines = []
        for rank in range(len(self.processes)):
            lines += (self.folder / f"error{rank}").read_text().splitlines()
        return [line for line in lines if line.startswith("nsimplex: ")]

    def error(self):
        """The line about an error, which the ranks together say once."""
        lines = self.errors()
        assert len(lines) == 1, lines
        return lines[0]

    def out(self, rank=0):
        return (self.folder / f"out{rank}").read_text()


def finish(count, tmp_path, words, command="lm"):
    """Runs the ranks to their end."""
    with Ranks(count, tmp_path / "streams", words, command) as ranks:
        codes = ranks.codes()
        assert codes == [0] * count, ranks.errors()
        return ranks


def wait_for_lines(out, count):
    """Waits until the run has written so many lines of metrics."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        if (out / "metrics.jsonl").exists() and len(metrics_text(out)) >= count:
            return
        time.sleep(0.01)
    raise AssertionError(f"{out} has fewer than {count} lines of metrics after 180 s")


def metrics_text(out):
    return (out / "metrics.jsonl").read_text().split("\n")[:-1]


def assert_close(lines, wanted):
    """Lines of metrics of graph models are equal to rounding."""
    for got, want in zip(lines, wanted, strict=True):
        assert got.keys() == want.keys()
        for name, value in want.items():
            close = isinstance(value, float)
            assert got[name] == (pytest.approx(value, rel=1e-4, abs=1e-5) if close else value), name


def torchrun(count, *more, module="nsimplex.lm"):
    """The words of a command of torchrun."""
    return [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(count),
        *more,
        "-m",
        module,
    ]


def ranks_of(agent, module="nsimplex.lm"):
    """The processes of an agent of torchrun by rank."""
    children = subprocess.run(
        ["ps", "--ppid", str(agent), "-o", "pid=", "-o", "args="], capture_output=True, text=True
    ).stdout.splitlines()
    pids = [int(line.split()[0]) for line in children if module in line]
    return {
        int(
            dict(
                entry.split("=", 1)
                for entry in open(f"/proc/{pid}/environ").read().split("\0")
                if "=" in entry
            )["RANK"]
        ): pid
        for pid in pids
    }


def restart_after_a_kill(words, killed, out, lines, environment, module="nsimplex.lm", seconds=180):
    """torchrun trains on two ranks, one of them is killed after so many lines of metrics, and the
    ranks that torchrun starts then end well in time."""
    start = torchrun(2, "--max-restarts", "2", module=module)
    log = out.parent / "log"
    with open(log, "w") as stream:
        agent = subprocess.Popen([*start, *words], env=environment, stdout=stream, stderr=stream)
        try:
            wait_for_lines(out, lines)
            os.kill(ranks_of(agent.pid, module)[killed], signal.SIGKILL)
            assert agent.wait(seconds) == 0, log.read_text()
        finally:
            agent.kill()
