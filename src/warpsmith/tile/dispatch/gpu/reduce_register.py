"""`reg`: a reduction of registers: each thread over its own, then over the lanes that share a row, by shuffles, then
over the warps that share it, through shared memory.

    src S[(4, 32, 8):(1@warpid, 1@laneid, 1)], dst on all threads   ->   8 registers, 5 shuffles, 4 partial results

Every thread that dst lies on gets the result.  A dst with a slot for each thread that a reduced dim is spread over gets
each thread's own partial result, or with `thread_reduce=True` all of them the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.indexing import Expr, add, const, dim, floordiv, mul, substitute
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import I32
from warpsmith.ir.dialects import arith, memory
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.digits import Digit, refine
from warpsmith.tile.dispatch.emission import Term, digit_sum, loop, when
from warpsmith.tile.dispatch.gpu.copy_register import split_threads
from warpsmith.tile.dispatch.gpu.elementwise_shared import barrier
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, SCOPE, all_in
from warpsmith.tile.dispatch.reduction import REDUCTIONS, Reduction, combine, finish, fold, partial, reduction
from warpsmith.tile.dispatch.registry import Variant
from warpsmith.tile.dispatch.threads import Owners, owners
from warpsmith.tile.frontend.values import Scalar
from warpsmith.tile.model.scopes import WARP
from warpsmith.tile.model.shuffles import shuffle

__all__ = ["VARIANTS"]

Parts = tuple[tuple[int, int], ...]
"""(extent, stride in threads) of digits."""

_SCRATCH_BYTES = 8192
"""Partial results of so many bytes go through shared memory at a time; of one output, however large."""


@dataclass(frozen=True, slots=True)
class _Spread:
    """How src is spread over threads: along kept dims, along reduced ones over the lanes of a warp, and over more than
    one warp; `copies` are those of src, `receivers` the threads that dst lies on."""

    kept: Parts
    lanes: Parts
    warps: Parts
    copies: Parts
    receivers: Owners

    @property
    def masks(self) -> list[int]:
        """The xor distances that combine the lanes."""
        return [stride << i for extent, stride in self.lanes for i in range(extent.bit_length() - 1)]


def _spread(call: CallContext, found: Reduction) -> _Spread:
    """Decline where dst doesn't lie on src's threads, or src not on all."""
    src, dst = found.src, found.dst
    if call.scope != "thread":
        if not src.buffer.is_distributed:
            raise Decline(f"src {src.buffer.name} isn't spread over the {call.scope}'s threads")
        gaps = split_threads(call, "src", refine([src]), 0)[2].gaps()
        if gaps:
            raise Decline(f"src {src.buffer.name}: {gaps}")
    if dst.thread != src.thread:
        raise Decline(f"dst {dst.buffer.name} begins at another thread than src")
    for digit in found.kept:
        own, other = digit.steps[:2]
        if (own.is_thread or other.is_thread) and own != other:
            raise Decline(f"dst {dst.buffer.name} is spread over threads otherwise than src")
    stays = found.slots and not call.config.get("thread_reduce")
    kept = [d for d in found.kept if d.steps[0].is_thread]
    summed: list[Digit] = []
    for digit in found.reduced:
        if digit.steps[0].is_thread:
            if stays and not digit.steps[1].is_thread:
                raise Decline(f"dst {dst.buffer.name} has slots along one reduced dim and none along another")
            (kept if stays else summed).append(digit)
    lanes, warps = _lanes_and_warps(summed)
    copies = tuple((extent, step.stride) for extent, step in src.replicas if step.is_thread)
    slots = [d for d in found.reduced if d.steps[1].is_thread]
    held = [(d.extent, d.steps[1].stride) for d in (*found.kept, *slots) if d.steps[1].is_thread]
    dst_copies = [(extent, step.stride) for extent, step in dst.replicas if step.is_thread]
    receivers = owners(held, dst_copies, dst.thread, call.threads, dst.buffer.name)
    return _Spread(tuple((d.extent, d.steps[0].stride) for d in kept), lanes, warps, copies, receivers)


def _lanes_and_warps(digits: Sequence[Digit]) -> tuple[Parts, Parts]:
    """Digits apart: powers of two within a warp, and what shuffles can't reach."""
    lanes: list[tuple[int, int]] = []
    warps: list[tuple[int, int]] = []
    for digit in digits:
        extent, stride = digit.extent, digit.steps[0].stride
        inside = WARP // stride if stride < WARP and WARP % stride == 0 else 1
        if inside > 1 and extent > inside and extent % inside == 0:
            lanes.append((inside, stride))
            extent, stride = extent // inside, WARP
        is_lane = stride * extent <= WARP and extent & (extent - 1) == 0 and stride & (stride - 1) == 0
        (lanes if is_lane else warps).append((extent, stride))
    return tuple(lanes), tuple(warps)


