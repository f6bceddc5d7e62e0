"""Why a rule turns a fusion down.

Rules give what they found, or a `Reason`: the condition that failed in words, and the numbers in those words by name.
The text stands where the condition is tested, so reports have none of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Reason", "reason"]


@dataclass(frozen=True, slots=True)
class Reason:
    """A condition that failed; `numbers` are those it compared, the limit among them."""

    text: str
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])

    def __str__(self) -> str:
        return self.text


def reason(text: str, **numbers: int) -> Reason:
    """A `Reason` with its numbers as keywords."""
    return Reason(text, numbers)
