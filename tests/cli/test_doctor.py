"""`warpsmith doctor`: never fails, and says what is so."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import numpy as np
import pytest

from warpsmith.cli import main
from warpsmith.report.doctor import diagnose
from warpsmith.runtime.cache import default_cache


def test_json_says_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["python"].startswith(platform.python_version())
    assert data["packages"]["numpy"] == np.__version__
    assert data["cache"]["directory"] == os.environ["WARPSMITH_CACHE_DIR"]
    states = {check["name"]: check["state"] for check in data["checks"]}
    assert states.keys() >= {"cpu", "ptx", "cache", "gpu", "ptxas", "nvdisasm", "libdevice", "mlir-opt", "jax"}
    # What the package itself brings works wherever the tests run.
    assert [states[name] for name in ("cpu", "ptx", "cache")] == ["works"] * 3


def test_text_has_a_row_for_every_check_and_help_for_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    for check in diagnose().checks:
        assert f"  {check.name} " in shown
        assert check.state in ("works", "missing", "broken")
        assert check.state == "works" or check.help or check.state == "broken"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment without tools: an empty PATH, no toolkit."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("warpsmith.backends.nvptx.cuda_files._SYSTEM", tmp_path)
    monkeypatch.setattr("sys.path", [])
    for name in ("CUDA_HOME", "CUDA_PATH", "WARPSMITH_PTXAS", "WARPSMITH_NVDISASM", "WARPSMITH_LIBDEVICE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_missing_tools_come_with_the_way_to_get_them(bare: Path) -> None:
    checks = {check.name: check for check in diagnose().checks}
    for name in ("ptxas", "nvdisasm", "libdevice", "mlir-opt"):
        assert checks[name].state == "missing"
        assert checks[name].help


def test_a_tool_that_does_not_run_is_broken(bare: Path) -> None:
    """Found isn't working: a file of the right name must be tried."""
    tool = bare / "mlir-opt"
    tool.write_text("this is no program")
    tool.chmod(0o755)
    (check,) = (check for check in diagnose().checks if check.name == "mlir-opt")
    assert check.state == "broken"
    assert "mlir-opt" in check.detail


def test_a_cache_that_is_off_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_CACHE_DIR", "")
    default_cache.cache_clear()
    try:
        found = diagnose()
    finally:
        monkeypatch.undo()
        default_cache.cache_clear()
    assert found.cache.directory is None
    assert {check.name: check.state for check in found.checks}["cache"] == "missing"


def test_a_cache_that_others_may_write_to_is_broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Code from such a directory isn't run, so nothing is cached: the user should know."""
    if os.name != "posix":
        pytest.skip("needs POSIX permissions")
    tmp_path.chmod(0o777)
    monkeypatch.setenv("WARPSMITH_CACHE_DIR", str(tmp_path))
    default_cache.cache_clear()
    try:
        (check,) = (check for check in diagnose().checks if check.name == "cache")
    finally:
        monkeypatch.undo()
        default_cache.cache_clear()
    assert check.state == "broken"
    assert "0700" in check.help
