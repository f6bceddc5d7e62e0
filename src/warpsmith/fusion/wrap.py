"""Plain ops of an entry become fusions of one op, so that emitters see nothing but fusions.

In: a module.  Out: a module whose entry has each op that an emitter takes inside a kLoop fusion of its own, under the
op's name; constants of one value go into the fusion with it.  Everything else stays as it is.
"""

from __future__ import annotations

from warpsmith.fusion.support import host_reason
from warpsmith.fusion.traversal import reshape_is_bitcast
from warpsmith.hlo.builder import ComputationBuilder
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule, frozen
from warpsmith.hlo.shapes import TupleShape

__all__ = ["wrap"]


def wrap(module: HloModule) -> HloModule:
    """The module with the entry's plain ops wrapped; the module itself when there is none."""
    if not any(_wraps(each) for each in module.entry):
        return module
    names = {computation.name for computation in module.computations}
    bodies: list[HloComputation] = []
    replaced: dict[HloInstruction, HloInstruction] = {}
    instructions: list[HloInstruction] = []
    for old in module.entry:
        if _wraps(old):
            body, outside = _body(old, _fresh(f"wrapped_{old.opcode}", names))
            bodies.append(body)
            operands = tuple(replaced[each] for each in outside)
            attributes: dict[str, object] = {"kind": "kLoop", "calls": body}
            if old.metadata is not None:
                attributes["metadata"] = old.metadata
            new = HloInstruction(old.name, "fusion", old.shape, operands, frozen(attributes), origin=old.origin)
        elif _is_free_reshape(old):
            new = HloInstruction(old.name, "bitcast", old.shape, (replaced[old.operands[0]],), origin=old.origin)
        elif all(replaced[each] is each for each in old.operands):
            new = old
        else:
            operands = tuple(replaced[each] for each in old.operands)
            new = HloInstruction(
                *(
                    old.name,
                    old.opcode,
                    old.shape,
                    operands,
                    old.attributes,
                    old.literal,
                    old.parameter_number,
                    old.origin,
                )
            )
        replaced[old] = new
        instructions.append(new)
    entry = module.entry
    new_entry = HloComputation(entry.name, tuple(instructions), replaced[entry.root], entry.attributes, entry.origin)
    computations: list[HloComputation] = []
    for computation in module.computations:
        if computation is entry:
            computations += [*bodies, new_entry]
        else:
            computations.append(computation)
    return HloModule(module.name, tuple(computations), new_entry, module.attributes, module.style)


def _wraps(instruction: HloInstruction) -> bool:
    return host_reason(instruction) is None and not _is_free_reshape(instruction)


def _is_free_reshape(instruction: HloInstruction) -> bool:
    if instruction.opcode != "reshape":
        return False
    shape, source = instruction.shape, instruction.operands[0].shape
    return (
        not isinstance(shape, TupleShape) and not isinstance(source, TupleShape) and reshape_is_bitcast(source, shape)
    )


def _fresh(name: str, taken: set[str]) -> str:
    candidate, count = name, 0
    while candidate in taken:
        count += 1
        candidate = f"{name}.{count}"
    taken.add(candidate)
    return candidate


def _body(instruction: HloInstruction, name: str) -> tuple[HloComputation, list[HloInstruction]]:
    """The op in a computation of its own, and the entry instructions that its parameters stand for."""
    builder = ComputationBuilder(name)
    inside: dict[HloInstruction, HloInstruction] = {}
    outside: list[HloInstruction] = []
    for operand in instruction.operands:
        if operand in inside:
            continue
        literal = operand.literal
        if literal is not None and not literal.is_tuple and literal.is_splat:
            inside[operand] = builder.constant(literal, operand.name)
        else:
            inside[operand] = builder.parameter(len(outside), operand.shape, f"param_{len(outside)}")
            outside.append(operand)
    operands = tuple(inside[each] for each in instruction.operands)
    root = HloInstruction(
        *(instruction.name, instruction.opcode, instruction.shape, operands, instruction.attributes),
        origin=instruction.origin,
    )
    builder.append(_renamed_if_taken(root, inside))
    return builder.build(), outside


def _renamed_if_taken(root: HloInstruction, inside: dict[HloInstruction, HloInstruction]) -> HloInstruction:
    taken = {each.name for each in inside.values()}
    name = root.name
    while name in taken:
        name += ".op"
    if name == root.name:
        return root
    return HloInstruction(name, root.opcode, root.shape, root.operands, root.attributes, origin=root.origin)
