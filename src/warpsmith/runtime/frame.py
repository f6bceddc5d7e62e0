"""The memory of one run of a plan, and the clock that its steps' time goes to.

In: a `Plan` and what its storages hold at first.  Out: arrays of buffers, in memory order or in HLO's dims, and memory
for results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import pack, unpack
from warpsmith.runtime.buffers import ALIGNED_FROM, default_pool, pointer
from warpsmith.runtime.plan import BufferSpec, Plan

__all__ = ["Clock", "Frame", "Maker", "maker_of"]

Maker: TypeAlias = tuple[Callable[[tuple[int, ...], "np.dtype[Any]"], Array], tuple[int, ...], "np.dtype[Any]"]


def maker_of(spec: BufferSpec) -> Maker:
    """What makes an array for a result, and its arguments."""
    make = default_pool().empty if spec.byte_size >= ALIGNED_FROM else np.empty
    return make, spec.physical_dims, spec.dtype.numpy


class Clock:
    """Seconds in kernels and on the host, and how often each ran, over all loops and branches."""

    __slots__ = ("host_seconds", "host_steps", "kernel_seconds", "kernels")

    def __init__(self) -> None:
        self.kernel_seconds = self.host_seconds = 0.0
        self.kernels = self.host_steps = 0


class Frame:
    """One run of a plan: what each storage holds, whether the plan owns it, and where some have a home."""

    __slots__ = ("clock", "homes", "memory", "owned", "plan")

    def __init__(self, plan: Plan, memory: list[Array | None], clock: Clock | None) -> None:
        self.homes: dict[int, Array] = {}
        self.plan = plan
        self.memory = memory
        self.owned = bytearray(len(memory))
        self.clock = clock

    def stored(self, buffer: int) -> Array:
        """A buffer's memory: its storage's, unless one of them takes a byte for an element of 2 or 4 bits."""
        plan = self.plan
        storage = plan.storage[buffer]
        found = self.memory[storage]
        assert found is not None, "a buffer is read after its last use"
        if storage == buffer or not plan.is_repacked(buffer):
            return found
        source, target = plan.buffers[storage].dtype, plan.buffers[buffer].dtype
        codes = found.reshape(-1).view(np.uint8)
        packed = codes if source.bits >= 8 else pack(codes, source.bits)
        return packed if target.bits >= 8 else unpack(packed, target.bits, packed.size * 8 // target.bits)

    def physical(self, buffer: int) -> Array:
        """The array of a buffer in memory order; a view of its storage's."""
        found = self.stored(buffer)
        if self.plan.storage[buffer] == buffer:
            return found
        spec = self.plan.buffers[buffer]
        return found.reshape(-1).view(spec.dtype.numpy).reshape(spec.physical_dims)

    def logical(self, buffer: int) -> Array:
        """The array of a buffer in HLO's dims; a view of its storage's."""
        return self.plan.buffers[buffer].logical(self.physical(buffer))

    def made(self, buffer: int, maker: Maker, alignment: int = 1) -> Array:
        """Memory for a result, in memory order: its home, where that is aligned, or new memory."""
        home = self.homes.get(buffer)
        if home is not None and pointer(home) % alignment == 0:
            return home
        make, dims, dtype = maker
        return make(dims, dtype)

    def put(self, buffer: int, array: Array, owned: bool) -> None:
        """Let a buffer be this array from now on."""
        self.memory[buffer] = array
        self.owned[buffer] = owned

    def take(self, buffers: Sequence[int], frees: Sequence[int]) -> tuple[list[Array | None], list[bool]]:
        """Arrays for a plan inside, and which of them become its own: owned here, needed no more, given once."""
        plan = self.plan
        arrays: list[Array | None] = [self.physical(b) for b in buffers]
        storages = [plan.storage[b] for b in buffers]
        given = [
            bool(self.owned[s]) and s in frees and storages.count(s) == 1 and not plan.is_repacked(b)
            for b, s in zip(buffers, storages, strict=True)
        ]
        for storage, gone in zip(storages, given, strict=True):
            if gone:
                self.memory[storage] = None
        return arrays, given
