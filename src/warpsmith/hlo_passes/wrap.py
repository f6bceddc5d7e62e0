"""A module as the schedule wants it: nothing but fusions, and ops that stay by themselves.

In: a module.  Out: a module in which each plain op that an emitter takes is inside a kLoop fusion of its own, under
the op's name, in every computation that control flow reaches; constants of one value go into the fusion with it.
Small calls are spliced in first.  Where the host computes (`host`: on the CPU), large products are taken out of
fusions, and so are dynamic-update-slices that may write in place and ops that no emitter takes.  Everything else stays
as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from warpsmith.fusion.support import (
    has_many_buffers,
    has_odd_computation,
    host_reason,
    is_large_product,
    may_update_in_place,
)
from warpsmith.fusion.traversal import reshape_is_bitcast
from warpsmith.hlo.builder import ComputationBuilder
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule, frozen
from warpsmith.hlo.shapes import TupleShape
from warpsmith.hlo_passes.computation_flattener import flatten
from warpsmith.hlo_passes.inline_calls import inline_calls, spliced
from warpsmith.hlo_passes.kit import Rewriting, rewrite_steps, with_operands
from warpsmith.hlo_passes.support.split import split_out

__all__ = ["wrap"]


Lacking = Callable[[HloInstruction], Collection[str]]
"""The opcodes in a fusion's body for which no emitter takes it."""


Takes = Callable[[HloInstruction], bool]
"""Whether an emitter takes a fusion of one op that runs on the host otherwise."""


def wrap(
    module: HloModule, *, host: Lacking | None = None, takes: Takes | None = None, splits: bool = False
) -> HloModule:
    """The module with calls spliced in and plain ops wrapped; the module itself when there is nothing to do.

    With `host`, which says what can't stay in a fusion, fusions lose what the host does better.  With `takes` scatters,
    for which only some machines have an emitter, become kernels, too.  With `splits`, a fusion that `takes` refuses for
    its scatter or for its many buffers is taken apart.
    """
    inlined = inline_calls(flatten(module))
    if takes is not None and splits:
        inlined = _with_odd_apart(inlined, takes)
    entry = inlined.entry

    def rule(at: Rewriting) -> HloInstruction | None:
        old = at.old
        if old.opcode == "fusion":
            apart = _better_apart(at.computation, old, host(old), at.computation is entry) if host else []
            return split_out(at, old, apart) if apart else None
        if _is_free_reshape(old):
            return at.emit(HloInstruction(old.name, "bitcast", old.shape, at.operands(old), origin=old.origin))
        scatters = takes is not None and old.opcode == "scatter" and not has_odd_computation(old)
        asks = scatters or has_many_buffers(old)
        if not scatters and (
            host_reason(old) is not None or (host is not None and _updates_in_place(at.computation, old, entry))
        ):
            return None
        body, outside = _body(old, at.fresh(f"wrapped_{old.opcode}"), in_place=scatters)
        at.bodies.append(body)
        attributes: dict[str, object] = {"kind": "kLoop", "calls": body}
        if old.metadata is not None:
            attributes["metadata"] = old.metadata
        operands = tuple(at.new[each] for each in outside)
        fusion = HloInstruction(old.name, "fusion", old.shape, operands, frozen(attributes), origin=old.origin)
        if asks and takes is not None and not takes(fusion):
            at.bodies.pop()
            return None
        return at.emit(fusion)

    return rewrite_steps(inlined, rule)


def _with_odd_apart(module: HloModule, takes: Takes) -> HloModule:
    """The module without fusions of a scatter, or of more buffers than a GPU passes, that no emitter takes."""

    def rule(at: Rewriting) -> HloInstruction | None:
        old = at.old
        if old.opcode != "fusion":
            return None
        body = old.attr("calls", HloComputation)
        scatters = body.root.opcode == "scatter"
        if not (scatters or has_many_buffers(old)) or takes(old):
            return None
        return split_out(at, old, [body.root]) if scatters else spliced(at, old, body)

    return rewrite_steps(module, rule)


def _updates_in_place(computation: HloComputation, op: HloInstruction, entry: HloComputation) -> bool:
    return bool(op.operands) and may_update_in_place(computation, op, op.operands[0], is_entry=computation is entry)


def _better_apart(
    computation: HloComputation, fusion: HloInstruction, lacking: Collection[str], is_entry: bool
) -> list[HloInstruction]:
    """Ops of a fusion's body that the host does better."""
    body = fusion.attr("calls", HloComputation)
    found: list[HloInstruction] = []
    roots = set(body.root.operands if body.root.opcode == "tuple" else (body.root,))
    outer = dict(zip(body.parameters, fusion.operands, strict=True))
    for op in body:
        if is_large_product(op) or op.opcode in lacking:
            found.append(op)
        elif op.opcode == "dynamic-update-slice" and op in roots and not body.users(op)[1:]:
            buffer = op.operands[0]
            while buffer.opcode == "bitcast":
                buffer = buffer.operands[0]
            given = outer.get(buffer)
            if given is not None and may_update_in_place(computation, op, given, fusion, is_entry=is_entry):
                found.append(op)
    return found


def _is_free_reshape(instruction: HloInstruction) -> bool:
    if instruction.opcode != "reshape":
        return False
    shape, source = instruction.shape, instruction.operands[0].shape
    return (
        not isinstance(shape, TupleShape) and not isinstance(source, TupleShape) and reshape_is_bitcast(source, shape)
    )


def _body(instruction: HloInstruction, name: str, *, in_place: bool) -> tuple[HloComputation, list[HloInstruction]]:
    """The op in a computation of its own, and the caller's instructions that its parameters stand for.

    An op that writes `in_place` has a parameter an operand: what it changes isn't what it reads.
    """
    builder = ComputationBuilder(name)
    known: dict[HloInstruction, HloInstruction] = {}
    operands: list[HloInstruction] = []
    outside: list[HloInstruction] = []
    for operand in instruction.operands:
        literal = operand.literal
        if operand in known and not in_place:
            operands.append(known[operand])
            continue
        if literal is not None and not literal.is_tuple and literal.is_splat and not in_place:
            operands.append(builder.constant(literal, operand.name))
        else:
            operands.append(builder.parameter(len(outside), operand.shape, f"param_{len(outside)}"))
            outside.append(operand)
        known[operand] = operands[-1]
    builder.append(_renamed_if_taken(with_operands(instruction, operands), operands))
    return builder.build(), outside


def _renamed_if_taken(root: HloInstruction, others: Sequence[HloInstruction]) -> HloInstruction:
    taken = {each.name for each in others}
    name = root.name
    while name in taken:
        name += ".op"
    return replace(root, name=name)
