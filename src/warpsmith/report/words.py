"""Numbers and lines as the reports' texts have them.

In: sizes, labelled lines.  Out: text.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["WIDTH", "Line", "byte_count", "dims", "folded"]

WIDTH = 120
"""How long a line is where no terminal says."""

Line = tuple[str, str]
"""A label, and what stands behind it."""


def folded(lines: Iterable[Line], label_width: int, width: int) -> Iterator[str]:
    """Lines with their labels in a column, long ones folded behind it."""
    for label, text in lines:
        yield from textwrap.wrap(
            text,
            max(width, label_width + 20),
            initial_indent=f"  {label:<{label_width}}",
            subsequent_indent=" " * (label_width + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )


def dims(sizes: Sequence[int]) -> str:
    """`24576`, or `30 x 2` when there is more than x."""
    last = max((i for i, size in enumerate(sizes) if size != 1), default=0)
    return " x ".join(map(str, sizes[: last + 1]))


def byte_count(count: int) -> str:
    """`3.1 MB`: bytes in units of powers of ten."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
