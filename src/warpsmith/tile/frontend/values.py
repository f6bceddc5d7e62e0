"""What the names of a kernel stand for while it is read: scalars, variables, buffers, regions, loops, and macros.

All else a name may hold (layouts, slices, numbers, strings) is the Python object itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from warpsmith.ir.core.ssa import Value
from warpsmith.tile.model.buffers import AnyLayout
from warpsmith.tile.model.dtypes import TileType
from warpsmith.tile.model.extents import Extent

__all__ = [
    "Buffer",
    "Inline",
    "Loop",
    "Number",
    "Parameter",
    "ParameterInfo",
    "Picks",
    "Region",
    "Scalar",
    "Variable",
    "items",
    "on_device",
]

Number = int | float | bool


def items(value: Any) -> list[Any] | None:
    """What a tuple or list holds; None of anything else."""
    return list(cast("Sequence[Any]", value)) if isinstance(value, (tuple, list)) else None


@dataclass(eq=False, slots=True)
class Scalar:
    """A number that the kernel computes: an SSA value and the type that its author gave it."""

    value: Value
    type: TileType


@dataclass(eq=False, slots=True)
class Variable:
    """A scalar that is assigned more than once: a private one-element memory."""

    memory: Value
    type: TileType


@dataclass(eq=False, slots=True)
class Buffer:
    """A buffer or a view of one: the value that a `tile` op defines."""

    value: Value
    type: TileType


@dataclass(eq=False, slots=True)
class Region:
    """A box of a buffer: where it begins and how wide it is in each dim; `kept` marks dims that no integer picked."""

    buffer: Buffer
    mins: tuple[Scalar | int, ...]
    extents: tuple[int, ...]
    kept: tuple[bool, ...]


@dataclass(eq=False, slots=True)
class Picks:
    """A part of a buffer that brackets have still to pick: `take` gives it for what stands in them."""

    take: Callable[[Any], Buffer | Region]


@dataclass(eq=False, slots=True)
class Parameter:
    """A parameter of a kernel: `T.handle` (bound by match_buffer), `T.Buffer(...)`, or a scalar type."""

    name: str
    kind: str
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """One argument of a kernel: a buffer (its shape has names and expressions where it is symbolic; without a layout it
    is row-major), or a scalar (shape None)."""

    name: str
    type: TileType
    shape: tuple[int | str | Extent, ...] | None
    alignment: int = 0
    layout: AnyLayout | None = None


@dataclass(eq=False, slots=True)
class Loop:
    """What a `for` runs over: bounds of each loop variable, and how."""

    kind: str
    bounds: tuple[tuple[Scalar | int, Scalar | int, int], ...]


@dataclass(eq=False, slots=True)
class Inline:
    """A macro (`@T.inline`): its tree, and the names around its definition."""

    node: ast.FunctionDef
    names: Any = None
    file: str = ""
    first: tuple[Any, ...] = ()
    """Arguments before those of a call: the object whose macro it is."""


def on_device(value: Any) -> bool:
    """Whether a value, or what a tuple or list holds, is known only when the kernel runs."""
    parts = items(value)
    if parts is not None:
        return any(on_device(each) for each in parts)
    return isinstance(value, (Scalar, Variable, Buffer, Region))
