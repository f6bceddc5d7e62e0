"""Guessing what a mistyped name was meant to be.

In: a word and the words that would do.  Out: a help sentence, or None.  Two swapped letters are the likeliest slip, so
they are tried before the general search (`tahn` is `tanh`, not `tan`).
"""

from __future__ import annotations

from collections.abc import Collection

from warpsmith.errors import did_you_mean

__all__ = ["suggest"]

_LONGEST = 64
_MOST = 5000


def suggest(word: str, known: Collection[str]) -> str | None:
    """`did you mean '...'?` with the nearest of `known`, or None when nothing is near."""
    if len(word) > _LONGEST:
        return None
    for index in range(len(word) - 1):
        swapped = word[:index] + word[index + 1] + word[index] + word[index + 2 :]
        if swapped != word and swapped in known:
            return f"did you mean '{swapped}'?"
    # The general search looks at every word; among very many it would take longer than the parse did.
    return did_you_mean(word, known) if len(known) <= _MOST else None
