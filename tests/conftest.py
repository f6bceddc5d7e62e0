"""For the whole test run: a cache directory of its own, how hypothesis looks for counterexamples, and what is quick.

`pytest -m quick` takes the first `_CASES` cases of every test that is not marked `slow` (0.7 s and more on one
core), so that each property of each room is tried, on a few inputs.

What a test needs beyond Python is in `needs.py`; a test that lacks it is skipped with the reason.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

# The deadline measures the machine, not the code.  In CI the same examples every time: a failure there must come from
# the change; elsewhere new examples each run, so that a property is tried on more and more of its domain.
settings.register_profile("everywhere", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("everywhere"), derandomize=True, database=None)
settings.register_profile("quick", settings.get_profile("everywhere"), max_examples=15)
settings.load_profile("ci" if os.environ.get("CI") else "everywhere")

_CACHE = pytest.StashKey[str]()
_CASES = 2


def pytest_configure(config: pytest.Config) -> None:
    """No test sees what an earlier run, or the user, compiled; child processes inherit the directory.

    With pytest-xdist each worker is configured, and so has a directory of its own.
    """
    if config.option.markexpr == "quick":
        settings.load_profile("quick")
    directory = tempfile.mkdtemp(prefix="warpsmith-tests-")
    config.stash[_CACHE] = directory
    os.environ["WARPSMITH_CACHE_DIR"] = directory


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[_CACHE], ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is quick, before pytest chooses by marks."""
    seen = Counter[tuple[str, str]]()
    for item in items:
        function = (str(item.path), item.originalname if isinstance(item, pytest.Function) else item.name)
        seen[function] += 1
        if seen[function] <= _CASES and item.get_closest_marker("slow") is None:
            item.add_marker("quick")
