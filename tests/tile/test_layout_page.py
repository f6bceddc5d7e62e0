"""What docs/tile-layouts.md shows is what happens."""

from __future__ import annotations

import doctest
from pathlib import Path


def test_the_page_of_layouts() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "tile-layouts.md"
    found = doctest.testfile(str(page), module_relative=False, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    assert found.attempted > 15
    assert found.failed == 0
