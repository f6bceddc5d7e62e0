"""The variants: which lowerings there are for each primitive, in what order they are tried, and what each needs.

In: a primitive's name.  Out: its variants, highest priority first.  One module a variant; `MODULES` lists them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from warpsmith.errors import InternalError
from warpsmith.tile.dispatch.context import CallContext

__all__ = ["ALIASES", "MODULES", "Predicate", "Variant", "variants", "variants_of"]

MODULES: tuple[str, ...] = (
    "copy_shared",
    "copy_matrix",
    "copy_register",
    "copy_fallback",
    "elementwise_register",
    "elementwise_shared",
    "reduce_register",
    "reduce_shared",
    "copy_async_ldgsts",
    "gemm_mma",
    "permute_shared",
    "known",
)


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
def variants() -> tuple[Variant, ...]:
    """All variants, in the order of their modules.  A name twice for one primitive is a bug."""
    found: list[Variant] = []
    seen: set[tuple[str, str]] = set()
    for name in MODULES:
        module = importlib.import_module(f"warpsmith.tile.dispatch.gpu.{name}")
        listed: Sequence[Variant] = module.VARIANTS
        for variant in listed:
            for primitive in variant.primitives:
                if (primitive, variant.name) in seen:
                    raise InternalError(f"variant '{variant.name}' of {primitive} is registered twice")
                seen.add((primitive, variant.name))
            found.append(variant)
    return tuple(found)


@cache
def variants_of(primitive: str) -> tuple[Variant, ...]:
    """The variants of one primitive in the order in which they are tried: by priority, then by name."""
    own = [variant for variant in variants() if primitive in variant.primitives]
    return tuple(sorted(own, key=lambda variant: (-variant.priority, variant.name)))
