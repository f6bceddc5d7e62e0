"""For the whole test run: a cache directory of its own, and how hypothesis looks for counterexamples.

What a test needs beyond Python is in `needs.py`; a test that lacks it is skipped with the reason.
"""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings

# The deadline measures the machine, not the code.  In CI the same examples every time: a failure there must come from
# the change; elsewhere new examples each run, so that a property is tried on more and more of its domain.
settings.register_profile("everywhere", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("everywhere"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "everywhere")

_CACHE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """No test sees what an earlier run, or the user, compiled; child processes inherit the directory."""
    directory = tempfile.mkdtemp(prefix="warpsmith-tests-")
    config.stash[_CACHE] = directory
    os.environ["WARPSMITH_CACHE_DIR"] = directory


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[_CACHE], ignore_errors=True)
