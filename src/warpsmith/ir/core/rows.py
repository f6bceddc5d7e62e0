"""Op rows: what is known of an op, stated once; the registry of all rows; and locations.

In: the tables of `ir/dialects/`.  Out: rows by name, which parser, printer, verifier, folder, simulator and LLVM
emission all read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Union

from warpsmith.errors import InternalError
from warpsmith.ir.core.attributes import Attribute

if TYPE_CHECKING:
    from warpsmith.ir.core.ssa import Operation, Value

__all__ = [
    "REGISTRY",
    "UNKNOWN",
    "Effect",
    "Fold",
    "Location",
    "OpRow",
    "Trait",
    "fuse_locations",
    "register",
    "row",
]


# ---------------------------------------------------------------------------------------------------------- locations
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


# ------------------------------------------------------------------------------------------------------------- op rows
class Effect(Enum):
    """What an op does beside computing its results."""

    READ = "read"
    WRITE = "write"
    ALLOCATE = "allocate"
    BARRIER = "barrier"
    UNKNOWN = "unknown"


class Trait:
    """Facts about an op that passes rely on, as bits of an int (enum.Flag's `&` is twenty times slower)."""

    NONE = 0
    COMMUTATIVE = 1 << 0
    TERMINATOR = 1 << 1
    CONSTANT = 1 << 2  # one result, the attribute `value`
    SYMBOL = 1 << 3  # defines `sym_name` in its parent
    ISOLATED = 1 << 4  # the region uses no value from above
    RECURSIVE = 1 << 5  # effects are those of the ops in its regions
    ELEMENTWISE = 1 << 6  # scalars and vectors alike; all shapes agree
    SAME_TYPE = 1 << 7  # operands and results have one type
    LOOP = 1 << 8  # the region may run many times
    CALL = 1 << 9  # `callee` names a function
    INEXACT = 1 << 10  # no fold by the numpy function: its value is an approximation's


Fold = Union["Value", Attribute]


@dataclass(frozen=True, slots=True)
class OpRow:
    """All that is known of an op, stated once.

    `operands`, `results`: names in order; a trailing `*` marks a variadic group, `?` an optional one (more than one
    such group in an op needs `operandSegmentSizes`).  `attributes`: required names; `optional`: others that the op
    knows.  `effects`: (effect, operand name or None for memory at large).  `fold(op, constants)` gives one entry a
    result (a value or an attribute), or None.  `numpy(op, *arrays)` gives the result array (or a tuple of them) for
    arrays of any shape; folder and simulator share it.  `llvm` names the op of the `llvm` dialect that it becomes one
    to one.  `regions` is -1 where their number varies.  `syntax` names the form in `ir/text/syntax.py`; None means
    that only the generic form exists.
    """

    name: str
    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ("result",)
    attributes: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    regions: int = 0
    successors: int = 0
    traits: int = Trait.NONE
    effects: tuple[tuple[Effect, str | None], ...] = ()
    verify: Callable[[Operation], None] | None = None
    fold: Callable[[Operation, Sequence[Attribute | None]], Sequence[Fold] | None] | None = None
    numpy: Callable[..., Any] | None = None
    llvm: str | None = None
    syntax: str | None = None
    result_hint: str = ""
    dialect: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dialect", self.name.partition(".")[0])

    def has(self, trait: int) -> bool:
        """Whether the op has a trait."""
        return bool(self.traits & trait)


REGISTRY: dict[str, OpRow] = {}


def register(rows: Iterable[OpRow]) -> None:
    """Add rows to the registry; a name twice is a bug."""
    for new in rows:
        if new.name in REGISTRY:
            raise InternalError(f"op {new.name} registered twice")
        REGISTRY[new.name] = new


def row(name: str) -> OpRow:
    """The row of op `name`; an unregistered one gets a row of unknown effects (for text from other tools)."""
    found = REGISTRY.get(name)
    return found if found is not None else OpRow(name, effects=((Effect.UNKNOWN, None),))
