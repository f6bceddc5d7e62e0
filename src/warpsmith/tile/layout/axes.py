"""The axes that a layout spreads elements over: coordinates of threads and of memory.

A thread axis counts one kind of thing (`subscope`) within another (`scope`): `laneid` threads in a warp, `warpid` warps
in a CTA.  A memory axis counts elements.  Axes of one layout that lead from scope to scope can be fused into one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import SupportsIndex

from warpsmith.errors import InvalidLayout, did_you_mean

__all__ = ["AXES", "FUSED", "SPLIT", "Axis", "Strided", "axis_of", "integer"]


def integer(item: object, what: str) -> int:
    """The integer that `item` is.  InvalidLayout, which calls it `what`, where it is none."""
    if isinstance(item, bool) or not isinstance(item, SupportsIndex):
        raise InvalidLayout(f"{what} is an integer, not {item!r}", help="S[(32, 8) : (1 @ laneid, 1)]")
    return item.__index__()


@dataclass(frozen=True, slots=True)
class Axis:
    """A named coordinate.  `3 @ axis` is a stride of 3 along it.

    Of a thread axis `subscope` and `scope` say what it counts in what; a memory axis has neither.
    """

    name: str
    subscope: str | None = None
    scope: str | None = None

    @property
    def is_thread(self) -> bool:
        """Whether it counts threads (or warps, blocks...), not memory."""
        return self.subscope is not None

    def __rmatmul__(self, stride: int) -> Strided:
        return Strided(integer(stride, "a distance along an axis"), self)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Strided:
    """A distance along an axis: what a stride and an offset are."""

    amount: int
    axis: Axis

    def __repr__(self) -> str:
        return f"{self.amount}@{self.axis}"


AXES: Mapping[str, Axis] = {
    axis.name: axis
    for axis in (
        Axis("tx", "thread", "cta"),
        Axis("laneid", "thread", "warp"),
        Axis("warpid", "warp", "cta"),
        Axis("wgid", "warpgroup", "cta"),
        Axis("tid_in_wg", "thread", "warpgroup"),
        Axis("wid_in_wg", "warp", "warpgroup"),
        Axis("bx", "cta", "grid"),
        Axis("by", "cta", "grid"),
        Axis("bz", "cta", "grid"),
        Axis("cbx", "cta", "cluster"),
        Axis("cby", "cta", "cluster"),
        Axis("cbz", "cta", "cluster"),
        *map(Axis, ("m", "P", "F", "Bank", "TLane", "TCol")),
    )
}
"""Every axis there is; `m`, elements of a buffer's memory, is meant where none is named."""

FUSED: Mapping[tuple[str, str], Mapping[str, tuple[str, int]]] = {
    ("thread", "cta"): {
        "laneid": ("tx", 1),
        "warpid": ("tx", 32),
        "wid_in_wg": ("tx", 32),
        "tid_in_wg": ("tx", 1),
        "wgid": ("tx", 128),
    },
    ("thread", "warpgroup"): {"laneid": ("tid_in_wg", 1), "wid_in_wg": ("tid_in_wg", 32)},
    ("warp", "cta"): {"wid_in_wg": ("warpid", 1), "wgid": ("warpid", 4)},
}
"""By the narrowest and widest scope of a layout: what each axis is in units of one axis for all."""

SPLIT: Mapping[tuple[str, str], tuple[str, str, int]] = {
    ("tx", "warp"): ("warpid", "laneid", 32),
    ("tx", "warpgroup"): ("wgid", "tid_in_wg", 128),
    ("warpid", "warpgroup"): ("wgid", "wid_in_wg", 4),
    ("tid_in_wg", "warp"): ("wid_in_wg", "laneid", 32),
}
"""By axis and the scope to split at: the outer axis, the inner one, and how many of the inner make one of the outer."""


def axis_of(given: object) -> Axis:
    """An axis, or the one that a name stands for.  InvalidLayout, with the nearest name, where there is none."""
    if isinstance(given, Axis):
        return given
    if not isinstance(given, str):
        raise InvalidLayout(f"an axis is one such as laneid, or its name, not {given!r}")
    found = AXES.get(given)
    if found is None:
        raise InvalidLayout(
            f"no axis is called '{given}'", help=did_you_mean(given, AXES) or f"the axes are {', '.join(AXES)}"
        )
    return found
