"""Work that any thread may do, shared out over the threads that do a call together.

    item f * threads + t goes to thread t in turn f, so that neighbours go to neighbouring threads

In: how many items there are.  Out: the loop over turns around what is built, with this thread's item.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from warpsmith.indexing import Expr, add, mul
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.emission import Term, counted, loop, when

__all__ = ["shared_out", "turns_in_words"]

FEW_TURNS = 8  # are written out, so that their loads are on the way together


@contextmanager
def shared_out(call: CallContext, items: int) -> Generator[tuple[Term, Expr]]:
    """Build for one of `items`, whose number is the expression; threads without one in the last turn are left out."""
    turns = _turns(call, items)
    with loop(call.b, turns, unroll=turns <= FEW_TURNS) as turn:
        term = Term(call.b)
        number = mul(term.var(turn), call.threads)
        if call.scope != "thread":
            number = add(number, term.var(call.thread()))
        guard = counted(call.b, term.emit(number), items) if items % call.threads else None
        with when(call.b, guard):
            yield term, number


def turns_in_words(call: CallContext, items: int) -> str:
    """The partition: turns x threads."""
    threads = "this thread" if call.scope == "thread" else f"{call.threads} threads"
    return f"{_turns(call, items)} x {threads}"


def _turns(call: CallContext, items: int) -> int:
    return -(-items // call.threads)
