"""`mma_m16n8k16`: a product of matrices in registers by a warp's matrix units, f16 or bf16 factors, an f32 sum.

Which lane holds an element is the hardware's choice; digits of a dim that two operands share must agree on it:

    m   (dst, a)   three bits are lanes 4, 8, 16 in both, one or more are registers in both
    n   (dst, b)   three bits are a register, lane 1, lane 2 in dst, and lanes 4, 8, 16 in b
    k   (a, b)     two bits are lanes 1, 2 in both, two or more are registers in both

`layout/matrix.py` has such layouts: mma_a, mma_b, mma_c.  Their order within a dim is free, as the rows of a product
may be numbered anyhow; so a product's own layout serves as the next one's first factor.  Bits of m and n may also be
warps, the same in both operands.  Reference: PTX ISA, "Matrix fragments for mma.m16n8k16".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpsmith.indexing import add
from warpsmith.ir.core.types import F32
from warpsmith.ir.dialects import arith, nvgpu, vector
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.digits import Digit, Placement, Step, refine
from warpsmith.tile.dispatch.emission import Term, digit_sum, loop
from warpsmith.tile.dispatch.fragments import (
    WHOLE_WARPS,
    halves,
    read_registers,
    take,
    write_registers,
)
from warpsmith.tile.dispatch.gpu.copy_register import split_threads
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, SCOPE, all_in, capability
from warpsmith.tile.dispatch.registry import Predicate, Variant
from warpsmith.tile.layout.matrix import mma_a, mma_b, mma_c
from warpsmith.tile.model.scopes import WARP

__all__ = ["VARIANTS"]

M, N, K = 16, 8, 16
_DST, _A, _B, _C = range(4)  # the operands of a digit below


def _types(call: CallContext) -> str | None:
    types = {role: region.buffer.type.name for role, region in call.regions.items()}
    if types["a"] not in ("float16", "bfloat16") or types["b"] != types["a"]:
        return f"a is {types['a']}, b is {types['b']}"
    other = next((role for role in ("dst", "c") if types.get(role, "float32") != "float32"), None)
    return None if other is None else f"{other} is {types[other]}"


def _numbers(call: CallContext) -> str | None:
    alpha, beta = call.config["alpha"], call.config["beta"]
    return None if alpha == 1 and beta in (0, 1) else f"alpha is {alpha:g}, beta is {beta:g}"


def _extents(call: CallContext) -> tuple[int, int, int]:
    """m, n and k.  The front end has checked that operands fit each other."""
    m, n = _real(call.region("dst").extents)
    first, second = _real(call.region("a").extents)
    return m, n, first if call.config["transpose_a"] else second


def _real(extents: Sequence[int]) -> Sequence[int]:
    return extents if len(extents) == 2 else [extent for extent in extents if extent != 1]


def _shape(call: CallContext) -> str | None:
    m, n, k = _extents(call)
    return None if m % M == n % N == k % K == 0 else f"the product is {m} x {n} x {k}"


def _wanted(call: CallContext, role: str) -> str:
    """The layout that an operand would need, in words."""
    m, n, k = _extents(call)
    shape = {"a": (m, k), "b": (k, n)}.get(role, (m, n))
    arguments = f"{shape[0]}, {shape[1]}"
    transposed = bool(call.config.get(f"transpose_{role}"))
    if transposed:
        arguments += ", transposed=True"
    name = "mma_c" if role in ("dst", "c") else f"mma_{role}"
    if call.threads > WARP:
        return f"such as {name}({arguments}, warps=(r, c)) with r * c = {call.threads // WARP}"
    made = {
        "mma_a": lambda: mma_a(m, k, transposed=transposed),
        "mma_b": lambda: mma_b(k, n, transposed=transposed),
        "mma_c": lambda: mma_c(m, n),
    }[name]()
    return f"such as {name}({arguments}) = {made}"


def _dims(call: CallContext, role: str) -> tuple[Placement, Placement]:
    """An operand's two dims, each as a placement of its own: (m, k), (k, n) or (m, n)."""
    place = call.place(role)
    if not place.buffer.is_distributed:
        raise Decline(
            f"{role} {place.buffer.name} isn't spread over the lanes of a warp: it needs a layout {_wanted(call, role)}"
        )
    gaps = split_threads(call, role, refine([place]), 0)[2].gaps()
    if gaps:
        raise Decline(f"{role} {place.buffer.name}: {gaps}; it needs a layout {_wanted(call, role)}")
    dims = place.dims
    if len(dims) != 2:
        dims = tuple(each for each in dims if math.prod(extent for extent, _ in each) != 1)
    first, second = (replace(place, dims=(each,)) for each in dims)
    return (second, first) if call.config.get(f"transpose_{role}") else (first, second)


_REGISTERS = (0, 0)
_LANES: dict[str, frozenset[tuple[int, int]]] = {
    "m": frozenset(((4, 4), (8, 8), (16, 16))),
    "n": frozenset(((0, 4), (1, 8), (2, 16))),
    "k": frozenset(((1, 1), (2, 2))),
}
"""By dim, the lanes (0: a register) that its bits are in the two operands that share it."""


@dataclass(frozen=True, slots=True)
class _Dim:
    """One dim's digits that are registers in both operands, and those in the first one alone: dst's pair, of n."""

    registers: list[Digit]
    pair: list[Digit]


