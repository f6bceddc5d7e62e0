"""The elementwise table: opcode and kind of element to the rows that emit it.

In: an instruction and its operands' scalars.  Out: the result's scalars.  `emit_scalars` serves both the functions of
a fusion and called computations (reducers, map bodies).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpsmith.dtypes import DType
from warpsmith.emitters.elemental.bits import bitcast_element
from warpsmith.emitters.elemental.complex_functions import COMPLEX_FUNCTION_ROWS
from warpsmith.emitters.elemental.complex_inverses import COMPLEX_INVERSE_ROWS
from warpsmith.emitters.elemental.complexes import COMPLEX_ROWS
from warpsmith.emitters.elemental.converts import convert
from warpsmith.emitters.elemental.emitter import ElementalEmitter, Emission, Indices, Values
from warpsmith.emitters.elemental.floats import FLOAT_ROWS
from warpsmith.emitters.elemental.integers import INTEGER_ROWS
from warpsmith.emitters.elemental.scalars import Row, Scalar, Scalars, as_bool, is_small, narrow, widen
from warpsmith.emitters.kernel.types import scalar_type
from warpsmith.errors import UnsupportedFusion
from warpsmith.fusion.operand_maps import index_dims
from warpsmith.hlo.module import HloInstruction
from warpsmith.ir.core.ssa import Value
from warpsmith.numerics.functions.table import BY_OPCODE, implemented

__all__ = ["ELEMENTWISE", "elementwise", "emit_scalars"]


def _select(s: Scalars) -> Values:
    condition = as_bool(s, s.args[0][0])
    return tuple(s.select(condition, x, y) for x, y in zip(s.args[1], s.args[2], strict=True))


def _convert(s: Scalars) -> Values:
    operand = s.instruction.operands[0]
    source, target = operand.array_shape.dtype, s.instruction.array_shape.dtype
    if not s.emitter.strict and operand.opcode == "convert" and operand.operands[0].array_shape.dtype is target:
        narrowed = s.args[0][0].defining_op  # excess precision: there and back is where it was
        if (
            narrowed is not None
            and narrowed.name == "arith.truncf"
            and narrowed.operands[0].type is scalar_type(target)
        ):
            return (narrowed.operands[0],)
    return convert(s, s.args[0], source, target)


def _bitcast_convert(s: Scalars) -> Values:
    return bitcast_element(s, s.args[0], s.instruction.array_shape.dtype)


def _copy(s: Scalars) -> Values:
    return s.args[0]


_ANY_KIND: dict[str, Scalar] = {
    "select": _select,
    "convert": _convert,
    "bitcast-convert": _bitcast_convert,
    "copy": _copy,
}
"""Rows that look at no kind: the same for every element type."""

_NEVER_ZERO = frozenset({"multiply", "divide", "power", "atan2"})
"""Ops whose results are positive where the operands are: as those of f8e8m0fnu, which has no zero."""


def _at_least_tiny(s: Scalars, value: Value) -> Value:
    """A result that vanished in f32 as the least number of it, which rounds to that of f8e8m0fnu; 0 would be NaN."""
    zero, tiny = s.emitter.constant(0.0, value.type), s.emitter.constant(2.0**-149, value.type)
    return s.select(s.cmpf("oeq", value, zero), tiny, value)


_COMPLEX: dict[str, Row] = COMPLEX_ROWS | COMPLEX_FUNCTION_ROWS | COMPLEX_INVERSE_ROWS
implemented("emitters/elemental/complex*.py", _COMPLEX, [row.opcode for row in BY_OPCODE.values() if row.complex])

_TABLES: tuple[Mapping[str, Row], ...] = (INTEGER_ROWS, FLOAT_ROWS, _COMPLEX)


ELEMENTWISE: frozenset[str] = frozenset(_ANY_KIND) | {name for table in _TABLES for name in table}
"""Opcodes that `emit_scalars` takes."""


def _row(opcode: str, dtype: DType) -> Scalar | None:
    for table in _TABLES:
        row = table.get(opcode)
        found = row.of(dtype.kind) if row is not None else None
        if found is not None:
            return found
    return None


def emit_scalars(emitter: ElementalEmitter, instruction: HloInstruction, args: Sequence[Values]) -> Values:
    """The scalars of an elementwise instruction from those of its operands.

    UnsupportedFusion for an opcode or an element type that no row takes.
    """
    general = _ANY_KIND.get(instruction.opcode)
    dtype = instruction.operands[-1].array_shape.dtype
    scalars = Scalars(emitter, instruction, args, dtype)
    if general is not None:
        return general(scalars)
    row = _row(instruction.opcode, dtype)
    if row is None:
        raise UnsupportedFusion(
            f"no emitter takes '{instruction.opcode}' of {dtype} ('{instruction.name}')",
            span=instruction.span,
            help="convert the operands to a type that has this op, or move it out of the fusion",
        )
    if is_small(dtype):
        values = row(widen(scalars))
        if dtype.name == "f8e8m0fnu" and instruction.opcode in _NEVER_ZERO:
            values = tuple(_at_least_tiny(scalars, value) for value in values)
        return narrow(scalars, values, instruction.array_shape.dtype)
    return row(scalars)


def elementwise(emitter: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """Operands of the instruction's rank are read at its index; scalars at no index."""
    args: tuple[Values, ...] = ()
    for operand in instruction.operands:
        args += ((yield operand, indices if len(index_dims(operand)) == len(indices) else ()),)
    return emit_scalars(emitter, instruction, args)
