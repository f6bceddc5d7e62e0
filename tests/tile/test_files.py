"""Files of kernels whose own code goes wrong: the error says which line, and no exit status is the file's."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.cli import main


@pytest.mark.parametrize("line", ["raise SystemExit(0)", "1 / 0", "raise KeyError('x')"])
def test_what_a_file_raises_is_shown_at_its_line(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.py"
    path.write_text(f"x = 1\n{line}\n")
    assert main(["tile", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"{path}:2:1" in error
    assert line in error
