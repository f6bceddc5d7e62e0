"""Text tests of the passes: each file in text/ says what goes in, which passes run, and what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest
from ir.filecheck import check_file

import warpsmith.ir.dialects  # registers the ops
from warpsmith.ir.text.parser import parse_module
from warpsmith.ir.text.printer import print_module
from warpsmith.passes.manager import run_pipeline

assert warpsmith.ir.dialects.arith
FILES = sorted((Path(__file__).parent / "text").glob("*.mlir"))


def optimize(text: str, passes: str) -> str:
    """What `warpsmith opt --passes` prints."""
    module = parse_module(text, allow_unregistered=True)
    run_pipeline(module, passes)
    printed = print_module(module)
    # What a pass leaves must be IR that reads back to the same text.
    assert print_module(parse_module(printed, allow_unregistered=True)) == printed
    return printed


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_pass_prints_what_the_file_says(path: Path) -> None:
    check_file(path, optimize)
