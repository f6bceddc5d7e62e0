"""Changes to a pipeline: passes put before or after others, passes left out.

In: text, such as `+mine{opt=1}@before:cse#2,-licm`.  Out: `Edit`s, and a list of passes with them done, in order.

    +PASS@before:NAME    PASS runs just before NAME, which is the first of that name; `NAME#2` is the second
    +PASS@after:NAME     just after it
    -NAME                NAME doesn't run, wherever it stands; `-NAME#2` leaves out the second alone
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.errors import UnknownPass, did_you_mean
from warpsmith.passes.manager import PassCall, parse_pipeline

__all__ = ["Edit", "edited", "parse_edits"]

_HELP = "write +PASS{option=1}@before:NAME, +PASS@after:NAME#2 or -NAME, separated by commas"
_EDIT = re.compile(
    r"\s*(?:\+\s*(?P<added>[\w-]+\s*(?:\{[^{}]*\})?)\s*@\s*(?P<side>before|after)\s*:\s*|-)"
    r"(?P<name>[A-Za-z][\w-]*)(?:#(?P<number>[1-9]\d*))?\s*(?:,|$)"
)


@dataclass(frozen=True, slots=True)
class Edit:
    """`added` goes before or after the pass `name` (its `number`-th, from 1; 0: the first); without it `name` goes
    (0: wherever it stands)."""

    name: str
    number: int = 0
    added: PassCall | None = None
    after: bool = False

    @property
    def place(self) -> str:
        """The pass that it names, as it is written."""
        return f"{self.name}#{self.number}" if self.number else self.name


def parse_edits(text: str) -> tuple[Edit, ...]:
    """Edits from text.  UnknownPass for text of another form, and for a pass or an option that doesn't exist."""
    edits: list[Edit] = []
    position = 0
    while position < len(text):
        match = _EDIT.match(text, position)
        if match is None:
            raise UnknownPass(f"can't read the pipeline's change at '{text[position : position + 30]}'", help=_HELP)
        added: str | None = match["added"]
        call = parse_pipeline(added)[0] if added else None
        edits.append(Edit(match["name"], int(match["number"] or 0), call, match["side"] == "after"))
        position = match.end()
    return tuple(edits)


def edited(calls: Sequence[PassCall], edits: Sequence[Edit]) -> tuple[PassCall, ...]:
    """The passes with the edits done, in order.  UnknownPass for a place that the pipeline doesn't have."""
    found = list(calls)
    for edit in edits:
        places = [i for i, call in enumerate(found) if call.name == edit.name]
        if max(edit.number, 1) > len(places):
            raise _nowhere(edit, len(places), found)
        if edit.added is not None:
            found.insert(places[max(edit.number, 1) - 1] + edit.after, edit.added)
        elif edit.number:
            del found[places[edit.number - 1]]
        else:
            found = [call for call in found if call.name != edit.name]
    return tuple(found)


def _nowhere(edit: Edit, count: int, calls: Sequence[PassCall]) -> UnknownPass:
    if count:
        return UnknownPass(f"the pipeline has '{edit.name}' {count} times, and no '{edit.place}'")
    names = list(dict.fromkeys(call.name for call in calls))
    return UnknownPass(
        f"the pipeline has no pass '{edit.name}'", help=did_you_mean(edit.name, names) or f"it has: {', '.join(names)}"
    )
