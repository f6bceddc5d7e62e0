"""Arrays in and out of commands: files that hold none are refused, names and dtypes that numpy lacks are kept."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from warpsmith.cli import main
from warpsmith.cli.npz import read_named, read_npz, write_named

KERNEL = str(Path(__file__).parents[2] / "examples" / "tile" / "root_mean_square.py")


def one_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.ones(3))


def text_in_a_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("0.npy", "no array")


NO_ARRAYS: dict[str, Callable[[Path], object]] = {
    "nothing": Path.touch,
    "text": lambda path: path.write_text("0 1 2"),
    "half a zip": lambda path: path.write_bytes(b"PK\x03\x04half"),
    "one array": one_array,
    "text in a zip": text_in_a_zip,
    "no file": lambda _: None,
}


@pytest.mark.parametrize("kind", NO_ARRAYS)
@pytest.mark.parametrize("command", [["run", "--example", "gelu"], ["tile", KERNEL, "--run"]], ids=["run", "tile"])
def test_what_holds_no_arrays_is_refused(
    command: list[str], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.npz"
    NO_ARRAYS[kind](path)
    assert main([*command, "--input", str(path)]) == 2
    assert str(path) in capsys.readouterr().err


def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "no such folder" / "x.npz"
    assert main(["tile", KERNEL, "--run", "--output", str(path)]) == 2
    assert "can't write" in capsys.readouterr().err


def test_names_and_dtypes_come_back(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    given = {"A_ptr": np.arange(6, dtype=np.int16).reshape(2, 3), "B": np.array([0.5, -2.0], ml_dtypes.bfloat16)}
    write_named(path, given)
    found = read_named(path)
    assert list(found) == ["A_ptr", "B"]
    for name, array in given.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name].astype(np.float32), array.astype(np.float32))


def test_numbers_are_put_in_order(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    write_named(path, {str(i): np.array([i]) for i in reversed(range(12))})
    assert [int(array[0]) for array in read_npz(path)] == list(range(12))
