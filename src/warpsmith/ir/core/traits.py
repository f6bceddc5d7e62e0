"""What ops do and are, as bits and enums: the words that op rows (`ssa.py`) are written in."""

from __future__ import annotations

from enum import Enum

__all__ = ["Effect", "Trait"]


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
    DIVISION = 1 << 11  # undefined where the second operand is zero, and for the least integer over -1
    SHIFT = 1 << 12  # undefined where the second operand isn't less than the width
    GUARDED = 1 << 13  # has no effect but touches memory or runs code that may: run only where the program does
