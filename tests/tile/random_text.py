"""Pieces of random tile programs: regions inside larger buffers, allocations, kernels around statements."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from tests.tile.random_layouts import memory_layout

SYNC = "T.cuda.cta_sync()"


def region(name: str, begins: Sequence[int | str], extents: Sequence[int]) -> str:
    """`A[2 : 2 + 8, 0 : 4]`"""
    return f"{name}[{', '.join(f'{b} : {b} + {e}' if b else f'0 : {e}' for b, e in zip(begins, extents, strict=True))}]"


def kernel(lines: Sequence[str], parameters: Sequence[tuple[str, Sequence[int], str, str]], block: int) -> str:
    """A kernel with parameters (name, shape, dtype, layout or "") around device statements."""
    bound = [
        f'    {name} = T.match_buffer({name}_ptr, {tuple(shape)}, "{dtype}"{f", layout={layout}" if layout else ""})\n'
        for name, shape, dtype, layout in parameters
    ]
    body = "".join(f"    {line}\n" for line in lines if line)
    return (
        f"@T.prim_func\ndef k({', '.join(f'{name}_ptr: T.handle' for name, *_ in parameters)}):\n{''.join(bound)}"
        f"    T.device_entry(); T.cta_id([1]); tid = T.thread_id([{block}])\n{body}"
    )


def shared(r: random.Random, name: str, shape: Sequence[int], dtype: str) -> str:
    """An allocation in shared memory, laid out at random."""
    return f'{name} = T.alloc_shared({tuple(shape)}, "{dtype}", layout={memory_layout(r, shape, dtype)})'


class Around:
    """A larger buffer around a region: how far each dim begins in, and how large it is."""

    def __init__(self, r: random.Random, shape: Sequence[int], chance: float = 0.6) -> None:
        margins = [(r.choice((0, 1, 2, 4, 8, 16)), r.choice((0, 0, 1, 4, 8))) for _ in shape]
        wide = math.prod(a + e + b for (a, b), e in zip(margins, shape, strict=True))
        if r.random() > chance or wide > 768:
            margins = [(0, 0)] * len(margins)
        self.begins = [a for a, _ in margins]
        self.shape = [a + e + b for (a, b), e in zip(margins, shape, strict=True)]
        self.extents = list(shape)

    def of(self, name: str) -> str:
        return region(name, self.begins, self.extents)


SHAPES: tuple[tuple[int, ...], ...] = (
    *((64,), (37,), (16, 16), (32, 8), (8, 64), (24, 16), (5, 7), (33, 12), (1, 128)),
    *((4, 8, 8), (2, 16, 6), (3, 5, 4)),
)


def indented(lines: Sequence[str], more: Sequence[str]) -> list[str]:
    """`more` as it follows `lines`: inside of an `if` that is among them."""
    inside = any(line.startswith("if ") for line in lines)
    return [f"    {line}" if inside and line else line for line in more]


def sync_of(scope: str) -> str:
    """The barrier of a scope."""
    return {"warpgroup": "T.cuda.warpgroup_sync(9)", "warp": "T.cuda.warp_sync()"}.get(scope, SYNC)
