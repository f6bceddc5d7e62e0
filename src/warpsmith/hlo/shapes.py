"""Shapes: an element type, dimensions, and how the elements lie in memory.

In: element types (`dtypes`) and integers, from the parser or a caller.  Out: `Shape` (one array, token or opaque),
`TupleShape`, `Layout`, and their text in XLA's spelling (`f32[<=4,8]{1,0:T(8,128)E(4)S(1)}`).  All are immutable and
compare by value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpsmith.dtypes import DType, by_name
from warpsmith.errors import InvalidHlo

__all__ = ["UNBOUNDED", "AnyShape", "Layout", "Shape", "SplitConfig", "TupleShape", "array", "same_type"]

UNBOUNDED = -(1 << 63)
"""The size of a dimension printed as `?`: dynamic, without a bound."""

COMBINE = -(1 << 63)
"""The tile dimension printed as `*`: folded into the next more minor one."""


@dataclass(frozen=True, slots=True)
class SplitConfig:
    """`SC(0:4)`: dimension `dimension` is split over memories at `indices`."""

    dimension: int
    indices: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dimension}:{','.join(map(str, self.indices))}"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where elements lie: `minor_to_major[0]` is the dimension that varies fastest.

    The other fields are XLA's, kept and printed: `tiles` (`T`), `tail_padding` in elements (`L`), `index_type` (`#`),
    `pointer_type` (`*`), `element_bits` (`E`, 0 when not stated), `memory_space` (`S`), `splits` (`SC`),
    `physical_shape` (`P`), `metadata_bytes` (`M`), `dim_levels` (`D`, each a letter with `+` and `~` flags).
    """

    minor_to_major: tuple[int, ...]
    dim_levels: tuple[str, ...] = ()
    tiles: tuple[tuple[int, ...], ...] = ()
    tail_padding: int = 1
    index_type: str = ""
    pointer_type: str = ""
    element_bits: int = 0
    memory_space: int = 0
    splits: tuple[SplitConfig, ...] = ()
    physical_shape: AnyShape | None = None
    metadata_bytes: int = 0

    @staticmethod
    def descending(rank: int) -> Layout:
        """The default layout, row-major: the last dimension varies fastest."""
        return Layout(tuple(range(rank - 1, -1, -1)))

    def __str__(self) -> str:
        extras: list[str] = []
        if self.dim_levels:
            extras.append(f"D({','.join(self.dim_levels)})")
        if self.tiles:
            extras.append("T" + "".join(_tile_text(tile) for tile in self.tiles))
        if self.tail_padding != 1:
            extras.append(f"L({self.tail_padding})")
        if self.index_type:
            extras.append(f"#({self.index_type})")
        if self.pointer_type:
            extras.append(f"*({self.pointer_type})")
        if self.element_bits:
            extras.append(f"E({self.element_bits})")
        if self.memory_space:
            extras.append(f"S({self.memory_space})")
        if self.splits:
            extras.append("SC" + "".join(f"({split})" for split in self.splits))
        if self.physical_shape is not None:
            extras.append(f"P({self.physical_shape})")
        if self.metadata_bytes:
            extras.append(f"M({self.metadata_bytes})")
        order = ",".join(map(str, self.minor_to_major))
        return f"{{{order}:{''.join(extras)}}}" if extras else f"{{{order}}}"


def _tile_text(tile: tuple[int, ...]) -> str:
    return f"({','.join('*' if size == COMBINE else str(size) for size in tile)})"


