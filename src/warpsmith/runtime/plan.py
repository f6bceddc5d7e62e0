"""What an executable runs: steps in order over numbered buffers.

In: nothing.  Out: the classes that the compiler fills and `runner` walks.  A plan of a loop's body or a branch is a
plan like any other; its parameters and outputs are handed over by reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType
from warpsmith.runtime.cpu_executable import CpuKernel

__all__ = [
    "BranchStep",
    "BufferSpec",
    "CopyStep",
    "HostStep",
    "KernelInfo",
    "KernelStep",
    "LaunchStep",
    "Plan",
    "RunStep",
    "UpdateStep",
    "WhileStep",
]


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """One buffer: the logical shape, the element type, and the order of dims in memory, minor first."""

    dims: tuple[int, ...]
    dtype: DType
    minor_to_major: tuple[int, ...]

    @property
    def is_row_major(self) -> bool:
        """Whether the last dim is fastest and the first slowest, in memory."""
        return self.minor_to_major == tuple(range(len(self.dims) - 1, -1, -1))

    @property
    def byte_size(self) -> int:
        """Bytes that the array takes in memory, sub-byte elements packed."""
        return self.dtype.byte_size(math.prod(self.dims))

    @property
    def physical_dims(self) -> tuple[int, ...]:
        """The dims in memory order, major first."""
        return tuple(self.dims[d] for d in reversed(self.minor_to_major))

    def logical(self, physical: Array) -> Array:
        """The view with HLO's dims of memory in the buffer's layout."""
        if self.is_row_major:
            return physical
        order = self.minor_to_major[::-1]
        return physical.transpose([order.index(d) for d in range(len(order))])

    def physical(self, logical: Array) -> Array:
        """Contiguous memory in the buffer's layout; a view where that is possible."""
        array = np.asarray(logical, dtype=self.dtype.numpy).reshape(self.dims)
        if not self.is_row_major:
            array = array.transpose(self.minor_to_major[::-1])
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)

    def describe(self) -> str:
        """As HLO writes it: `f32[4,8]{0,1}`."""
        layout = "" if self.is_row_major else f"{{{','.join(map(str, self.minor_to_major))}}}"
        return f"{self.dtype}[{','.join(map(str, self.dims))}]{layout}"


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What a user may ask of a kernel or a host step.

    `computation` is where it stands ("" for the entry); `opcode` and `reason` say what a host step does, and why there.
    One that is `unchecked` is computed by the reference interpreter's own code, so that a comparison with it says
    nothing about this step.
    """

    fusion: str
    emitter: str
    variant: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    host: bool = False
    bytes: int = 0  # inputs and outputs, each counted once
    computation: str = ""
    opcode: str = "fusion"
    reason: str = ""
    unchecked: bool = False


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A kernel over buffers: inputs in order, then outputs.  `frees`: storages whose last use this is.

    `aliases`: (output, input) pairs, by position, that are one buffer to the kernel: the input's memory, or a copy of
    it where that isn't the plan's to write to, or is needed later.
    """

    kernel: CpuKernel
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str
    frees: tuple[int, ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchStep:
    """A kernel that isn't this processor's machine code: `launch` runs it on arrays in HLO's dims, in a simulator say,
    or raises what says why nothing does."""

    launch: Callable[[Sequence[Array]], Sequence[Array]]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str
    frees: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class HostStep:
    """A function of arrays (in HLO's dims) that runs on the host, for ops without an emitter."""

    function: Callable[[Sequence[Array]], Sequence[Array]]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str
    frees: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateStep:
    """A host function that writes into its first array, which becomes the output: a copy of it unless the plan owns
    its memory and nobody needs it any more."""

    function: Callable[[Sequence[Array]], None]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str
    frees: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyStep:
    """The input's elements in the output's layout."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str
    frees: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class WhileStep:
    """`body` on the state for as long as `condition` gives true.

    `inputs` are the state, which both plans take whole; `outputs` stand for its places `carried`, which the body gives
    anew.  The other places stay what they are.
    """

    condition: Plan
    body: Plan
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    carried: tuple[int, ...]
    name: str
    frees: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BranchStep:
    """The branch that the first input chooses: pred takes the first for true, a number out of range the last.

    The other inputs are the branches' parameters, one branch after another.
    """

    branches: tuple[Plan, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str
    frees: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RunStep:
    """A plan of its own, run once."""

    plan: Plan
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str
    frees: tuple[int, ...] = ()


AnyStep: TypeAlias = KernelStep | LaunchStep | HostStep | UpdateStep | CopyStep | WhileStep | BranchStep | RunStep


@dataclass(slots=True)
class Plan:
    """Steps in order over numbered buffers.

    `storage[b]` is the buffer whose memory b shares: itself, unless b is a view of another (a bitcast).  `constants`
    hold their arrays in memory order; `outputs` may repeat, or name parameters and constants.  `donors` are the
    parameters whose memory the module's header gives away.
    """

    buffers: list[BufferSpec]
    storage: list[int]
    parameters: list[int]
    outputs: list[int]
    steps: list[AnyStep]
    constants: Mapping[int, Array] = field(default_factory=dict[int, Array])
    parameter_names: list[str] = field(default_factory=list[str])
    donors: tuple[int, ...] = ()

    def is_repacked(self, buffer: int) -> bool:
        """Whether a view's elements lie otherwise than its storage's: elements of 2 or 4 bits have a byte each."""
        bits, stored = self.buffers[buffer].dtype.bits, self.buffers[self.storage[buffer]].dtype.bits
        return bits != stored and min(bits, stored) < 8
