"""Digits: the layouts of a call's operands over one region, split until they all have the same factors.

An element of a region has a number, and that number has digits: `Digit(extent, steps)` says what a step of one digit
means to each operand: so many elements further in memory, or so many threads further.  Whatever a variant does, it does
to digits: it gives some to threads, some to a vector, and loops over the rest.

    dst S[(32, 8):(1@laneid, 1)], src S[256:1] over 32 x 8    ->   (32: 1 lane | 8 elements) (8: 1 register | 1 element)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.indexing import Add, Const, Expr, Mul, add, const, dim, floordiv, mod, mul
from warpsmith.ir.core.ssa import Value
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.layout import Axis, ComposeLayout
from warpsmith.tile.model import affine
from warpsmith.tile.model.buffers import BufferInfo, RegionInfo, Stride, plain

__all__ = [
    "THREADS_OF",
    "Digit",
    "Factors",
    "Placement",
    "Step",
    "distance_to",
    "extent_of",
    "farthest",
    "merged",
    "place",
    "refine",
    "thread_stride",
]

THREADS_OF: dict[str, dict[str, int]] = {
    "thread": {},
    "warp": {"laneid": 1},
    "warpgroup": {"laneid": 1, "wid_in_wg": 32, "tid_in_wg": 1},
    "cta": {"laneid": 1, "warpid": 32, "wid_in_wg": 32, "wgid": 128, "tid_in_wg": 1, "tx": 1},
}
"""How many threads one step along a thread axis is, at each scope that may use it."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of a digit is to an operand: `stride` elements in memory, or `stride` threads of the scope.

    With `by`, `stride` times that value, which is known only when the kernel runs.
    """

    stride: int
    is_thread: bool = False
    by: Value | None = None


def farthest(step: Step) -> tuple[bool, int]:
    """Sorts steps: those that lead farthest first, for all that is known of them."""
    return step.by is None, -step.stride


@dataclass(frozen=True, slots=True)
class Digit:
    """A factor of the region's size, and what it means to each operand."""

    extent: int
    steps: tuple[Step, ...]


def distance_to(number: int, digits: Sequence[Digit], operand: int) -> int:
    """How far element `number` of digits (outermost first) lies from the first; numbers past the end begin again."""
    total = 0
    for digit in reversed(digits):
        number, own = divmod(number, digit.extent)
        total += own * digit.steps[operand].stride
    return total


@dataclass(frozen=True, slots=True)
class Placement:
    """One operand over its region: for each dim its factors, outermost first; copies of it on other threads; and where
    it begins: `offset` elements plus the maps applied to index values, and `thread` threads."""

    region: RegionInfo
    dims: tuple[tuple[tuple[int, Step], ...], ...]
    replicas: tuple[tuple[int, Step], ...]
    offset: int
    terms: tuple[tuple[Expr, Value], ...]
    thread: int
    scaled: tuple[tuple[Expr, Value | None, Value], ...] = ()
    """Parts of where it begins that count in strides known only when the kernel runs: (expression of a value, the
    value, the stride)."""
    irregular: bool = False
    """Whether steps count elements of the region (`irregular.by_coordinates`), not of memory."""

    @property
    def buffer(self) -> BufferInfo:
        """The region's buffer."""
        return self.region.buffer

    @property
    def swizzle(self) -> ComposeLayout | None:
        """The buffer's swizzled layout; None if it isn't swizzled."""
        layout = self.buffer.layout
        return layout if isinstance(layout, ComposeLayout) else None

    def offset_divisor(self) -> int:
        """A number that divides the place where it begins; 0 where it begins at 0."""
        result = abs(self.offset)
        for expr, value in self.terms:
            result = math.gcd(result, _expr_divisor(expr, affine.divisor(value)))
        for expr, value, by in self.scaled:
            count = _expr_divisor(expr, affine.divisor(value) if value is not None else 1)
            result = math.gcd(result, count * affine.divisor(by))
        return result


def _expr_divisor(expr: Expr, of_dim: int) -> int:
    """What divides a placement's term: the terms are sums of digit * stride, each a multiple of its stride."""
    if isinstance(expr, Const):
        return abs(expr.value)
    if isinstance(expr, Add):
        return math.gcd(*(_expr_divisor(each, of_dim) for each in expr.terms))
    if isinstance(expr, Mul):
        return _expr_divisor(expr.lhs, of_dim) * _expr_divisor(expr.rhs, of_dim)
    return of_dim if expr == dim(0) else 1


