"""The command line under test and its inputs."""

import pytest
from commands import make_inputs


@pytest.fixture(scope="session")
def inputs(executable, tmp_path_factory):
    return make_inputs(tmp_path_factory.mktemp("inputs"), executable)
