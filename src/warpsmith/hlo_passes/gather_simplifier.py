"""gather-simplifier: every gather in the one form that says least.

    g = f32[5,3] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1 ...
->
    g.gather = f32[5,1,3] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, ...
    g.reshape = f32[5,3] reshape(g.gather)

The indices become [N, K], no slice dim is collapsed, the N comes first; transposes and reshapes put back what was.
Batch dims turn into index components (an iota).  XLA has a pass of this name.
"""

from __future__ import annotations

import math

from warpsmith.devices import Device
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo_passes.kit import Rewriting, of_dims, rewrite
from warpsmith.hlo_passes.support.indices import flat_indices, with_batch_components

__all__ = ["CONTRACT", "run"]

CONTRACT = "E"


def run(module: HloModule, _: Device) -> HloModule:
    """`module` with every gather simplified."""
    return rewrite(module, _rule)


def _rule(at: Rewriting) -> HloInstruction | None:
    old = at.old
    if old.opcode != "gather" or _is_simple(old):
        return None
    operand, indices = at.operands(old)
    rank = operand.array_shape.rank
    sizes = old.ints("slice_sizes")
    start_map = old.ints("start_index_map")
    batches = old.ints("operand_batching_dims", ()), old.ints("start_indices_batching_dims", ())
    vector_dim = old.attr("index_vector_dim", int)
    dims = [d for i, d in enumerate(indices.array_shape.dims) if i != vector_dim]  # the batch part of the result
    indices, start_map, vector_dim = with_batch_components(at, indices, start_map, vector_dim, *batches)
    table = flat_indices(at, indices, vector_dim)
    count = math.prod(dims)
    gathered = at.add(
        "gather",
        of_dims(operand, (count, *sizes)),
        [operand, table],
        {
            "offset_dims": tuple(range(1, rank + 1)),
            "collapsed_slice_dims": (),
            "start_index_map": start_map,
            "index_vector_dim": 1,
            "slice_sizes": sizes,
            **{key: old.attributes[key] for key in ("indices_are_sorted",) if key in old.attributes},
        },
    )
    dropped = {*old.ints("collapsed_slice_dims", ()), *batches[0]}
    offsets = [size for d, size in enumerate(sizes) if d not in dropped]
    spread = at.reshape(gathered, (*dims, *offsets))
    # Result dims: those in offset_dims take the offsets in order, the others the batch dims in order.
    offset_dims = old.ints("offset_dims")
    batch, offset = iter(range(len(dims))), iter(range(len(dims), len(dims) + len(offsets)))
    source = [next(offset) if d in offset_dims else next(batch) for d in range(old.array_shape.rank)]
    return _under_its_shape(at, at.transpose(spread, source))


def _under_its_shape(at: Rewriting, value: HloInstruction) -> HloInstruction:
    """A copy where the old result had a layout of its own."""
    shape = at.old.array_shape
    if value.array_shape == shape:
        return value
    return at.add("copy", shape, [value])


def _is_simple(gather: HloInstruction) -> bool:
    indices = gather.operands[1].array_shape
    rank = gather.operands[0].array_shape.rank
    return (
        indices.rank == 2
        and gather.attr("index_vector_dim", int) == 1
        and gather.ints("offset_dims") == tuple(range(1, rank + 1))
        and not gather.ints("collapsed_slice_dims", ())
        and not gather.ints("operand_batching_dims", ())
    )
