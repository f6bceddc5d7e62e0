"""Which threads run a region: the bounds of its loops over threads, and what each thread still has to ask.

In: the conditions around a region, outermost first.  Out: a `Mask`.  A condition that ids and constants decide narrows
the bounds (`if tid < 32` is a loop to 32); what isn't one run of threads, or is known only at run time, is tested.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from warpsmith.arrays import Array
from warpsmith.ir.core.ssa import Value

__all__ = ["Mask", "Test", "everyone"]


@dataclass(frozen=True, slots=True)
class Test:
    """A condition, and whether it must hold or fail."""

    condition: Value
    holds: bool


@dataclass(frozen=True, eq=False, slots=True)
class Mask:
    """`active`: the threads that known conditions let through; `known`: those conditions, where the threads are no
    single run; `asked`: conditions that are known only at run time.

    `first` is the number of an active thread, made at run time where `asked` has conditions.
    """

    active: Array
    known: tuple[Test, ...] = ()
    asked: tuple[Test, ...] = ()
    first: Value | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no thread is active."""
        return not bool(self.active.any())

    @property
    def is_everyone(self) -> bool:
        """Whether all threads are active, and nothing at run time says otherwise."""
        return not self.asked and bool(self.active.all())

    @property
    def bounds(self) -> tuple[int, int]:
        """The first active thread, and the one after the last."""
        where = np.flatnonzero(self.active)
        return int(where[0]), int(where[-1]) + 1

    @property
    def count(self) -> int:
        """Active threads, as far as known conditions say."""
        return int(np.count_nonzero(self.active))

    @property
    def tests(self) -> tuple[Test, ...]:
        """What each thread within the bounds has to ask."""
        return self.known + self.asked

    def narrowed(self, test: Test, values: Array) -> Mask:
        """The threads for which a known condition holds (or fails) as well."""
        holds = np.broadcast_to(values.astype(np.bool_), self.active.shape)
        active = self.active & (holds if test.holds else ~holds)
        one_run = int(np.count_nonzero(np.diff(np.concatenate(([False], active, [False])).astype(np.int8)))) <= 2
        return replace(self, active=active, known=() if one_run else (*self.known, test))

    def asking(self, test: Test) -> Mask:
        """The threads that pass a test at run time as well; `first` is still to be found."""
        return replace(self, asked=(*self.asked, test), first=None)


def everyone(threads: int) -> Mask:
    """All threads of a block."""
    return Mask(np.ones(threads, np.bool_))
