"""Putting a `Kernel` together.

In: finished functions and the launch.  Out: the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.origin import EmittedKernel, Fused, SharedTile
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap
from warpsmith.kernel import Argument, Kernel, Launch

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
    args = [_argument(each.name, each.array_shape) for each in analysis.parameters]
    root = analysis.body.root
    listed = root.operands if root.opcode == "tuple" else (root,)
    widest = WORD if steps else BYTE  # a store to an element narrower than a byte is a step, too
    args += [
        _argument(each.name, leaf, is_output=True, whole_words=analysis.device.is_gpu and leaf.dtype.bits < widest)
        for each in listed
        for leaf in each.shape.leaves()
    ]
    shown = tuple((title, str(map)) for title, map in maps)
    return Kernel(
        functions.name,
        functions.finish(),
        tuple(args),
        replace(launch, chunk=chunk, index_bits=functions.index_bits, shared_bytes=shared_bytes),
        Fused(analysis, emitter, variant, shown, analysis.refused, tile, notes),
        aliases=tuple(functions.aliases.items()),
    )


def _argument(name: str, shape: Shape, *, is_output: bool = False, whole_words: bool = False) -> Argument:
    return Argument(name, shape.dtype, shape.dims, shape.minor_to_major, is_output, whole_words)