def thread_stride(scope: str, axis: Axis, region: RegionInfo) -> int:
    """Threads that a step along an axis is.  Decline where a call at this scope can't use the axis."""
    strides = THREADS_OF.get(scope, {})
    if axis.name not in strides:
        legal = ", ".join(strides) or "none: take this thread's registers with .local()"
        raise Decline(
            f"{region.buffer.name} is spread over axis '{axis.name}', which a call at {scope} scope can't use (it uses "
            f"{legal})"
        )
    return strides[axis.name]


def place(region: RegionInfo, scope: str) -> Placement:
    """A region's factors.  Decline, with the reason, where the region cuts through its layout."""
    buffer = region.buffer
    if buffer.layout is None:
        raise Decline(f"{buffer.name} has no layout")
    if buffer.strides is not None:
        return _place_by_strides(region, buffer.strides)
    layout = plain(buffer.layout)
    shape = tuple(max(extent, 1) for extent in buffer.shape)
    grouped, seps = layout.group(shape)
    offset, thread = 0, 0
    for axis, amount in grouped.offset.items():
        if axis.is_thread:
            thread += amount * thread_stride(scope, axis, region)
        else:
            offset += amount
    dims: list[tuple[tuple[int, Step], ...]] = []
    terms: list[tuple[Expr, Value]] = []
    for d, (begin, extent) in enumerate(zip(region.mins, region.extents, strict=True)):
        factors = [
            (each.extent, Step(each.stride * thread_stride(scope, each.axis, region), True))
            if each.axis.is_thread
            else (each.extent, Step(each.stride))
            for each in grouped.shard[seps[d] : seps[d + 1]]
        ]
        kept, moved = _slice(region, d, factors, extent)
        dims.append(tuple(kept))
        further, threads, expr = _begin(region, d, begin, factors, moved)
        offset, thread = offset + further, thread + threads
        if expr is not None:
            terms.append((expr, begin))
    replicas = tuple(
        (each.extent, Step(each.stride * thread_stride(scope, each.axis, region), True))
        if each.axis.is_thread
        else (each.extent, Step(each.stride))
        for each in layout.replica
    )
    return Placement(region, tuple(dims), replicas, offset, tuple(terms), thread)


def _place_by_strides(region: RegionInfo, strides: Sequence[Stride]) -> Placement:
    """A region of a buffer whose extents, and so strides, are known only when the kernel runs."""
    offset = 0
    terms: list[tuple[Expr, Value]] = []
    scaled: list[tuple[Expr, Value | None, Value]] = []
    for begin, (amount, by) in zip(region.mins, strides, strict=True):
        known = affine.linear(begin)
        if by is not None:
            is_constant = not known.terms
            expr = const(known.constant * amount) if is_constant else mul(dim(0), amount)
            if not (is_constant and known.constant == 0):
                scaled.append((expr, None if is_constant else begin, by))
        elif known.terms:
            terms.append((mul(dim(0), amount), begin))
        else:
            offset += known.constant * amount
    dims = tuple(((extent, Step(amount, by=by)),) for extent, (amount, by) in zip(region.extents, strides, strict=True))
    return Placement(region, dims, (), offset, tuple(terms), 0, tuple(scaled))


Factors = Sequence[tuple[int, Step]]


def _slice(region: RegionInfo, d: int, factors: Factors, extent: int) -> tuple[list[tuple[int, Step]], int]:
    """The factors of a part of a dim, and how many elements its beginning must be a multiple of (1: any beginning)."""
    real = [each for each in factors if each[0] != 1]
    total = math.prod(each[0] for each in real)
    if len(factors) == 1 or len(real) <= 1:
        step = real[0][1] if real else factors[0][1] if factors else Step(0)
        return [(extent, step)], 1
    if extent == total:
        return real, extent
    kept: list[tuple[int, Step]] = []
    left = extent
    for size, step in reversed(real):
        if left == 1:
            break
        if left % size == 0:
            kept.insert(0, (size, step))
            left //= size
        elif size % left == 0:
            kept.insert(0, (left, step))
            left = 1
        else:
            raise Decline(
                f"dim {d} of {region} takes {extent} elements, which cut through the layout's factors "
                f"{[each[0] for each in real]}"
            )
    if left != 1:
        raise Decline(f"dim {d} of {region} takes {extent} elements of {total}")
    return kept, extent


