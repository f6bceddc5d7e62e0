"""Each pass has a text test of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.passes.manager import names

FILES = {path.stem for path in (Path(__file__).parent / "text").glob("*.mlir")}


@pytest.mark.parametrize("name", names())
def test_a_pass_has_a_text_test(name: str) -> None:
    assert name.replace("-", "_") in FILES
