"""Buffers under dots: `A.shape`, `A.view(...)`, `A.chunk(...)`.

In: a buffer and the name behind the dot.  Out: what it stands for; TileSyntaxError for a name that no buffer has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpsmith.errors import TileSyntaxError, did_you_mean
from warpsmith.tile.frontend import picks, subscripts, views
from warpsmith.tile.frontend.state import KernelState
from warpsmith.tile.frontend.values import Buffer, Picks
from warpsmith.tile.model.buffers import buffer_of

__all__ = ["attribute"]


def attribute(state: KernelState, buffer: Buffer, name: str) -> Any:
    """`A.shape`, `A.view(...)`, ..."""
    simple: dict[str, Callable[[], Any]] = {
        "shape": lambda: subscripts.shape_values(buffer),
        "dtype": lambda: str(buffer.type),
        "scope": lambda: lambda: buffer_of(buffer.value).scope,
        "layout": lambda: buffer_of(buffer.value).layout,
        "name": lambda: buffer.value.name,
        "data": lambda: views.memory_of(buffer),
        "sub": lambda: Picks(lambda index: picks.sub(state, buffer, index)),
    }
    if name in simple:
        return simple[name]()
    methods = {**views.METHODS, "chunk": picks.chunk, "tile": picks.tile, "ptr_to": subscripts.region}
    method = methods.get(name)
    if method is None:
        known = [*simple, *methods]
        raise TileSyntaxError(
            f"a buffer has no '{name}'", help=did_you_mean(name, known) or f"it has {', '.join(known)}"
        )

    def call(*arguments: Any, **keywords: Any) -> Any:
        return method(state, buffer, *arguments, **keywords)

    return call
