"""Putting an `EmittedKernel` together.

In: finished functions and the launch.  Out: the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.emitters.kernel.emitted import EmittedKernel, KernelArgument, SharedTile
from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.launch import Launch
from warpsmith.indexing import IndexingMap

__all__ = ["make_kernel"]

BYTE, WORD = 8, 32


def make_kernel(
    functions: KernelFunctions,
    launch: Launch,
    emitter: str,
    maps: Sequence[tuple[str, IndexingMap]],
    *,
    variant: str = "",
    shared_bytes: int = 0,
    chunk: int = 0,
    tile: SharedTile | None = None,
    steps: bool = False,
    notes: tuple[str, ...] = (),
) -> EmittedKernel:
    """Emit the functions that the entry calls, and collect the facts.  `steps`: outputs are written by atomic steps."""
    analysis = functions.analysis
    args = [KernelArgument(each.name, each.array_shape, False) for each in analysis.parameters]
    root = analysis.body.root
    listed = root.operands if root.opcode == "tuple" else (root,)
    widest = WORD if steps else BYTE  # a store to an element narrower than a byte is a step, too
    args += [
        KernelArgument(each.name, leaf, True, analysis.device.is_gpu and leaf.dtype.bits < widest)
        for each in listed
        for leaf in each.shape.leaves()
    ]
    return EmittedKernel(
        name=functions.name,
        module=functions.finish(),
        analysis=analysis,
        emitter=emitter,
        variant=variant,
        grid=launch.grid,
        block=launch.block,
        unroll=launch.unroll,
        index_bits=functions.index_bits,
        args=tuple(args),
        maps=tuple((title, str(map)) for title, map in maps),
        refused=analysis.refused,
        shared_bytes=shared_bytes,
        aliases=tuple(functions.aliases.items()),
        chunk=chunk,
        tile=tile,
        notes=notes,
    )
