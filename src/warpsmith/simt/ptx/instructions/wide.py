"""Arithmetic wider than a register: add.cc, addc, sub.cc, subc, mad.cc, madc, which pass a carry on."""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.ptx.instructions.integers import multiply_high
from warpsmith.simt.ptx.machine import Frame, Mask, Step
from warpsmith.simt.ptx.operands import Context
from warpsmith.simt.ptx.values import choose

__all__ = ["CARRY", "carry_step"]

CARRY = frozenset({"add", "addc", "sub", "subc", "mad", "madc"})


def _add(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    first = a + b
    total = first + carry.astype(a.dtype)
    return total, (first < a) | (total < first)


def _subtract(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    first = a - b
    return first - borrow.astype(a.dtype), (a < b) | ((first == 0) & borrow)


def carry_step(context: Context) -> Step:
    """The step of an instruction that reads the carry (its name ends in c), writes it (.cc), or both."""
    form, operands = context.form, context.operands
    type = form.type
    if type[1:] not in ("32", "64"):
        context.unknown()
    fetches = [context.value(o, type) for o in operands[1:]]
    target = context.register(operands[0])
    takes, gives = form.base.endswith("c"), "cc" in form.flags
    product, high = form.base.startswith("mad"), "hi" in form.flags
    combine = _subtract if form.base.startswith("sub") else _add
    nothing = np.zeros(1, np.bool_)

    def step(frame: Frame, mask: Mask) -> None:
        values = [fetch(frame) for fetch in fetches]
        if product:
            a, b, c = values
            values = [multiply_high(*np.broadcast_arrays(a, b)) if high else a * b, c]
        left, right = (v.view(f"u{v.dtype.itemsize}") for v in values)
        result, carry = combine(left, right, frame.carry if takes else nothing)
        frame.write(target.slot, result, mask)
        if gives:
            frame.carry = carry if mask is None else choose(mask, carry, frame.carry)

    return step
