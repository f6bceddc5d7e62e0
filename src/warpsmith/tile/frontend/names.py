"""Names in a kernel: which value a name stands for where it is read."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any

__all__ = ["Names", "found"]

_NOT_FOUND = object()


class Names:
    """Names in reach: those of this block, of the blocks around it, then the captured ones, then Python's own."""

    def __init__(self, parent: Names | None = None, captured: Mapping[str, Any] | None = None) -> None:
        self.own: dict[str, Any] = {}
        self.parent = parent
        self.captured = captured

    def get(self, name: str) -> Any:
        """What a name means here; not `found` if nothing."""
        at: Names | None = self
        while at is not None:
            if name in at.own:
                return at.own[name]
            if at.captured is not None and name in at.captured:
                return at.captured[name]
            at = at.parent
        return getattr(builtins, name, _NOT_FOUND)

    def all(self) -> set[str]:
        """All names that mean something here."""
        found: set[str] = set()
        at: Names | None = self
        while at is not None:
            found |= set(at.own) | set(at.captured or ())
            at = at.parent
        return found

    def function_level(self) -> Names:
        """The names of the whole function."""
        at = self
        while at.parent is not None and at.captured is None:
            at = at.parent
        return at


def found(value: object) -> bool:
    """Whether `Names.get` knew the name."""
    return value is not _NOT_FOUND
