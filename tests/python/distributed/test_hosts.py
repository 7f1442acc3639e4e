"""Several hosts: network namespaces of this machine, joined by a switch."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rank_processes import assert_close
from ranks import run_on_ranks
from test_data_parallel import load
from test_feature_trainer import command, results

PROGRAM = Path(__file__).with_name("host_program.py")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


def tc(*words):
    subprocess.run(["tc", *words], check=True, capture_output=True, timeout=20)


class Hosts:
    """Namespaces 10.77.0.1, .2, .. whose links hang on one bridge."""

    def __init__(self, count):
        self.names = [f"nsx{os.getpid()}h{i}" for i in range(count)]
        self.switch = f"nsx{os.getpid()}s"

    def __enter__(self):
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge", "up")
        for i, name in enumerate(self.names):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            port = f"port{i}"
            ends = ("link", "add", "eth0", "type", "veth", "peer", "name", port)
            ip("-n", name, *ends, "netns", self.switch)
            ip("-n", self.switch, "link", "set", port, "master", "bridge", "up")
            ip("-n", name, "address", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        return self

    def __exit__(self, *_):
        for name in [*self.names, self.switch]:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)

    def cut(self, host, up=False):
        """Cut the cable of a host, or heal it."""
        ip("-n", self.switch, "link", "set", f"port{host}", "up" if up else "down")

    def slow_down(self, host, milliseconds, megabits):
        """Delay what the switch sends to a host, and limit its rate. Where the kernel has no netem,
        a token bucket limits the rate alone."""
        port = ("qdisc", "replace", "dev", f"port{host}", "root")
        rate = f"{megabits}mbit"
        try:
            tc("-n", self.switch, *port, "netem", "delay", f"{milliseconds}ms", "rate", rate)
        except subprocess.CalledProcessError:
            tc("-n", self.switch, *port, "tbf", "rate", rate, "burst", "16kb", "latency", "2s")

    def start(self, environment, *arguments, program=(str(PROGRAM),)):
        """One rank per host. `program`: what Python runs, before the arguments."""
        own = dict(
            MASTER_ADDR="10.77.0.1",
            MASTER_PORT="29500",
            WORLD_SIZE=str(len(self.names)),
            GLOO_SOCKET_IFNAME="eth0",
            OMP_NUM_THREADS="1",
        )
        return [
            subprocess.Popen(
                ["ip", "netns", "exec", name, sys.executable, *program, *arguments],
                env=environment | own | dict(RANK=str(rank)),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank, name in enumerate(self.names)
        ]


@pytest.fixture
def hosts():
    """A function that makes hosts, which vanish after the test."""
    if shutil.which("ip") is None:
        pytest.skip("no program ip (iproute2)")
    with contextlib.ExitStack() as stack:

        def make(count):
            try:
                return stack.enter_context(Hosts(count))
            except subprocess.CalledProcessError as error:
                pytest.skip(f"no permission for network namespaces: {error.stderr.decode()[:80]}")

        yield make


def ended(processes, seconds):
    """(exit status, output, errors) of each. What still runs is killed, and fails the test."""
    found, until = [], time.monotonic() + seconds
    try:
        for process in processes:
            out, errors = process.communicate(timeout=max(1.0, until - time.monotonic()))
            found.append((process.returncode, out, errors))
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_context_and_data_parallel_between_hosts(hosts, count, subprocess_env):
    processes = hosts(count).start(subprocess_env)
    for status, out, errors in ended(processes, 300):
        assert status == 0 and out.endswith("equal\n"), errors


@pytest.mark.slow
def test_feature_training_between_hosts(hosts, executable, subprocess_env, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    words = command("perturb", (), one)
    subprocess.run([executable, "causal", *words], check=True, capture_output=True)
    words = [str(word) for word in command("perturb", (), two)]
    processes = hosts(2).start(subprocess_env, *words, program=("-m", "nsimplex.causal"))
    for status, _, errors in ended(processes, 300):
        assert status == 0, errors
    assert_close(results(two), results(one))


def until_step(process, step):
    while True:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        if line.split() == ["step", str(step)]:
            return


@pytest.mark.slow
def test_a_link_that_is_cut_and_heals_only_delays(hosts, subprocess_env):
    network = hosts(2)
    processes = network.start(subprocess_env, "--steps", "200")
    until_step(processes[0], 3)
    network.cut(1)
    time.sleep(2)
    network.cut(1, up=True)
    for status, out, errors in ended(processes, 400):
        assert status == 0 and out.endswith("equal\n"), errors


def slow_down(network, milliseconds, megabits):
    if shutil.which("tc") is None:
        pytest.skip("no program tc (iproute2)")
    try:
        network.slow_down(1, milliseconds, megabits)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no link can be slowed down: {error.stderr.decode()[:80]}")


@pytest.mark.slow
def test_a_slow_link_only_delays(hosts, subprocess_env):
    network = hosts(2)
    slow_down(network, milliseconds=50, megabits=2)
    for status, out, errors in ended(network.start(subprocess_env, "--steps", "10"), 300):
        assert status == 0 and out.endswith("equal\n"), errors


@pytest.mark.slow
def test_a_link_that_becomes_too_slow_ends_all_ranks_within_the_timeout(hosts, subprocess_env):
    network = hosts(2)
    processes = network.start(subprocess_env, "--steps", "1000000", "--timeout", "5")
    until_step(processes[0], 3)
    slow_down(network, milliseconds=20_000, megabits=0.001)
    for status, out, errors in ended(processes, 120):
        assert status != 0 and not out.endswith("equal\n")
        assert "Error" in errors


@pytest.mark.slow
def test_a_checkpoint_of_two_hosts_goes_on_with_one(hosts, subprocess_env, tmp_path):
    folder = tmp_path / "checkpoint"
    found = ended(hosts(2).start(subprocess_env, "--save", str(folder)), 300)
    for status, _, errors in found:
        assert status == 0, errors
    want = [json.loads(out) for _, out, _ in found]
    assert want[0] == want[1] and len(want[0]) == 2
    assert len([*folder.glob("*.distcp")]) == 2  # each host has written its part
    (got,) = run_on_ranks(1, load, str(folder))
    assert got == pytest.approx(want[0], rel=1e-5)


@pytest.mark.slow
def test_a_link_that_stays_cut_ends_all_ranks_within_the_timeout(hosts, subprocess_env):
    network = hosts(2)
    processes = network.start(subprocess_env, "--steps", "1000000", "--timeout", "5")
    until_step(processes[0], 3)
    network.cut(1)
    for status, out, errors in ended(processes, 120):
        assert status != 0 and not out.endswith("equal\n")
        assert "Error" in errors