def _begin(region: RegionInfo, d: int, begin: Value, factors: Factors, unit: int) -> tuple[int, int, Expr | None]:
    """What the beginning of a part of a dim adds: elements, threads, and an expression of it where it isn't known."""
    known = affine.linear(begin)
    is_constant = not known.terms
    if (known.constant % unit if is_constant else affine.divisor(begin) % unit) and unit > 1:
        start = str(known.constant) if is_constant else f"'{begin.name or '?'}'"
        raise Decline(
            f"dim {d} of {region} begins at {start}, which isn't known to be a multiple of {unit}: the region would "
            "cut through the layout's factors"
        )
    offset, thread = 0, 0
    block = extent_of(factors)
    expr: Expr | None = None
    for k, (size, step) in enumerate(factors):
        block //= size
        if is_constant:
            digit = known.constant // block % size if k else known.constant // block
            if step.is_thread:
                thread += digit * step.stride
            else:
                offset += digit * step.stride
            continue
        if step.is_thread:
            if unit % block or (unit // block) % size or k == 0:
                raise Decline(f"dim {d} of {region} begins at a runtime value on a thread axis")
            continue
        if unit % (block * size) == 0 and k:
            continue  # this digit is 0: the beginning is a multiple of all of it
        digit_expr = floordiv(dim(0), block)
        digit_expr = mod(digit_expr, size) if k else digit_expr
        term = mul(digit_expr, step.stride)
        expr = term if expr is None else add(expr, term)
    return offset, thread, expr


# ----------------------------------------------------------------------------------------------------------- refinement
def refine(placements: Sequence[Placement]) -> list[Digit]:
    """The digits of operands over one shape.  The first gives the shape; others may lack leading dims, or have extent 1
    where it has more (their one element stands for all).  Decline where factors don't refine each other."""
    anchor = placements[0]
    rows = [[list(factors) for factors in anchor.dims], *(_aligned(anchor, other) for other in placements[1:])]
    digits: list[Digit] = []
    for d in range(len(rows[0])):
        digits += _refine_dim([row[d] for row in rows], d, placements)
    return merged(digits)


def extent_of(factors: Factors) -> int:
    """How many elements factors number."""
    return math.prod(size for size, _ in factors)


def _aligned(anchor: Placement, other: Placement) -> list[list[tuple[int, Step]]]:
    """The other operand's factors, dim by dim of the anchor."""
    wanted = [extent_of(factors) for factors in anchor.dims]
    found = [list(factors) for factors in other.dims]
    if len(found) != len(wanted) or any(extent_of(f) not in (1, w) for f, w in zip(found, wanted, strict=False)):
        real = [factors for factors in found if extent_of(factors) != 1]
        if [extent_of(f) for f in real] == [w for w in wanted if w != 1]:
            rest = iter(real)
            found = [next(rest) if w != 1 else [(1, Step(0))] for w in wanted]
        else:
            found = [[(1, Step(0))] for _ in range(len(wanted) - len(found))] + found
    result: list[list[tuple[int, Step]]] = []
    for d, (factors, extent) in enumerate(zip(found, wanted, strict=True)):
        own = extent_of(factors)
        if own not in (1, extent):
            raise Decline(f"dim {d}: {other.region} has {own} elements against {extent} (equal or 1)")
        result.append([(extent, Step(0))] if own == 1 else factors)
    return result


def _refine_dim(rows: list[list[tuple[int, Step]]], d: int, placements: Sequence[Placement]) -> list[Digit]:
    """Split every operand's factors of one dim from the inside, so that all have the same."""
    stacks = [[each for each in row if each[0] != 1] for row in rows]
    found: list[Digit] = []
    while any(stacks):
        sizes = [stack[-1][0] for stack in stacks]
        size = min(sizes)
        steps: list[Step] = []
        for stack, placement in zip(stacks, placements, strict=True):
            extent, step = stack.pop()
            if extent % size:
                raise Decline(
                    f"dim {d}: the factor {extent} of {placement.region} and {size} of another operand don't divide "
                    "each other"
                )
            steps.append(step)
            if extent != size:
                stack.append((extent // size, Step(step.stride * size, step.is_thread, step.by)))
        found.append(Digit(size, tuple(steps)))
    found.reverse()
    return found


def merged(digits: Sequence[Digit]) -> list[Digit]:
    """Neighbours that step together for every operand become one digit."""
    result: list[Digit] = []
    for digit in digits:
        if result and _chains(result[-1], digit):
            last = result.pop()
            digit = Digit(last.extent * digit.extent, digit.steps)
        result.append(digit)
    return result


def _chains(outer: Digit, inner: Digit) -> bool:
    return all(
        a.is_thread == b.is_thread and a.by is b.by and a.stride == b.stride * inner.extent
        for a, b in zip(outer.steps, inner.steps, strict=True)
    )
