"""Objects that a kernel makes while it is read (`@T.meta_class`): what their members are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from warpsmith.tile.frontend.values import Inline

__all__ = ["META_CLASSES", "is_meta", "member"]

META_CLASSES: set[type] = set()
"""Classes whose objects kernels make while they are read."""


def is_meta(made: object) -> bool:
    """Whether this is such a class, or made from one."""
    return isinstance(made, type) and not META_CLASSES.isdisjoint(made.__mro__)


def member(owner: Any, name: str) -> Any:
    """An attribute of a Python object; a macro of such an object gets it first.  AttributeError where there is none."""
    value = getattr(owner, name)
    return replace(value, first=(owner,)) if isinstance(value, Inline) and is_meta(owner.__class__) else value
