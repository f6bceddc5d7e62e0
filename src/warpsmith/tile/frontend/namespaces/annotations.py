"""What stands behind a parameter's colon: `T.handle`, `T.Buffer(...)`, `T.float32`, `T.constexpr`; and `T.let`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warpsmith.errors import InvalidTileProgram, TileSyntaxError
from warpsmith.tile.frontend.numbers import number
from warpsmith.tile.frontend.state import current
from warpsmith.tile.model import dtypes as dt

__all__ = ["Buffer", "Constexpr", "DTypeName", "Handle", "Let"]


class DTypeName:
    """`T.float32` and its like: a parameter's annotation, a conversion, or (with nothing) a symbolic extent."""

    def __init__(self, type: dt.TileType) -> None:
        self.type = type

    def __call__(self, value: Any = None) -> Any:
        state = current(f"T.{self.type}(...)")
        if value is not None:
            return state.scalars.cast(number(state, value), self.type)
        if state.in_device or not self.type.is_integer:
            raise TileSyntaxError(
                f"T.{self.type}() makes a symbolic extent", help="before T.device_entry(), of an integer type"
            )
        return state.add_extent(state.target or "n", self.type)

    def __str__(self) -> str:
        return self.type.name


class Let:
    """`x: T.let = e` binds a value that never changes."""

    is_let = True
    type: dt.TileType | None = None

    def __getitem__(self, kind: DTypeName) -> Let:
        found = Let()
        found.type = kind.type
        return found


class Handle:
    """`T.handle`: a pointer parameter, which `T.match_buffer` gives a shape."""


class Constexpr:
    """`T.constexpr`: a parameter of `@T.jit` that is given when the kernel is specialised."""


class Buffer:
    """`T.Buffer((32, 8), "float32")`: a parameter that is a buffer."""

    def __init__(
        self,
        shape: Any,
        dtype: Any = "float32",
        *,
        strides: Sequence[int] | None = None,
        elem_offset: int = 0,
        scope: str = "global",
        align: int = 16,
        layout: Any = "default",
    ) -> None:
        if scope != "global":
            raise InvalidTileProgram(f"a parameter is in global memory, not in {scope}")
        self.shape, self.dtype = shape, dtype
        self.options: dict[str, Any] = {
            "strides": strides,
            "elem_offset": elem_offset,
            "align": align,
            "layout": layout,
        }