def _dim(call: CallContext, name: str, roles: Sequence[str], places: Sequence[Placement]) -> _Dim:
    """Match one dim of two operands (and c).  Decline, with the layouts wanted, where their lanes don't fit."""
    found: set[tuple[int, int]] = set()
    registers: list[Digit] = []
    pair: list[Digit] = []
    for digit in halves(refine(places)):
        first, second, *others = (step.stride if step.is_thread else 0 for step in digit.steps)
        both = (first, second)
        if both == _REGISTERS:
            registers.append(digit)
        elif both in _LANES[name] and digit.extent == 2 and both not in found:
            found.add(both)
            pair += [digit] if first == 0 else []
        elif first != second or first < WARP or name == "k":
            raise _misfit(call, name, roles)
        if any(each != first for each in others):
            raise Decline(f"c {places[2].buffer.name} isn't spread over threads as dst {places[0].buffer.name} is")
    if frozenset(found) != _LANES[name]:
        raise _misfit(call, name, roles)
    return _Dim(registers, pair)


def _misfit(call: CallContext, name: str, roles: Sequence[str]) -> Decline:
    parts = [f"{role} {call.region(role).buffer.name} {_wanted(call, role)}" for role in roles]
    return Decline(
        f"{name} isn't spread over lanes as fragments of m16n8k16 are: they need {' and '.join(parts)}, but for the "
        "order of registers"
    )


def _widened(digits: Sequence[Digit], *operands: int) -> list[Digit]:
    """Digits of some operands as digits of (dst, a, b, c)."""
    found: list[Digit] = []
    for digit in digits:
        steps = [Step(0)] * 4
        for operand, step in zip(operands, digit.steps, strict=True):
            steps[operand] = step
        found.append(Digit(digit.extent, tuple(steps)))
    return found


def _offsets(operand: int, *bits: Digit) -> list[int]:
    """Where the elements of a fragment are; the first of `bits` counts fastest."""
    return [
        sum((number >> at & 1) * d.steps[operand].stride for at, d in enumerate(bits))
        for number in range(1 << len(bits))
    ]


def emit(call: CallContext) -> str:
    """Build the product; the partition in words."""
    beta = call.config["beta"]
    added = ["c"] if "c" in call.regions and beta else []
    dst, a, b_ = (_dims(call, role) for role in ("dst", "a", "b"))
    third = [_dims(call, role) for role in added]
    dim_m = _dim(call, "m", ("dst", "a"), [dst[0], a[0], *(each[0] for each in third)])
    dim_n = _dim(call, "n", ("dst", "b"), [dst[1], b_[1], *(each[1] for each in third)])
    dim_k = _dim(call, "k", ("a", "b"), [a[1], b_[0]])
    extra = [_C] * len(third)
    m = _widened(dim_m.registers, _DST, _A, *extra)
    n = _widened(dim_n.registers, _DST, _B, *extra)
    k = _widened(dim_k.registers, _A, _B)
    (pair_n,) = _widened(dim_n.pair, _DST, _B, *extra)
    rows, columns = take(m, 1, _A), take(k, 2, _A)
    if not rows or len(columns) != 2:
        raise Decline("each warp needs 16 rows of a and dst, and 16 elements of k, in registers beside its lanes")
    (row,), (pair_k, far_k) = rows, columns
    tiles = [*m, *n]
    turns, depth = math.prod(d.extent for d in tiles), math.prod(d.extent for d in k)
    b, sum_offsets = call.b, _offsets(_DST, pair_n, row)

    def steps(operand: int) -> list[int]:
        return [d.steps[operand].stride for d in (*tiles, *k)]

    with loop(b, turns, unroll=True) as tile_number:
        term = Term(b)
        tile = term.var(tile_number)
        at_sum = digit_sum(tile, tiles, _DST)
        if not beta:
            zero = vector.broadcast(b, arith.constant(b, 0.0, F32), len(sum_offsets))
            write_registers(call, zero, "dst", term, at_sum, sum_offsets, steps(_DST))
        elif added:
            start = digit_sum(tile, tiles, _C)
            value = read_registers(call, "c", term, start, _offsets(_C, pair_n, row), steps(_C))
            write_registers(call, value, "dst", term, at_sum, sum_offsets, steps(_DST))
        with loop(b, depth, "k", unroll=True) as k_number:
            step = term.var(k_number)
            start_a = add(digit_sum(tile, tiles, _A), digit_sum(step, k, _A))
            start_b = add(digit_sum(tile, tiles, _B), digit_sum(step, k, _B))
            first = read_registers(call, "a", term, start_a, _offsets(_A, pair_k, row, far_k), steps(_A))
            second = read_registers(call, "b", term, start_b, _offsets(_B, pair_k, far_k), steps(_B))
            total = read_registers(call, "dst", term, at_sum, sum_offsets, steps(_DST))
            total = nvgpu.mma_sync(b, first, second, total)
            write_registers(call, total, "dst", term, at_sum, sum_offsets, steps(_DST))
    return f"{turns} x {depth} x m16n8k16 a warp"


VARIANTS = [
    Variant(
        ("gemm",),
        "mma_m16n8k16",
        10,
        "products of f16 or bf16 in registers by a warp's matrix units, summed in f32",
        (
            SCOPE,
            WHOLE_WARPS,
            ALL_ACTIVE,
            LAYOUTS,
            NO_OVERLAP,
            all_in("local", "every operand is in registers"),
            Predicate("a and b are both float16 or both bfloat16, dst and c float32", _types),
            Predicate("alpha is 1, beta 0 or 1", _numbers),
            Predicate("m, n and k are multiples of 16, 8 and 16", _shape),
            capability("nvgpu.mma.sync", "mma.sync.m16n8k16"),
        ),
        emit,
    )
]
