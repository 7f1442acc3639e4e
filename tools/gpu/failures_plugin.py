"""A plugin of pytest: says why a test failed as soon as it has, since the time may end before
pytest's summary."""

from __future__ import annotations

import sys


def pytest_runtest_logreport(report) -> None:
    if report.failed:
        print(f"\n---- {report.nodeid}\n{report.longreprtext}", file=sys.__stdout__, flush=True)
