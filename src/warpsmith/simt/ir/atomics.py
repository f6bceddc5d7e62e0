"""What atomic ops do in the simulator: threads that meet at one place take turns, in the order of their numbers.

A read-modify-write gives each thread what it found; a compare-and-exchange compares bits, so that of several threads
that expect the same value the first one wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError
from warpsmith.ir.core.ssa import REGISTRY, Operation
from warpsmith.ir.text.format_kinds import ATOMIC_KINDS, LLVM_ATOMICS
from warpsmith.simt.ir.accesses import positions
from warpsmith.simt.ir.interpreter import Frame, Handler, Interpreter
from warpsmith.simt.ir.llvm import places_of, pointer_of, read_bytes, write_bytes
from warpsmith.simt.ir.memory import gather, scatter, where_from
from warpsmith.simt.ir.observe import Elements, saw

__all__ = ["ATOMICS"]

_OPS = "addf addi andi ori xori maxsi maxui minsi minui".split()
_MLIR = "addf addi andi ori xori maxs maxu mins minu".split()
_LLVM = "fadd add _and _or _xor max umax min umin".split()
_COMBINE = {name: f"arith.{op}" for names in (_MLIR, _LLVM) for name, op in zip(names, _OPS, strict=True)}
"""MLIR's names and LLVM's, as the op whose numpy function they share."""

Fetch = Callable[[], Array]
Put = Callable[[Array, Array], None]


def _turns(where: Array, active: Array | None, threads: int) -> Iterator[Array]:
    """Masks of threads that access different places, until each active one has had its turn."""
    where = np.broadcast_to(where, (threads,))
    left = np.ones(threads, np.bool_) if active is None else np.broadcast_to(active, (threads,)).copy()
    while left.any():
        numbers = np.flatnonzero(left)
        _, first = np.unique(where[numbers], return_index=True)
        turn = np.zeros(threads, np.bool_)
        turn[numbers[first]] = True
        yield turn
        left &= ~turn


def _region(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """xla_gpu.atomic_rmw: the body computes the new value."""
    where = np.broadcast_to(positions(interpreter, frame, op, 0, slice(1, None), frame.mask), (frame.threads,))
    buffer, outer = frame.buffer(op.operands[0]), frame.mask
    size = buffer.data.itemsize
    saw(interpreter, frame, op, Elements("atomic", buffer, where * size, size, outer))
    for turn in _turns(where, outer, frame.threads):
        frame.mask = turn
        frame[op.body.args[0]] = gather(buffer, where)
        (new,) = interpreter.block(frame, op.body)
        if not isinstance(new, np.ndarray):
            raise SimulationError(f"{op.name} yields memory{where_from(op)}")
        scatter(buffer, where, new, turn)
    frame.mask = outer
    for result in op.results:
        frame[result] = buffer


def _function(op: Operation, name: str) -> Callable[..., Any]:
    found = REGISTRY[_COMBINE[name]].numpy if name in _COMBINE else None
    if found is None:
        raise SimulationError(f"{op.name} {name}{where_from(op)}")
    return found


def _combine(frame: Frame, op: Operation, name: str, value: Array, where: Array, fetch: Fetch, put: Put) -> None:
    """A read-modify-write of one instruction."""
    compute = _function(op, name)
    value = np.broadcast_to(value, (frame.threads,))
    found = np.array(fetch())
    for turn in _turns(where, frame.mask, frame.threads):
        old = fetch()
        found = np.where(turn, old, found)
        put(compute(op, old, value), turn)
    frame[op.result] = found


def _exchange(frame: Frame, expected: Array, new: Array, where: Array, fetch: Fetch, put: Put) -> tuple[Array, Array]:
    """What was there, and whether it was what was expected."""
    threads = frame.threads
    expected, new = (np.broadcast_to(v, (threads,)) for v in (expected, new))
    seen, done = np.array(fetch()), np.zeros(threads, np.bool_)
    for turn in _turns(where, frame.mask, threads):
        old = fetch()
        same = turn & (_bits(old) == _bits(expected))
        seen, done = np.where(turn, old, seen), done | same
        put(new, same)
    return seen, done


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


# ------------------------------------------------------------------------------------------------- elements of a buffer
def _element(
    interpreter: Interpreter, frame: Frame, op: Operation, base: int, indices: slice
) -> tuple[Array, Fetch, Put]:
    where = np.broadcast_to(positions(interpreter, frame, op, base, indices, frame.mask), (frame.threads,))
    buffer = frame.buffer(op.operands[base])
    size = buffer.data.itemsize
    kind = "cas" if op.name == "xla_gpu.compare_exchange" else "atomic"
    saw(interpreter, frame, op, Elements(kind, buffer, where * size, size, frame.mask))
    return where, lambda: gather(buffer, where), lambda value, mask: scatter(buffer, where, value, mask)


def _memref_rmw(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    where, fetch, put = _element(interpreter, frame, op, 1, slice(2, None))
    _combine(frame, op, ATOMIC_KINDS[op.int_attr("kind")], frame.array(op.operands[0]), where, fetch, put)


def _compare_exchange(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    where, fetch, put = _element(interpreter, frame, op, 0, slice(1, -2))
    expected, new = (frame.array(v) for v in op.operands[-2:])
    frame.bind(op.results, _exchange(frame, expected, new, where, fetch, put))


# -------------------------------------------------------------------------------------------------- bytes at an address
def _address(interpreter: Interpreter, frame: Frame, op: Operation, value: Array) -> tuple[Array, Fetch, Put]:
    pointer = pointer_of(frame, op, 0)
    places = places_of(frame, op, pointer, value.dtype.itemsize, 0, frame.mask)
    where = np.broadcast_to(places, (frame.threads,))
    kind = "cas" if op.name == "llvm.cmpxchg" else "atomic"
    saw(interpreter, frame, op, Elements(kind, pointer.buffer, where, value.dtype.itemsize, frame.mask))
    return (
        where,
        lambda: read_bytes(pointer.buffer, where, value.dtype),
        lambda new, mask: write_bytes(pointer.buffer, where, new, mask),
    )


def _atomicrmw(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    value = frame.array(op.operands[1])
    where, fetch, put = _address(interpreter, frame, op, value)
    _combine(frame, op, LLVM_ATOMICS[op.int_attr("bin_op")], value, where, fetch, put)


def _cmpxchg(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    expected, new = (frame.array(v) for v in op.operands[1:])
    where, fetch, put = _address(interpreter, frame, op, new)
    frame[op.result] = _exchange(frame, expected, new, where, fetch, put)


ATOMICS: dict[str, Handler] = {
    "xla_gpu.atomic_rmw": _region,
    "xla_gpu.compare_exchange": _compare_exchange,
    "memref.atomic_rmw": _memref_rmw,
    "llvm.atomicrmw": _atomicrmw,
    "llvm.cmpxchg": _cmpxchg,
}
