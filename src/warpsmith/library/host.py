"""What runs on the host: ops without an emitter, as functions of arrays.

In: an instruction.  Out: a function of its operands' leaves that gives its result's leaves, in HLO's dims.  Large
products and sorts by keys go to a library, the rest to the reference interpreter's own rules: comparing these with the
interpreter says nothing.
Making the function checks that every op inside has a rule, so that an unsupported one is named before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.hlo.evaluator.interpreter import Interpreter, array_leaves, array_values, nested, owned
from warpsmith.hlo.evaluator.ops.indexed import start_indices
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo.traversal import callees_first
from warpsmith.library.dot_and_convolution import HostFunction, library_function
from warpsmith.library.sort import sort_function

__all__ = ["UpdateFunction", "host_function", "independent_function", "update_function"]

UpdateFunction = Callable[[Sequence[Array]], None]


def independent_function(instruction: HloInstruction) -> HostFunction | None:
    """The function of one op where it isn't the reference interpreter's: a library's product, or a sort by keys."""
    return sort_function(instruction) if instruction.opcode == "sort" else library_function(instruction)


def host_function(instruction: HloInstruction) -> HostFunction:
    """The function of one op.  UnsupportedHlo, naming the op, when it or an op that it calls has no rule."""
    found = independent_function(instruction)
    if found is not None:
        return found
    interpreter = Interpreter()
    for computation in callees_first(instruction.called_computations):
        for each in computation:
            if each.opcode != "parameter":
                interpreter.make_kernel(each)
    kernel = interpreter.make_kernel(instruction)
    shapes = [operand.shape for operand in instruction.operands]
    plain = all(isinstance(shape, Shape) for shape in shapes) and all(len(array_leaves(shape)) == 1 for shape in shapes)

    def run(arrays: Sequence[Array]) -> Sequence[Array]:
        interpreter.restart()
        supply: Iterator[Array] = iter(arrays)
        values = arrays if plain else [nested(shape, supply) for shape in shapes]
        with np.errstate(all="ignore"):
            return owned(array_values(kernel(values), instruction.shape), arrays)

    return run


def update_function(instruction: HloInstruction) -> UpdateFunction:
    """A dynamic-update-slice that writes into its first array."""
    dtypes = [operand.array_shape.dtype for operand in instruction.operands[2:]]
    sizes = instruction.operands[1].array_shape.dims
    room = [dim - size for dim, size in zip(instruction.array_shape.dims, sizes, strict=True)]
    plain = len(dtypes) == len(room) and all(dtype.bits >= 8 for dtype in dtypes)

    def run(arrays: Sequence[Array]) -> None:
        target, update, *indices = arrays
        if plain:  # a few microseconds, in loops often
            starts = [min(max(int(index), 0), most) for index, most in zip(indices, room, strict=True)]
        else:
            starts = start_indices(indices, dtypes, room)
        target[tuple([slice(start, start + size) for start, size in zip(starts, sizes, strict=True)])] = update

    return run
