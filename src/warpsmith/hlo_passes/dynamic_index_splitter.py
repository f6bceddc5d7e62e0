"""dynamic-index-splitter: a vector of start indices becomes scalars.

    s = f32[2,3] dynamic-slice(x, i), dynamic_slice_sizes={2,3}          i is s32[2]
->
    s.slice = s32[1] slice(i), slice={[0:1]}
    s.reshape = s32[] reshape(s.slice)       ... and so for every dim
    s.dynamic-slice = f32[2,3] dynamic-slice(x, s.reshape, s.reshape.1), dynamic_slice_sizes={2,3}
"""

from __future__ import annotations

from warpsmith.hlo.attributes import SliceDim
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo_passes.local import Site, of_dims, rewrite

__all__ = ["NAME", "run"]

NAME = "dynamic-index-splitter"

_FIRST_INDEX = {"dynamic-slice": 1, "dynamic-update-slice": 2}


def run(module: HloModule) -> HloModule:
    """`module` with scalar start indices throughout."""
    return rewrite(module, _rule)


def _rule(site: Site) -> HloInstruction | None:
    old = site.old
    first = _FIRST_INDEX.get(old.opcode)
    if first is None or len(site.operands) != first + 1 or site.operands[first].array_shape.rank != 1:
        return None
    vector = site.operands[first]
    scalars: list[HloInstruction] = []
    for d in range(vector.array_shape.dims[0]):
        one = site.add("slice", of_dims(vector, (1,)), [vector], {"slice": (SliceDim(d, d + 1),)})
        scalars.append(site.reshape(one, ()))
    operands = [*site.operands[:first], *scalars]
    return site.builder.add(old.opcode, old.shape, operands, old.attributes, name=f"{old.name}.{old.opcode}")