@dataclass(frozen=True, slots=True)
class Shape:
    """One array of `dtype` with sizes `dims`; a token or an opaque value has no dims.

    `layout` is None where the text states none (row-major is meant).  `dynamic[i]` says that `dims[i]` is an upper
    bound (`<=4`), or unbounded (`?`, then `dims[i]` is UNBOUNDED).  `buffer` is XLA's `b(...)` around the type.
    """

    dtype: DType
    dims: tuple[int, ...] = ()
    layout: Layout | None = None
    dynamic: tuple[bool, ...] = ()
    buffer: bool = False

    def __post_init__(self) -> None:
        rank = len(self.dims)
        if len(self.dynamic) != rank:
            if self.dynamic:
                raise InvalidHlo(f"{len(self.dynamic)} dynamic flags for {rank} dimensions")
            object.__setattr__(self, "dynamic", (False,) * rank)
        if not rank and self.layout == Layout(()):
            object.__setattr__(self, "layout", None)  # a scalar's layout says nothing and isn't printed
        elif self.layout is not None and sorted(self.layout.minor_to_major) != list(range(rank)):
            raise InvalidHlo(f"layout {self.layout} doesn't name each dimension of a rank-{rank} array once")

    @property
    def is_tuple(self) -> bool:
        """False: this is an array's shape, or a token's."""
        return False

    @property
    def is_array(self) -> bool:
        """Whether it is an array's (not a token's)."""
        return self.dtype.is_array_element

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self.dims)

    @property
    def elements(self) -> int:
        """How many elements (dynamic dimensions at their bound); InvalidHlo for an unbounded dimension."""
        if any(self.dynamic) and UNBOUNDED in self.dims:
            raise InvalidHlo(f"{self} has no bound on its size")
        return math.prod(self.dims)

    @property
    def byte_size(self) -> int:
        """Bytes in memory, sub-byte elements packed."""
        return self.dtype.byte_size(self.elements)

    @property
    def minor_to_major(self) -> tuple[int, ...]:
        """The layout's order, or row-major where no layout is stated."""
        return self.layout.minor_to_major if self.layout is not None else tuple(range(len(self.dims) - 1, -1, -1))

    @property
    def is_row_major(self) -> bool:
        """Whether the last dim is fastest and the first slowest, in memory."""
        return self.layout is None or self.minor_to_major == tuple(range(len(self.dims) - 1, -1, -1))

    def strides(self) -> tuple[int, ...]:
        """Step in elements of each dimension, in the physical order that the layout states."""
        steps, step = [0] * len(self.dims), 1
        for dim in self.minor_to_major:
            steps[dim] = step
            step *= self.dims[dim]
        return tuple(steps)

    def physical_dims(self) -> tuple[int, ...]:
        """Dimension sizes from the most major to the most minor."""
        return tuple(self.dims[dim] for dim in reversed(self.minor_to_major))

    def with_dtype(self, dtype: DType) -> Shape:
        """The same dims and layout of another element type."""
        return Shape(dtype, self.dims, self.layout, self.dynamic, self.buffer)

    def with_layout(self, layout: Layout | None) -> Shape:
        """The same dims in another order in memory."""
        return Shape(self.dtype, self.dims, layout, self.dynamic, self.buffer)

    def without_layout(self) -> Shape:
        """The same dims with the default layout, row-major."""
        return self if self.layout is None else self.with_layout(None)

    def leaves(self) -> list[Shape]:
        """The one array, as `TupleShape.leaves` lists its own."""
        return [self]

    def text(self, *, layout: bool = True) -> str:
        """XLA's spelling, with or without the layout."""
        dims = ",".join(
            [
                str(dim) if not dynamic else "?" if dim == UNBOUNDED else f"<={dim}"
                for dim, dynamic in zip(self.dims, self.dynamic, strict=True)
            ]
        )
        name = self.dtype.name
        head = f"{name}[{dims}]"
        if layout and self.layout is not None:
            order = str(self.layout)
            if order != "{}":
                head += order
        return f"b({head})" if self.buffer else head

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, slots=True)
class TupleShape:
    """Several values: what `tuple`, variadic `reduce`, multi-output fusions and the like produce."""

    elements: tuple[AnyShape, ...] = ()

    @property
    def is_tuple(self) -> bool:
        """True."""
        return True

    @property
    def is_array(self) -> bool:
        """False."""
        return False

    def leaves(self) -> list[Shape]:
        """Arrays, tokens and opaques in order, nested tuples flattened."""
        return list(_leaves(self))

    @property
    def byte_size(self) -> int:
        """Bytes of the leaves (a tuple's own index table isn't counted)."""
        return sum(leaf.byte_size for leaf in _leaves(self))

    def without_layout(self) -> TupleShape:
        """The same tuple with all arrays row-major."""
        return TupleShape(tuple(element.without_layout() for element in self.elements))

    def text(self, *, layout: bool = True) -> str:
        """XLA's spelling; every fifth element carries its index as a comment."""
        parts: list[str] = []
        for index, element in enumerate(self.elements):
            comma = "" if index == 0 else f", /*index={index}*/" if index % 5 == 0 else ", "
            parts.append(comma + element.text(layout=layout))
        return f"({''.join(parts)})"

    def __str__(self) -> str:
        return self.text()


AnyShape = Shape | TupleShape


def _leaves(shape: AnyShape) -> Iterator[Shape]:
    stack: list[AnyShape] = [shape]
    while stack:
        top = stack.pop()
        if isinstance(top, TupleShape):
            stack.extend(reversed(top.elements))
        else:
            yield top


def array(dtype: str | DType, *dims: int, layout: Sequence[int] | None = None) -> Shape:
    """`array("f32", 2, 3, layout=(1, 0))`: shorthand for code and tests."""
    element = by_name(dtype) if isinstance(dtype, str) else dtype
    return Shape(element, dims, None if layout is None else Layout(tuple(layout)))


def same_type(a: AnyShape, b: AnyShape, *, layout: bool = False) -> bool:
    """Whether two shapes agree in element types and sizes (and in stated layouts, when `layout`)."""
    return a == b if layout else a.without_layout() == b.without_layout()
