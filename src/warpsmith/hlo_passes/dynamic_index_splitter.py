"""dynamic-index-splitter: a vector of start indices becomes scalars.

    s = f32[2,3] dynamic-slice(x, i), dynamic_slice_sizes={2,3}          i is s32[2]
->
    s.slice = s32[1] slice(i), slice={[0:1]}
    s.reshape = s32[] reshape(s.slice)       ... and so for every dim
    s.dynamic-slice = f32[2,3] dynamic-slice(x, s.reshape, s.reshape.1), dynamic_slice_sizes={2,3}
"""

from __future__ import annotations

from warpsmith.devices import Device
from warpsmith.hlo.attributes import SliceDim
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo_passes.kit import Rewriting, of_dims, rewrite

__all__ = ["CONTRACT", "run"]

CONTRACT = "E"

_FIRST_INDEX = {"dynamic-slice": 1, "dynamic-update-slice": 2}


def run(module: HloModule, _: Device) -> HloModule:
    """`module` with scalar start indices throughout."""
    return rewrite(module, _rule)


def _rule(at: Rewriting) -> HloInstruction | None:
    old = at.old
    first = _FIRST_INDEX.get(old.opcode)
    if first is None or len(old.operands) != first + 1 or old.operands[first].array_shape.rank != 1:
        return None
    given = at.operands(old)
    vector = given[first]
    scalars: list[HloInstruction] = []
    for d in range(vector.array_shape.dims[0]):
        one = at.add("slice", of_dims(vector, (1,)), [vector], {"slice": (SliceDim(d, d + 1),)})
        scalars.append(at.reshape(one, ()))
    operands = [*given[:first], *scalars]
    return at.add(old.opcode, old.shape, operands, old.attributes)
