"""The variants: which lowerings there are for each primitive, in what order they are tried, and what each needs.

In: a primitive's name.  Out: its variants: by priority, the highest first, then by name.  A variant is found by its
file: every module of `dispatch/gpu/` has a list `VARIANTS`.  One of a user's own comes from `register`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from warpsmith.errors import InternalError, UsageError, did_you_mean
from warpsmith.tile.dispatch import gpu
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.model.ops import TABLE

__all__ = ["ALIASES", "Predicate", "Variant", "register", "variants", "variants_of"]

ALIASES: dict[str, tuple[str, ...]] = {"vec_auto": ("gmem_smem", "reg")}
"""Names that `dispatch=` may give several variants together: those of the peer's later versions."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """What a variant needs, in words, and how it is checked: `check(call)` gives None where it holds, else why not."""

    words: str
    check: Callable[[CallContext], str | None]


@dataclass(frozen=True, slots=True)
class Variant:
    """One lowering of some primitives.

    `emit(call)` builds it at `call.b` and gives the partition in words; it may raise Decline at any time, for what it
    has built is then dropped.
    """

    primitives: tuple[str, ...]
    name: str
    priority: int
    summary: str
    predicates: tuple[Predicate, ...]
    emit: Callable[[CallContext], str]


@cache
def _built_in() -> tuple[Variant, ...]:
    """The variants of `dispatch/gpu/`.  A name twice for one primitive is a bug."""
    found: list[Variant] = []
    for file in pkgutil.iter_modules(gpu.__path__):
        found += importlib.import_module(f"{gpu.__name__}.{file.name}").VARIANTS
    names = [(primitive, variant.name) for variant in found for primitive in variant.primitives]
    for name in names:
        if names.count(name) > 1:
            raise InternalError(f"variant '{name[1]}' of {name[0]} is registered twice")
    return tuple(found)


_own: dict[str, Variant] = {}


def register(variant: Variant) -> None:
    """Add a variant of one's own: it is tried with the others, by its priority, and can be forced by its name.

    It takes the place of an earlier one of one's own with the same name.  UsageError for a primitive that doesn't
    exist, or a name that a variant of Warpsmith has.
    """
    for primitive in variant.primitives:
        if primitive not in TABLE:
            raise UsageError(
                f"variant '{variant.name}' is of '{primitive}', which is no tile primitive",
                help=did_you_mean(primitive, TABLE) or f"the primitives are {', '.join(TABLE)}",
            )
        if any(each.name == variant.name and primitive in each.primitives for each in _built_in()):
            raise UsageError(f"Tx.{primitive} has a variant '{variant.name}' already", help="give it another name")
    _own[variant.name] = variant
    variants_of.cache_clear()


def variants() -> tuple[Variant, ...]:
    """All variants, by the first primitive of each, then in the order in which they are tried."""
    primitives = list(TABLE)
    return tuple(
        sorted(
            (*_built_in(), *_own.values()),
            key=lambda variant: (primitives.index(variant.primitives[0]), -variant.priority, variant.name),
        )
    )


@cache
def variants_of(primitive: str) -> tuple[Variant, ...]:
    """The variants of one primitive in the order in which they are tried: by priority, then by name."""
    own = [variant for variant in variants() if primitive in variant.primitives]
    return tuple(sorted(own, key=lambda variant: (-variant.priority, variant.name)))
