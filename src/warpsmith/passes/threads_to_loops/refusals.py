"""What a block's threads can't do when they run one after the other, each with its place and the reason.

A synchronisation has to be reached by all threads that it is for: outside of loops over threads there is one control
flow for all of them.
"""

from __future__ import annotations

import linecache

import numpy as np

from warpsmith.errors import LoweringError, Span
from warpsmith.ir.core.ssa import Effect, Location, Operation
from warpsmith.ir.dialects import arith
from warpsmith.passes.threads_to_loops.collectives import COLLECTIVES
from warpsmith.passes.threads_to_loops.levels import Level, Levels
from warpsmith.passes.threads_to_loops.masks import Mask
from warpsmith.passes.threads_to_loops.segments import IDS, NOTHING

__all__ = ["BARRIERS", "check_barrier", "check_ops", "check_warps", "diverges"]

BARRIERS = frozenset(("gpu.barrier", "nvvm.bar.warp.sync", "nvvm.barrier"))

_CONTROL = frozenset(("scf.for", "scf.if", "scf.while"))
_HELP = "run it in the simulator: --platform sim"


def _refusal(op: Operation, cause: str, help: str = _HELP) -> LoweringError:
    return LoweringError(cause, span=_span(op.location), help=help)


def _span(location: Location) -> Span | None:
    if not location.line:
        return None
    text = linecache.getline(location.file, location.line).rstrip("\n")
    return Span(location.file, location.line, max(1, location.column), text)


def check_ops(function: Operation, levels: Levels) -> None:
    """LoweringError for a synchronisation that this pass has no form of, or not where it is."""
    for op, flow in levels.elections.items():
        if flow is Level.THREAD:  # all lanes are there, so that it is the first of them
            raise _refusal(op, f"{op.name} is for all lanes of a warp, and here some may be elsewhere")
    for op in function.walk():
        if op.regions and op.name not in _CONTROL and op is not function and any(_synchronises(o) for o in op.walk()):
            raise _refusal(op, f"a synchronisation in {op.name} has no form on a CPU")
        if _synchronises(op) and op.name not in BARRIERS | NOTHING | IDS and op.name not in COLLECTIVES:
            raise _refusal(op, f"{op.name} has no form on a CPU")


def _synchronises(op: Operation) -> bool:
    return any(effect is Effect.BARRIER for effect, _ in op.row.effects)


def diverges(op: Operation) -> LoweringError:
    """A branch or a loop that holds a synchronisation, and that threads take differently."""
    inner = next((o for o in op.walk() if o.name in BARRIERS or o.name in COLLECTIVES), op)
    what = "an if" if op.name == "scf.if" else "a loop"
    where = f" (line {op.location.line})" if op.location.line else ""
    return _refusal(
        inner,
        f"{inner.name} is in {what}{where} that threads take differently, in a way that ids and constants don't decide",
        "on a CPU all threads of a block, or for an if of a warp, must agree on it; " + _HELP,
    )


def check_barrier(op: Operation, mask: Mask) -> None:
    """A block's barrier is for all threads; a named one for no more than are here."""
    if op.name == "gpu.barrier" and not mask.is_everyone:
        raise _refusal(op, f"{op.name} waits for the whole block, and {_who(mask)} alone get here")
    if op.name == "nvvm.barrier" and not mask.is_everyone:
        count = arith.constant_int(op.operands[1])
        if mask.asked or count is None or count > mask.count:
            wanted = "" if count is None else f"{count} "
            raise _refusal(op, f"{op.name} waits for {wanted}threads, and {_who(mask)} alone get here")


def check_warps(op: Operation, mask: Mask, size: int) -> None:
    """What the `size` lanes of a warp do together, all of them do."""
    whole = -(-mask.active.size // size) * size
    lanes = np.concatenate([mask.active, np.repeat(mask.active[-1:], whole - mask.active.size)]).reshape(-1, size)
    if not bool((lanes == lanes[:, :1]).all()):
        raise _refusal(op, f"{op.name} is for all lanes of a warp, and {_who(mask)} alone get here")


def _who(mask: Mask) -> str:
    if mask.asked:
        return "some warps"
    lower, upper = mask.bounds
    return f"threads {lower} to {upper - 1}" if upper - lower == mask.count else f"{mask.count} threads"
