"""Called computations (reducers, map bodies): straight code on scalars.

In: a computation and its arguments' scalars.  Out: the scalars of its root.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.emitters.elemental.elementwise import ELEMENTWISE, emit_scalars
from warpsmith.emitters.elemental.emitter import ElementalEmitter, Values, location_of
from warpsmith.emitters.elemental.structural import literal_scalars
from warpsmith.emitters.kernel.types import element_types
from warpsmith.errors import UnsupportedFusion
from warpsmith.fusion.combiners import combiner_opcode
from warpsmith.hlo.module import HloComputation, HloInstruction

__all__ = ["combiner_opcode", "inline_computation"]

_MOVES = frozenset(("bitcast", "reshape", "broadcast", "copy", "transpose"))


def inline_computation(e: ElementalEmitter, computation: HloComputation, args: Sequence[Values]) -> Values:
    """Emit `computation` at the insertion point; `args[k]` are the parts of parameter k.

    UnsupportedFusion for an op that works on more than scalars.
    """
    values: dict[HloInstruction, Values] = {}
    outer = e.b.location
    for instruction in computation.instructions:
        e.b.location = location_of(instruction)
        values[instruction] = _scalars(e, computation, instruction, values, args)
    e.b.location = outer
    return values[computation.root]


def _scalars(
    e: ElementalEmitter,
    computation: HloComputation,
    instruction: HloInstruction,
    values: dict[HloInstruction, Values],
    args: Sequence[Values],
) -> Values:
    operands = [values[operand] for operand in instruction.operands]
    scalar = all(leaf.elements == 1 for leaf in instruction.shape.leaves())
    match instruction.opcode:
        case "parameter" if instruction.parameter_number is not None:
            return args[instruction.parameter_number]
        case "constant" if instruction.literal is not None and scalar and not instruction.literal.is_tuple:
            return literal_scalars(e, instruction.literal)
        case "tuple":
            return tuple(part for each in operands for part in each)
        case "get-tuple-element":
            leaves = instruction.operands[0].shape.leaves()
            number = instruction.attr("index", int)
            first = sum(len(element_types(leaf.dtype)) for leaf in leaves[:number])
            return operands[0][first : first + len(element_types(leaves[number].dtype))]
        case opcode if opcode in ELEMENTWISE and scalar:
            return emit_scalars(e, instruction, operands)
        case opcode if (
            opcode in _MOVES
            and scalar
            and instruction.operands[0].shape.leaves()[0].dtype is instruction.array_shape.dtype
        ):
            return operands[0]
        case "map" | "call" if scalar and e.caller is not None:
            return e.caller(e, instruction.attr("to_apply", HloComputation), operands)
        case _:
            raise UnsupportedFusion(
                f"'{instruction.opcode}' ('{instruction.name}') in '{computation.name}' isn't arithmetic on scalars",
                span=instruction.span,
                help="called computations of a fusion hold elementwise ops on scalars only",
            )
