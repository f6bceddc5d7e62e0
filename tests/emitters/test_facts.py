"""What we launch is what XLA launched, but for the departures that the documentation lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hero_kernels import launched, rows

PAGE = Path(__file__).parents[2] / "docs" / "modules.md"


def listed() -> tuple[int, set[tuple[str, str, int, int]]]:
    """How many fusions the page names, and the departures: shape and dimension, variant, XLA's bytes, ours."""
    text = PAGE.read_text(encoding="utf-8").partition("## Against XLA's own kernels")[2]
    count = re.search(r"For (\d+) fusions", text)
    assert count is not None
    found = re.findall(r"^\| `(\S+)` over (\d+) \| `(\w+)` \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    return int(count[1]), {(f"{shape} over {d}", variant, int(a), int(b)) for shape, d, variant, a, b in found}


@pytest.mark.slow
def test_every_measured_row_is_matched_or_a_listed_departure() -> None:
    """Wrong: any choice in any row, or a departure that nobody wrote down; and one that is written but isn't there."""
    departures: set[tuple[str, str, int, int]] = set()
    for row in rows():
        found, _ = launched(row)
        if found != {key: row[key] for key in found}:
            assert {**found, "shared_bytes": row["shared_bytes"]} == {key: row[key] for key in found}, row["name"]
            shape = re.search(r"p0 = (\S+) parameter\(0\)", row["hlo"])
            gone = re.search(r"reduce\(.*dimensions=\{(\d+)\}", row["hlo"])
            assert shape is not None
            assert gone is not None
            departures.add((f"{shape[1]} over {gone[1]}", row["variant"], row["shared_bytes"], found["shared_bytes"]))
    assert (len(rows()), departures) == listed()
