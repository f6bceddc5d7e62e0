"""How an InvalidIr about one op reads.

In: the op, the cause, perhaps the rule.  Out: the error: the op's place, its name and HLO names, its text if short.
"""

from __future__ import annotations

from warpsmith.errors import InvalidIr, Span
from warpsmith.ir.core.ssa import Operation

__all__ = ["invalid"]

_LONGEST = 300


def invalid(op: Operation, cause: str, help: str | None = None) -> InvalidIr:
    """The error to raise about `op`; `cause` completes the sentence "OP: ..."."""
    from warpsmith.ir.text.printer import print_op  # text is needed for errors alone

    location = op.location
    names = f" (from {', '.join(location.names)})" if location.names else ""
    text = "" if op.regions else print_op(op)
    shown = f", in '{text}'" if text and len(text) <= _LONGEST else ""
    span = Span(location.file, location.line, location.column) if location.line else None
    return InvalidIr(f"{op.row.name}{names}: {cause}{shown}", span=span, help=help)
