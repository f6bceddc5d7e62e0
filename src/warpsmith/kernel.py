"""A kernel before its passes: what the emitters and tile dispatch both give, and back ends take.

In: IR and facts.  Out: `Kernel`: a module with one entry function, the buffers that the entry takes, how it is
launched, and where it came from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.launch import Launch

__all__ = ["Argument", "Kernel", "Launch"]

Origin = TypeVar("Origin", covariant=True)


@dataclass(frozen=True, slots=True)
class Argument:
    """One buffer of the kernel's ABI: inputs in operand order, then the output leaves.

    `minor_to_major` orders the dims in memory.  `whole_words`: its memory has to reach to the end of its last 32-bit
    word, since a GPU's atomic steps on narrower elements exchange the word around them; what else the word holds keeps
    its value.
    """

    name: str
    dtype: DType
    dims: tuple[int, ...]
    minor_to_major: tuple[int, ...]
    is_output: bool
    whole_words: bool = False

    @property
    def elements(self) -> int:
        """How many elements."""
        return math.prod(self.dims)

    @property
    def byte_size(self) -> int:
        """Bytes in memory, elements narrower than a byte packed."""
        return self.dtype.byte_size(self.elements)

    def to_memory(self, array: Array) -> Array:
        """An array's elements in memory order, flat."""
        return np.ascontiguousarray(array.transpose(self.minor_to_major[::-1])).reshape(-1)

    def from_memory(self, data: Array) -> Array:
        """The array whose elements in memory order are `data`; the inverse of `to_memory`."""
        order = self.minor_to_major[::-1]
        typed = data if data.dtype == self.dtype.numpy else data.view(self.dtype.numpy)
        return typed.reshape([self.dims[d] for d in order]).transpose([order.index(d) for d in range(len(order))])


@dataclass(frozen=True, eq=False)
class Kernel(Generic[Origin]):
    """A kernel before any pass.

    `module` is a builtin.module whose entry has `xla.entry`; passes rewrite it in place.  `form` is what the entry
    works on: tensors, as emitters make them, or buffers, as tile dispatch does.  `aliases`: (output, input) pairs that
    are one buffer: the launch passes the output's address for both, with the input's contents there.  `origin` is what
    a report says of where the kernel came from.
    """

    name: str
    module: Operation
    arguments: tuple[Argument, ...]
    launch: Launch
    origin: Origin
    form: Literal["tensors", "buffers"] = "tensors"
    aliases: tuple[tuple[int, int], ...] = ()

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The arguments that the kernel reads."""
        return tuple(each for each in self.arguments if not each.is_output)

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The arguments that the kernel writes."""
        return tuple(each for each in self.arguments if each.is_output)

    @property
    def bytes_moved(self) -> int:
        """What a launch reads and writes; a buffer that is updated in place stays where it is, but for what is new."""
        inputs, outputs = self.inputs, self.outputs
        untouched = sum(outputs[i].byte_size + inputs[j].byte_size for i, j in self.aliases)
        return sum(each.byte_size for each in self.arguments) - untouched
