"""Constants whose values a printer left out: `constant({...})`.

In: a module, a seed.  Out: the module with made-up values in their place, and the names of the constants that got them.
What it computes then is something else than what it was dumped for; its shapes, kernels and speed are the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from warpsmith.hlo.edit import replace_all
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo.shapes import Shape
from warpsmith.numerics.inputs import Profile, random_array

__all__ = ["fill_elided"]


def fill_elided(module: HloModule, seed: int) -> tuple[HloModule, list[str]]:
    """`module` with seeded values for constants that have none, and these constants' names in text order.

    Floats are tame (of magnitude about 1), integers 0 or 1, so that those that index stay in range.
    """
    elided = [each for each in module.instructions() if each.literal is not None and each.literal.is_elided]
    if not elided:
        return module, []
    filled: dict[HloInstruction, HloInstruction] = {}
    for number, each in enumerate(elided):
        if each.literal is not None:
            filled[each] = replace(each, literal=_filled(each.literal, seed, number))
    return replace_all(module, filled), [each.name for each in elided]


def _filled(literal: Literal, seed: int, number: int) -> Literal:
    shape = literal.shape
    if not isinstance(shape, Shape):
        return Literal.tuple_of([_filled(each, seed, number) for each in literal.elements]).with_shape(shape)
    if not literal.is_elided:
        return literal
    if shape.dtype.is_integer:
        bits = np.random.default_rng([seed & 0xFFFFFFFFFFFFFFFF, number]).integers(0, 2, shape.dims)
        return Literal.of(bits.astype(shape.dtype.numpy), shape)
    return Literal.of(random_array(shape.dtype, shape.dims, seed=seed, parameter=number, profile=Profile.TAME), shape)
