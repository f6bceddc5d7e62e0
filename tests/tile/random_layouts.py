"""Random shapes and layouts, as program text: of memory, and of registers that are spread over threads."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

BYTES = {"float64": 8, "int64": 8, "uint64": 8, "float32": 4, "int32": 4, "uint32": 4, "float16": 2, "bfloat16": 2,
         "int16": 2, "uint16": 2, "int8": 1, "uint8": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1}  # fmt: skip

DTYPES = tuple(BYTES)

SCOPES = (("warp", 32), ("warp", 32), ("cta", 32), ("cta", 64), ("cta", 96), ("cta", 128), ("cta", 256), ("cta", 16),
          ("cta", 48), ("warpgroup", 128), ("warpgroup", 256))  # fmt: skip
"""(scope, threads of the block)"""

_AXES: dict[tuple[str, bool], tuple[str, ...]] = {
    ("thread", False): ("",),
    ("warp", False): ("laneid",),
    ("warpgroup", False): ("tid_in_wg",),
    ("warpgroup", True): ("laneid", "wid_in_wg"),
    ("cta", False): ("tx",),
    ("cta", True): ("laneid", "warpid"),
}


def scope_threads(scope: str, block: int) -> int:
    """How many threads do a call together."""
    return {"thread": 1, "warp": 32, "warpgroup": 128}.get(scope, block)


def _factors(r: random.Random, extent: int) -> list[int]:
    """An extent as one factor, or as two."""
    divisors = [n for n in range(2, extent) if extent % n == 0]
    if divisors and r.random() < 0.4:
        outer = r.choice(divisors)
        return [outer, extent // outer]
    return [extent]


def _tuple(values: Sequence[object]) -> str:
    return f"({', '.join(map(str, values))}{',' if len(values) == 1 else ''})"


def memory_layout(r: random.Random, shape: Sequence[int], dtype: str, *, swizzles: bool = True) -> str:
    """Dense, padded, permuted, tiled, gapped, offset, or swizzled."""
    kind = r.random()
    if kind < 0.25:
        return f"TileLayout(S[{_tuple(shape)}])"
    if swizzles and kind < 0.45:
        log = {1: 4, 2: 3, 4: 2, 8: 1}[BYTES[dtype]]
        chunk, bits = r.choice((log, log, max(log - 1, 0))), r.choice((1, 2, 3))
        return f"ComposeLayout({chunk}, {bits}, 3, tile=TileLayout(S[{_tuple(shape)}]))"
    parts = [_factors(r, extent) for extent in shape]
    places = [(d, k) for d, factors in enumerate(parts) for k in range(len(factors))]
    if kind > 0.7:
        r.shuffle(places)
    stride = r.choice((1, 1, 1, 1, 2))
    strides: dict[tuple[int, int], int] = {}
    for place in reversed(places):
        strides[place] = stride
        stride *= parts[place[0]][place[1]]
        if r.random() < 0.3 and stride * BYTES[dtype] < 2048:
            stride += r.choice((1, 2, 4, 8, 16 // BYTES[dtype]))
    extents = [extent for factors in parts for extent in factors]
    steps = [strides[d, k] for d, factors in enumerate(parts) for k in range(len(factors))]
    offset = f" + {r.choice((1, 4, 8))}" if r.random() < 0.15 else ""
    return f"TileLayout(S[{_tuple(extents)} : {_tuple(steps)}]{offset})"


@dataclass(frozen=True)
class Factor:
    """One factor of a register tile: its extent, its stride, and the axis of threads (none: registers)."""

    extent: int
    stride: int
    axis: str = ""

    def __str__(self) -> str:
        return f"{self.stride} @ {self.axis}" if self.axis else str(self.stride)


@dataclass(frozen=True)
class Registers:
    """A register tile: the factors of each dim, copies on other threads, and where it begins.  `whole`: each thread
    has a part."""

    dims: tuple[tuple[Factor, ...], ...]
    copies: tuple[Factor, ...] = ()
    offset: str = ""
    whole: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(math.prod(f.extent for f in factors) for factors in self.dims)

    @property
    def text(self) -> str:
        flat = [f for factors in self.dims for f in factors]
        copies = ""
        if self.copies:
            copies = f" + R[{_tuple([f.extent for f in self.copies])} : {_tuple(self.copies)}]"
        shard = f"S[{_tuple([f.extent for f in flat])} : {_tuple(flat)}]"
        return f"TileLayout({shard}{copies}{self.offset})"

    def allocation(self, name: str, dtype: str) -> str:
        return f'{name} = T.alloc_buffer({_tuple(self.shape)}, "{dtype}", scope="local", layout={self.text})'


def thread_factors(r: random.Random, scope: str, threads: int) -> list[Factor]:
    """Factors that make up all threads of a scope, the outermost first."""
    split = scope != "warp" and threads % 32 == 0 and threads > 32 and r.random() < 0.5
    axes = _AXES[scope, split]
    sizes = [32, threads // 32] if split else [threads]
    found: list[Factor] = []
    for axis, size in zip(axes, sizes, strict=True):
        stride = 1
        while size > 1:
            divisors = [n for n in range(2, size + 1) if size % n == 0]
            extent = size if r.random() < 0.4 or len(found) > 2 else r.choice(divisors)
            found.insert(0, Factor(extent, stride, axis))
            stride *= extent
            size //= extent
    return found


def register_tile(
    r: random.Random, scope: str, threads: int, *, rank: int = 2, partial: bool = True, most: int = 1024
) -> Registers:
    """Threads and registers dealt out over dims at random; some threads may have copies, or nothing."""
    spread = thread_factors(r, scope, threads)
    copies: list[Factor] = []
    offset, whole = "", True
    chance = r.random()
    if chance < 0.25 and len(spread) > 1:
        copies.append(spread.pop(r.randrange(len(spread))))
    elif partial and chance < 0.45 and len(spread) > 1:
        gone = spread.pop(r.randrange(len(spread)))
        whole = False
        if r.random() < 0.4:
            offset = f" + {gone.stride} @ {gone.axis}"
    total = math.prod(f.extent for f in spread)
    own: list[Factor] = []
    stride = r.choice((1, 1, 1, 2))
    for extent in r.choice(((), (2,), (4,), (8,), (3,), (2, 2), (4, 2), (2, 4))):
        if total * extent <= most:
            own.append(Factor(extent, stride))
            stride *= extent
            total *= extent
    own.reverse()
    factors = [*spread, *own]
    if r.random() < 0.5:
        r.shuffle(factors)
    cuts = sorted(r.randint(0, len(factors)) for _ in range(rank - 1))
    bounds = [0, *cuts, len(factors)]
    dims = tuple(tuple(factors[a:b]) or (Factor(1, 1),) for a, b in itertools.pairwise(bounds))
    return Registers(dims, tuple(copies), offset, whole)
