"""ptxas: found or missed with advice, its report read, its errors passed on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from warpsmith.backends.nvptx import cuda_files, libdevice, ptxas
from warpsmith.errors import ToolFailed, ToolMissing
from warpsmith.report.doctor import diagnose

LOG = """ptxas info    : 17 bytes gmem, 4 bytes cmem[3]
ptxas info    : Compiling entry function 'spill' for 'sm_90a'
ptxas info    : Function properties for spill
    24 bytes stack frame, 32 bytes spill stores, 48 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 24 bytes cumulative stack size, 4224 bytes smem, 552 bytes cmem[0]
ptxas info    : Compile time = 1.234 ms
ptxas info    : Compiling entry function 'plain' for 'sm_90a'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
"""


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine on which no place that is looked at holds a ptxas, but for the returned directory on PATH."""
    for variable in ("WARPSMITH_PTXAS", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(cuda_files, "_SYSTEM", tmp_path / "toolkit")
    return tmp_path


def fake(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_the_report_is_read_kernel_by_kernel() -> None:
    spill, plain = ptxas.parse_resources(LOG)
    assert (spill.name, spill.registers, spill.shared, spill.stack) == ("spill", 255, 4224, 24)
    assert (spill.spill_stores, spill.spill_loads, spill.barriers, spill.constant) == (32, 48, 1, 552)
    assert (plain.name, plain.registers, plain.shared, plain.spill_stores) == ("plain", 10, 0, 0)


def test_without_one_the_error_says_how_to_get_it(nowhere: Path) -> None:
    with pytest.raises(ToolMissing, match="pip install") as caught:
        ptxas.assemble("", "sm_90")
    assert caught.value.help is not None
    assert nowhere.is_dir()


@pytest.mark.skipif(os.name != "posix", reason="uses shell scripts")
def test_the_variable_wins_over_the_path(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = fake(nowhere / "ptxas", "exit 1")
    assert ptxas.find_ptxas() == on_path
    chosen = fake(nowhere / "other" / "ptxas", "exit 1")
    monkeypatch.setenv("WARPSMITH_PTXAS", str(chosen))
    assert ptxas.find_ptxas() == chosen


@pytest.mark.skipif(os.name != "posix", reason="uses shell scripts")
def test_a_variable_that_names_nothing_is_no_wish_for_another(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a typing error in WARPSMITH_PTXAS that picks another ptxas without a word."""
    fake(nowhere / "ptxas", "exit 1")
    monkeypatch.setenv("WARPSMITH_PTXAS", "/nope")
    with pytest.raises(ToolMissing, match="WARPSMITH_PTXAS is /nope"):
        ptxas.find_ptxas()


@pytest.mark.skipif(os.name != "posix", reason="uses shell scripts")
@pytest.mark.parametrize("places", [("nvidia", "cu13", "bin"), ("nvidia", "cuda_nvcc", "bin")])
def test_the_wheels_are_looked_into(nowhere: Path, monkeypatch: pytest.MonkeyPatch, places: tuple[str, ...]) -> None:
    wheel = fake(nowhere.joinpath("site", *places, "ptxas"), "exit 1")
    monkeypatch.setattr(sys, "path", [str(nowhere / "site")])
    assert ptxas.find_ptxas() == wheel


@pytest.mark.skipif(os.name != "posix", reason="uses shell scripts")
def test_an_old_one_is_refused(nowhere: Path) -> None:
    fake(nowhere / "ptxas", "echo 'Cuda compilation tools, release 11.4, V11.4.1'")
    with pytest.raises(ToolFailed, match=r"11\.4"):
        ptxas.assemble("", "sm_80")


@pytest.mark.skipif(os.name != "posix", reason="uses shell scripts")
def test_its_first_error_is_passed_on(nowhere: Path) -> None:
    complaint = 'echo "ptxas kernel.ptx, line 4; error : bad thing"; exit 255'
    fake(nowhere / "ptxas", f'case "$1" in --version) echo release 13.0;; *) {complaint};; esac')
    with pytest.raises(ToolFailed, match="line 4; error : bad thing"):
        ptxas.assemble("x", "sm_90")


def test_the_real_one_refuses_what_is_not_ptx() -> None:
    try:
        ptxas.find_ptxas()
    except ToolMissing as missing:
        pytest.skip(missing.cause)
    with pytest.raises(ToolFailed, match="line 4"):
        ptxas.assemble(".version 8.0\n.target sm_90\n.address_size 64\nbogus\n", "sm_90")


@pytest.mark.skipif(os.name != "posix", reason="uses shell scripts")
@pytest.mark.parametrize(
    ("name", "relative"),
    [("ptxas", "bin/ptxas"), ("nvdisasm", "bin/nvdisasm"), ("libdevice", "nvvm/libdevice/libdevice.10.bc")],
)
def test_doctor_reports_the_file_that_the_compiler_uses(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, name: str, relative: str
) -> None:
    """In each place, the least preferred first: a doctor with a search of its own would miss what is in use."""
    monkeypatch.delenv("WARPSMITH_NVDISASM", raising=False)
    monkeypatch.delenv("WARPSMITH_LIBDEVICE", raising=False)
    monkeypatch.setattr(sys, "path", [str(nowhere / "site")])
    monkeypatch.setenv("CUDA_HOME", str(nowhere / "home"))
    find = {"ptxas": ptxas.find_ptxas, "nvdisasm": ptxas.find_nvdisasm, "libdevice": libdevice.find_libdevice}[name]
    for place in (
        nowhere / "toolkit" / relative,
        nowhere / "site" / "nvidia" / "cu13" / relative,
        nowhere / "home" / relative,
        nowhere / "chosen" / name,
    ):
        fake(place, "echo release 13.0")
        if name == "libdevice":
            place.write_bytes(b"BC\xc0\xde")
        if place.parent.name == "chosen":
            monkeypatch.setenv(f"WARPSMITH_{name.upper()}", str(place))
        assert find() == place
        (check,) = (check for check in diagnose().checks if check.name == name)
        assert check.state == "works"
        assert check.detail.endswith(str(place))
