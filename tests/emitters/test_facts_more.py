"""What XLA launches for fusions of further kinds, for an H200, a B200 and an A100, is what we launch.

Rows of kinds, element types and devices that `launch.json` lacks, measured in the same way.  A row that differs on
purpose names the reason, which `docs/modules.md` explains; what differs, and by how much, follows from the reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from differential import fusion_of

from warpsmith.devices import device
from warpsmith.emitters import EmittedKernel, emit
from warpsmith.hlo.text.parser import parse_hlo

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "hlo" / "cases" / "launch_more.json").read_text())
BYTES = {"wide sums": (2, 1), "narrow elements": (2, 1), "runs of bytes": (1, 4)}
"""Departures in shared memory alone: ours to XLA's."""
EMITTERS = {
    "complex product": "loop",
    "large tiles": "loop",
    "parts of bytes": "loop",
    "input slices": "input_slices",
}
"""Departures in the emitter: what takes the fusion here."""


def launched(row: dict[str, Any]) -> tuple[dict[str, Any], EmittedKernel]:
    kernel = emit(fusion_of(parse_hlo(row["hlo"])), device(row["target"]))
    shuffles = [op for op in kernel.module.walk() if op.name == "xla_gpu.shuffle_reduce"]
    distances = [op.int_attr("max_distance") for op in shuffles]
    found = {
        "grid": list(kernel.launch.grid),
        "block": list(kernel.launch.block),
        "shared_bytes": kernel.launch.shared_bytes,
        "shuffles": sorted(distance for distance in distances if distance),
        "index_bits": kernel.launch.index_bits,
    }
    return found, kernel


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['target']}-{row['name']}")
def test_the_launch_is_xlas_or_a_named_departure(row: dict[str, Any]) -> None:
    """Wrong: the emitter, the grid or block, the tiles in shared memory, or who shuffles with whom."""
    found, kernel = launched(row)
    wanted = {key: row[key] for key in found}
    reason = row["departure"]
    if reason in EMITTERS:
        assert kernel.origin.emitter == EMITTERS[reason]
        assert found["shuffles"] == []
        assert found["shared_bytes"] == 0
    elif reason:
        ours, theirs = BYTES[reason]
        assert found["shared_bytes"] * theirs == row["shared_bytes"] * ours
        assert {**found, "shared_bytes": row["shared_bytes"]} == wanted
    else:
        assert found == wanted


def test_every_departure_has_its_reason_on_the_page() -> None:
    """Wrong: a departure that nobody wrote down, or one that is written and gone."""
    page = (Path(__file__).parents[2] / "docs" / "modules.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \*(.+?)\* \|", page, re.MULTILINE)
    found = {row["departure"] for row in ROWS} - {""}
    assert sorted(found) == sorted(listed) == sorted({*BYTES, *EMITTERS})
    assert Counter(row["target"] for row in ROWS).keys() == {"H200", "B200", "A100-80"}
