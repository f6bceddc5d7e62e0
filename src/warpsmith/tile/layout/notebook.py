"""Layouts in notebooks: the class that `TileLayout` and `ComposeLayout` are of, so that a cell shows their picture.

The pictures know the layouts, which therefore don't know the pictures: `layout/picture.py` puts its function here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

__all__ = ["Drawn"]


class Drawn:
    """What a notebook shows as `picture` draws it."""

    __slots__ = ()
    picture: ClassVar[Callable[[Any], str] | None] = None

    def _repr_html_(self) -> str | None:
        return None if Drawn.picture is None else Drawn.picture(self)
