"""What the in-place dynamic-update-slice emitters of both machines share: which buffers, and where elements go.

In: an analysis with in-place updates; an element of an update.  Out: shared buffers; the element's place in the root.
XLA: `xla/codegen/emitters/dynamic_update_slice_kernel_emitter.cc`.
"""

from __future__ import annotations

from warpsmith.emitters.elemental import ElementalEmitter
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.elemental.index_ops import clamp_start
from warpsmith.emitters.shared.loop import outputs_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.reasons import Reason, reason
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import bitcast_map
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import arith

__all__ = ["matches", "place", "update_shape", "updated_parameters"]


def matches(analysis: FusionAnalysis) -> Reason | None:
    """None unless a root is a bitcast to another type, or there is nothing to write."""
    for root, update in zip(analysis.roots, analysis.updates, strict=True):
        if root.array_shape.dtype is not update.array_shape.dtype:
            return reason(f"'{root.name}' is another type's view of the updated buffer")
    if not analysis.updates:
        return reason("no root is a dynamic-update-slice")
    return reason("the update is empty") if 0 in update_shape(analysis).dims else None


def update_shape(analysis: FusionAnalysis) -> Shape:
    """The shape of the updates, which have one."""
    return analysis.updates[0].operands[1].array_shape


def updated_parameters(analysis: FusionAnalysis) -> dict[int, int]:
    """The parameter whose buffer each output shares, by number."""
    found: dict[int, int] = {}
    for root, update in zip(analysis.roots, analysis.updates, strict=True):
        buffer = update.operands[0]
        source = buffer.operands[0] if buffer.opcode == "bitcast" else buffer
        assert source.parameter_number is not None
        for output in outputs_of(analysis, (root,)):
            found[output.number] = source.parameter_number
    return found


def place(e: ElementalEmitter, root: HloInstruction, update: HloInstruction, indices: Indices) -> Indices:
    """Where an element of the update goes in the root."""
    whole, part = update.array_shape, update.operands[1].array_shape
    found: list[Value] = []
    for d, index in enumerate(indices):
        limit = whole.dims[d] - part.dims[d]
        if limit <= 0:  # the start can only be 0: it isn't even read
            found.append(index)
            continue
        source = update.operands[2] if _has_vector_start(update) else update.operands[2 + d]
        (start,) = e.evaluate(source, (e.index(d),) if _has_vector_start(update) else ())
        found.append(arith.binary(e.b, "addi", index, clamp_start(e, start, source, limit)))
    target = root.array_shape
    if root is update:
        return tuple(found)
    return e.apply(bitcast_map(whole.dims, whole.minor_to_major, target.dims, target.minor_to_major), found)


def _has_vector_start(update: HloInstruction) -> bool:
    """One vector of start indices instead of scalars (an older form)."""
    return len(update.operands) == 3 and update.operands[2].array_shape.rank == 1
