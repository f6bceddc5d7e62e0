"""Atomic operations of many threads at once, in the order of the threads.

Threads that meet at one address take turns: first the first thread of each address, then the second of each, and so on.
Where nobody asks for the old value, a plain sum is left to numpy, which adds in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.ptx.spec import Compute, Form
from warpsmith.simt.ptx.text.module import TYPE_BITS
from warpsmith.simt.ptx.values import UNSIGNED, flush, reader, writer

__all__ = ["ATOMICS", "Atomic", "atomic_of"]

_SMALL = 2.0**-100


def _increment(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, np.zeros_like(old), old + old.dtype.type(1))


def _decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


def _exchange(_old: Array, new: Array) -> Array:
    return new


ATOMICS: dict[str, Compute] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": _exchange,
    "inc": _increment,
    "dec": _decrement,
}
_FLOAT: dict[str, Compute] = {"add": np.add, "min": np.fmin, "max": np.fmax, "exch": ATOMICS["exch"]}
_PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}
_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})


class Atomic:
    """One operation on one type.  `apply` changes memory and gives what was there before, as bits."""

    def __init__(self, name: str, type: str, flushes: bool) -> None:
        self.name = name
        self.type = type
        self.bits = TYPE_BITS[type]
        self.flushes = flushes
        self.halves = _PAIRS.get(type)
        element = self.halves or type
        self.function = (_FLOAT if element in _FLOATS else ATOMICS).get(name)
        self.read: Callable[[Array], Array] = reader(element)
        self.write: Callable[[Array], Array] = writer(element)

    def combine(self, old: Array, value: Array) -> Array:
        """Bits and bits to bits, for threads that don't meet."""
        assert self.function is not None
        if self.halves is not None:
            shift = np.uint32(16)
            low = self._scalar(old.astype(np.uint16), value.astype(np.uint16))
            high = self._scalar((old >> shift).astype(np.uint16), (value >> shift).astype(np.uint16))
            return low.astype(np.uint32) | (high.astype(np.uint32) << shift)
        return self._scalar(old, value)

    def _scalar(self, old: Array, value: Array) -> Array:
        assert self.function is not None
        a, b = self.read(old), self.read(value)
        if self.flushes:
            a, b = flush(a, "f32"), flush(b, "f32")
        result = self.function(a, b)
        return self.write(flush(result, "f32") if self.flushes else result)

    def apply(self, view: Array, positions: Array, value: Array, swap: Array | None, wanted: bool) -> Array:
        """`view` holds items of the type's width; `value` (and `swap`, what cas puts) one item a position."""
        if not wanted and self._adds_plainly(view, positions, value):
            numbers = view.view(f"f{self.bits // 8}" if self.type[0] == "f" else view.dtype)
            np.add.at(numbers, positions, value.view(numbers.dtype))
            if self.type[0] == "f":
                view[positions] = self.write(numbers[positions])  # a NaN with the bits that the hardware gives it
            return value
        if swap is not None:
            return _swap(view, positions, value, swap)
        if self.name == "add" and self.type[0] in "us":
            return _running_sums(view, positions, value)
        old: Array = np.empty(positions.shape, view.dtype)
        for turn in _turns(positions):
            where = positions[turn]
            before = view[where]
            old[turn] = before
            view[where] = self.combine(before, value[turn])
        return old

    def _adds_plainly(self, view: Array, positions: Array, value: Array) -> bool:
        if self.name != "add" or self.type not in ("u32", "s32", "u64", "s64", "f32", "f64"):
            return False
        if self.type == "f32":
            size = np.abs(np.concatenate([value.view(np.float32), view[positions].view(np.float32)]))
            return not bool(((size < _SMALL) & (size > 0)).any())  # sums of the others can't be subnormal
        return True


def _indices(count: int) -> Array:
    return np.arange(count, dtype=np.int64)


def _swap(view: Array, positions: Array, expected: Array, new: Array) -> Array:
    """cas: at each address the first thread that finds what it expects wins; those after it see its value."""
    old: Array = np.empty(positions.shape, view.dtype)
    left = _indices(positions.shape[0])
    while left.shape[0]:
        where = positions[left]
        now = view[where]
        old[left] = now
        matching = np.flatnonzero(now == expected[left])
        if not matching.size:
            break
        addresses, first = np.unique(where[matching], return_index=True)
        winners = matching[first]
        view[addresses] = new[left[winners]]
        group = np.minimum(np.searchsorted(addresses, where), addresses.size - 1)
        left = left[(addresses[group] == where) & (_indices(left.shape[0]) > winners[group])]
    return old


def _running_sums(view: Array, positions: Array, value: Array) -> Array:
    """Integer sums with the old value of each thread: what was there, plus what the threads before it added."""
    order = np.argsort(positions, kind="stable")
    where, terms = positions[order], value[order]
    before = np.cumsum(terms, dtype=view.dtype) - terms
    first = np.concatenate([[True], where[1:] != where[:-1]])
    group = np.cumsum(first) - 1
    old: Array = np.empty(positions.shape, view.dtype)
    old[order] = view[where] + before - before[first][group]
    np.add.at(view, positions, value)
    return old


def _turns(positions: Array) -> Iterator[Array]:
    """The threads in groups: each group has an address at most once, and a thread comes after those before it."""
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    if first.all():
        yield order
        return
    starts = np.flatnonzero(first)
    rank = np.arange(order.size) - np.repeat(starts, np.diff(np.append(starts, order.size)))
    by_rank = np.argsort(rank, kind="stable")
    bounds = np.searchsorted(rank[by_rank], np.arange(int(rank.max()) + 2))
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        yield order[by_rank[low:high]]


def atomic_of(form: Form, space: str) -> Atomic | None:
    """The operation that an atom or red instruction names; None for one that doesn't exist."""
    type = form.type
    name = next((part for part in form.parts if part in ATOMICS or part == "cas"), "")
    if not name or TYPE_BITS.get(type, 0) not in UNSIGNED:
        return None
    flushes = type == "f32" and name == "add" and space != "shared"
    found = Atomic(name, type, flushes)
    return found if found.function is not None or name == "cas" else None
