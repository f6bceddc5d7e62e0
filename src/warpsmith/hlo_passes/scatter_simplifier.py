"""scatter-simplifier: every scatter in the one form that says least.

    s = f32[9,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, index_vector_dim=1 ...
->
    s.reshape = f32[5,1,3] reshape(u)
    s.scatter = f32[9,3] scatter(x, i, s.reshape), update_window_dims={1,2}, inserted_window_dims={}, ...

The indices become [N, K], the updates [N, slice...] with no dim left out; batch dims turn into index components.
XLA has a pass of this name.
"""

from __future__ import annotations

import math

from warpsmith.devices import Device
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo_passes.kit import Rewriting, rewrite
from warpsmith.hlo_passes.support.indices import flat_indices, with_batch_components

__all__ = ["CONTRACT", "run", "simplified"]

CONTRACT = "E"


def run(module: HloModule, _: Device) -> HloModule:
    """`module` with every scatter simplified."""
    return rewrite(module, simplified)


def simplified(at: Rewriting) -> HloInstruction | None:
    """What a scatter becomes; None for a simple one, and for other ops."""
    old = at.old
    if old.opcode != "scatter" or _is_simple(old):
        return None
    count = (len(old.operands) - 1) // 2
    given = at.operands(old)
    operands, indices, updates = given[:count], given[count], given[count + 1 :]
    rank = operands[0].array_shape.rank
    batches = old.ints("input_batching_dims", ()), old.ints("scatter_indices_batching_dims", ())
    component_dims = old.ints("scatter_dims_to_operand_dims")
    vector_dim = old.attr("index_vector_dim", int)
    indices, component_dims, vector_dim = with_batch_components(at, indices, component_dims, vector_dim, *batches)
    table = flat_indices(at, indices, vector_dim)
    left_out = {*old.ints("inserted_window_dims", ()), *batches[0]}
    window_dims = old.ints("update_window_dims")
    made = [_rows(at, update, window_dims, left_out, rank) for update in updates]
    attributes = {
        **old.attributes,
        "update_window_dims": tuple(range(1, rank + 1)),
        "inserted_window_dims": (),
        "scatter_dims_to_operand_dims": component_dims,
        "index_vector_dim": 1,
    }
    for key in ("input_batching_dims", "scatter_indices_batching_dims"):
        attributes.pop(key, None)
    return at.add("scatter", old.shape, [*operands, table, *made], attributes)


def _rows(
    at: Rewriting, update: HloInstruction, window_dims: tuple[int, ...], left_out: set[int], rank: int
) -> HloInstruction:
    """Updates as [N, slice...]: scatter dims in front as one, window dims behind with size 1 where one was left out."""
    dims = update.array_shape.dims
    outer = [d for d in range(len(dims)) if d not in window_dims]
    turned = at.transpose(update, [*outer, *window_dims])
    sizes = iter([dims[d] for d in window_dims])
    window = [1 if d in left_out else next(sizes) for d in range(rank)]
    return at.reshape(turned, (math.prod(dims[d] for d in outer), *window))


def _is_simple(scatter: HloInstruction) -> bool:
    count = (len(scatter.operands) - 1) // 2
    rank = scatter.operands[0].array_shape.rank
    return (
        scatter.operands[count].array_shape.rank == 2
        and scatter.attr("index_vector_dim", int) == 1
        and scatter.ints("update_window_dims") == tuple(range(1, rank + 1))
        and not scatter.ints("inserted_window_dims", ())
        and not scatter.ints("input_batching_dims", ())
    )
