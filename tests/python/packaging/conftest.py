"""An installed nsimplex, shared by the tests that build against one."""

import subprocess

import pytest


@pytest.fixture(scope="session")
def prefix(build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    command = ["cmake", "--install", build, "--prefix", folder]
    subprocess.run(command, check=True, capture_output=True)
    return folder
