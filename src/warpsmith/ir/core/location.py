"""Where ops come from.

In: HLO names, a file and a line, as a front end knows them.  Out: a `Location`, which each op holds; two can be fused.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["UNKNOWN", "Location", "fuse_locations"]


@dataclass(frozen=True, slots=True)
class Location:
    """Where an op comes from: HLO instructions (or a Python span) by name, file and line; merged ones list several."""

    names: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    column: int = 0


UNKNOWN = Location()


def fuse_locations(a: Location, b: Location) -> Location:
    """The location of an op that stands for two: the names of both, the place of the first known."""
    if a is b or b is UNKNOWN or a == b:
        return a
    if a is UNKNOWN:
        return b
    place = a if a.line else b
    return Location(tuple(dict.fromkeys(a.names + b.names)), place.file, place.line, place.column)