def emit(call: CallContext) -> str:
    """Build the loop over a thread's outputs; the partition in words."""
    found = reduction(call)
    spread = _spread(call, found)
    kept = [d for d in found.kept if not d.steps[0].is_thread]
    own = [d for d in found.reduced if not d.steps[0].is_thread]
    outputs = math.prod(d.extent for d in kept)
    b = call.b
    writes = None if call.scope == "thread" else spread.receivers.holds(b, call.thread(), one_copy=False)

    def in_warp(term: Term, number: Expr) -> Scalar:
        """One output over this thread's elements and its warp's lanes."""
        total = partial(call, found, digit_sum(number, kept, 0), term, own)
        for mask in spread.masks:
            moved = shuffle(b, "xor", total.value, arith.constant(b, mask, I32))
            total = combine(call, total, Scalar(moved, total.type))
        return total

    def write(term: Term, number: Expr, total: Scalar) -> None:
        with when(b, writes):
            finish(call, found, total, term, digit_sum(number, kept, 1))

    words = f"each thread: {outputs} x {math.prod(d.extent for d in own)} registers, {len(spread.masks)} shuffles"
    if not spread.warps:
        with loop(b, outputs, unroll=True) as turn:
            term = Term(b)
            number = term.var(turn)
            write(term, number, in_warp(term, number))
        return words
    scratch = _Scratch.of(call, found, spread, outputs)
    with loop(b, outputs // scratch.outputs, "round", unroll=True) as round:
        with loop(b, scratch.outputs, unroll=True) as turn:
            term = Term(b)
            number = add(mul(term.var(round), scratch.outputs), term.var(turn))
            scratch.store(term, term.var(turn), in_warp(term, number))
        barrier(call)
        with loop(b, scratch.outputs, unroll=True) as turn:
            term = Term(b)
            number = add(mul(term.var(round), scratch.outputs), term.var(turn))
            write(term, number, scratch.total(term, term.var(turn)))
        barrier(call)
    return f"{words}, {scratch.parts} partial results through shared memory"


@dataclass(frozen=True, slots=True)
class _Scratch:
    """Partial results in shared memory, for each output, each group of threads that keeps one, and each of the `parts`
    that make it up: `outputs` at a time."""

    call: CallContext
    found: Reduction
    spread: _Spread
    memory: Value
    outputs: int
    parts: int

    @staticmethod
    def of(call: CallContext, found: Reduction, spread: _Spread, outputs: int) -> _Scratch:
        """The memory, from the kernel's storage.  Decline where the device has no more."""
        parts = math.prod(extent for extent, _ in spread.warps)
        one = math.prod(extent for extent, _ in spread.kept) * parts * (call.launch.threads // call.threads)
        most = max(1, _SCRATCH_BYTES // (one * found.type.bytes))
        at_once = next(n for n in range(min(most, outputs), 0, -1) if outputs % n == 0)
        memory_ = call.storage.scratch(call.scope, found.type, one * at_once, call.device)
        if memory_ is None:
            raise Decline(f"{one * found.type.bytes} bytes of shared memory for partial results aren't left")
        return _Scratch(call, found, spread, memory_, at_once, parts)

    def _place(self, term: Term, output: Expr, part: Expr) -> Value:
        call, spread = self.call, self.spread
        block_thread = term.var(call.storage.ids.thread())
        group = floordiv(block_thread, call.threads) if call.launch.threads > call.threads else const(0)
        number = add(mul(group, self.outputs), output)
        for digit in _digits(spread.kept, term.var(call.thread())):
            number = add(mul(number, digit[1]), digit[0])
        return term.emit(add(mul(number, self.parts), part))

    def store(self, term: Term, output: Expr, total: Scalar) -> None:
        """One lane of each group writes what the group has."""
        call, spread = self.call, self.spread
        b, thread = call.b, term.var(call.thread())
        part: Expr = const(0)
        for digit, extent in _digits(spread.warps, thread):
            part = add(mul(part, extent), digit)
        rest: Expr = const(0)
        for (digit, _), (_, stride) in zip(
            _digits((*spread.lanes, *spread.copies), thread), (*spread.lanes, *spread.copies), strict=True
        ):
            rest = add(rest, mul(digit, stride))
        writer = None
        if spread.lanes or any(extent > 1 for extent, _ in spread.copies):
            writer = arith.cmpi(b, "eq", term.emit(rest), arith.index(b, 0))
        with when(b, writer):
            memory.store(b, total.value, self.memory, self._place(term, output, part))

    def total(self, term: Term, output: Expr) -> Scalar:
        """All parts of an output."""
        call, type = self.call, self.found.type
        values = list(term.values)

        def element(number: Value) -> Scalar:
            here = Term(call.b)
            here.values = list(values)
            return Scalar(memory.load(call.b, self.memory, self._place(here, output, here.var(number))), type)

        one = arith.index(call.b, 1)
        return fold(call, element(arith.index(call.b, 0)), one, arith.index(call.b, self.parts), one, element)


def _digits(parts: Parts, thread: Expr) -> list[tuple[Expr, int]]:
    """Each digit in a thread, with its extent."""
    holders = Owners(parts, (), 0, 0)
    return [(substitute(holders.digit(i), {dim(0): thread}), extent) for i, (extent, _) in enumerate(parts)]


VARIANTS = [
    Variant(
        REDUCTIONS,
        "reg",
        10,
        "registers: each thread over its own, then lanes by shuffles, then warps through shared memory",
        (SCOPE, ALL_ACTIVE, LAYOUTS, NO_OVERLAP, all_in("local", "both operands are in registers")),
        emit,
    )
]
