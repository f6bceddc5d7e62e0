"""A next step for an author whose call no lowering takes.

In: the call.  Out: a sentence, or None: the first that one of `_RULES` has to say.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.digits import THREADS_OF
from warpsmith.tile.dispatch.predicates import NO_OVERLAP, ROUNDING
from warpsmith.tile.model.buffers import plain

__all__ = ["advice"]


def advice(call: CallContext) -> str | None:
    """A next step that often helps."""
    return next((found for rule in _RULES if (found := rule(call)) is not None), None)


def _prefix(scope: str) -> str:
    return "Tx" if scope == "thread" else f"Tx.{scope}"


def _cluster(call: CallContext) -> str | None:
    return f"each block can do its own part: Tx.cta.{call.row.name}" if call.scope == "cluster" else None


def _other_scope(call: CallContext) -> str | None:
    """A register tile whose thread axes are another scope's."""
    for region in call.regions.values():
        layout = region.buffer.layout
        if layout is None or not region.buffer.is_distributed:
            continue
        axes = {each.axis.name for each in (*plain(layout).shard, *plain(layout).replica) if each.axis.is_thread}
        fitting = [scope for scope, legal in THREADS_OF.items() if axes <= set(legal)]
        if fitting and call.scope not in fitting:
            scope = fitting[0]
            return f"{region.buffer.name} is spread over a {scope}'s threads: {_prefix(scope)}.{call.row.name}"
    return None


def _one_kind_of_memory(call: CallContext) -> str | None:
    """The copy that brings all operands into one kind of memory."""
    if call.row.kind == "copy":
        return None
    where = {role: ("shared" if r.buffer.is_shared else r.buffer.scope) for role, r in call.regions.items()}
    dst = call.regions["dst"].buffer.name
    if where["dst"] == "global":
        return f"compute into registers or shared memory, and copy from there: {_prefix(call.scope)}.copy({dst}, tile)"
    other = [call.regions[role].buffer.name for role, each in where.items() if each != where["dst"]]
    if not other:
        return None
    place = "shared memory" if where["dst"] == "shared" else f"registers with the layout of {dst}"
    return f"copy {' and '.join(dict.fromkeys(other))} into {place} first: {_prefix(call.scope)}.copy(tile, {other[0]})"


def _whole_groups(call: CallContext) -> str | None:
    if call.scope != "thread" and call.active.of_scope(call.threads) is not None:
        return f"call it where all threads of the {call.scope} take part, or at thread scope on .local() views"
    return None


def _apart(call: CallContext) -> str | None:
    return "go by way of another buffer" if NO_OVERLAP.check(call) is not None else None


def _rounding(call: CallContext) -> str | None:
    return "leave rounding_mode and ftz out" if ROUNDING.check(call) is not None else None


def _on_every_thread(call: CallContext) -> str | None:
    """An elementwise primitive on a tile that lies on some of the threads alone."""
    dst = call.region("dst").buffer
    if call.scope == "thread" or call.row.kind in ("copy", "gemm") or dst.scope != "local":
        return None
    if not dst.is_distributed:
        return f"pass the {call.scope}'s tile, or call {_prefix('thread')}.{call.row.name} on each thread's registers"
    return f"one layout, over all threads of the {call.scope}, for dst and sources; + R[...] makes copies on the others"


def _not_forced(call: CallContext) -> str | None:
    return "without dispatch= the first variant that fits takes the call" if call.forced is not None else None


_RULES: tuple[Callable[[CallContext], str | None], ...] = (
    _cluster,
    _not_forced,
    _other_scope,
    _one_kind_of_memory,
    _whole_groups,
    _apart,
    _rounding,
    _on_every_thread,
)
