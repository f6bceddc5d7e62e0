"""Canonical forms, one file a dialect.  `PATTERNS` has them all; a pass may pick a dialect's own table."""

from warpsmith.ir.core.rewriter import Pattern
from warpsmith.passes.canonical import arith, indexing, scf, tensor, vector

__all__ = ["PATTERNS", "merge"]


def merge(*tables: dict[str, tuple[Pattern, ...]]) -> dict[str, tuple[Pattern, ...]]:
    """One table with the patterns of several, in order."""
    merged: dict[str, tuple[Pattern, ...]] = {}
    for table in tables:
        for name, patterns in table.items():
            merged[name] = merged.get(name, ()) + patterns
    return merged


PATTERNS = merge(arith.PATTERNS, indexing.PATTERNS, scf.PATTERNS, tensor.PATTERNS, vector.PATTERNS)
