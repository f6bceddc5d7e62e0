"""`fallback`: a copy by one thread of the scope, element by element, for what no other variant takes.

Every element's address is computed from its coordinates, so any two layouts do.  A buffer that is spread over threads
is refused: one thread can't reach the registers of the others.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager

from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import arith
from warpsmith.tile.dispatch.addressing import element_address
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.emission import loop, when
from warpsmith.tile.dispatch.moves import load_elements, store_elements
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, SCOPE
from warpsmith.tile.dispatch.registry import Predicate, Variant
from warpsmith.tile.model.buffers import plain

__all__ = ["VARIANTS"]


def _not_distributed(call: CallContext) -> str | None:
    for role in ("dst", "src"):
        buffer = call.region(role).buffer
        if buffer.is_distributed:
            return f"{role} {buffer.name} is spread over threads: no thread can reach the registers of the others"
        if buffer.scope == "local" and call.scope != "thread":
            return (
                f"{role} {buffer.name} is each thread's own: a copy at {call.scope} scope would fill one thread's alone"
            )
        if role == "dst" and buffer.layout is not None and plain(buffer.layout).replica:
            return f"dst {buffer.name} keeps copies of its elements"
    return None


@contextmanager
def _nest(call: CallContext, extents: Sequence[int]) -> Generator[list[Value]]:
    with ExitStack() as stack:
        yield [stack.enter_context(loop(call.b, extent, f"i{d}")) for d, extent in enumerate(extents)]


def emit(call: CallContext) -> str:
    """Build the copy; the partition in words."""
    b = call.b
    dst, src = call.region("dst"), call.region("src")
    guard = None
    if call.scope != "thread":
        guard = arith.cmpi(b, "eq", call.thread(), arith.index(b, 0))
    real = [extent for extent in dst.extents if extent != 1]
    with when(b, guard), _nest(call, real) as indices:
        value = load_elements(b, src.buffer, call.storage.of(src.buffer), element_address(b, src, indices))
        store_elements(b, value, dst.buffer, call.storage.of(dst.buffer), element_address(b, dst, indices))
    return "one thread, one element at a time"


VARIANTS = [
    Variant(
        ("copy",),
        "fallback",
        0,
        "any memory to any memory, by one thread",
        (
            SCOPE,
            ALL_ACTIVE,
            LAYOUTS,
            NO_OVERLAP,
            Predicate("no side is spread over threads", _not_distributed),
        ),
        emit,
    )
]
