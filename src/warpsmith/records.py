"""Reports as data: what people print, notebooks show, and scripts read.

In: a dataclass whose `str()` is for people.  Out: plain dicts, JSON text, HTML.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any, cast

__all__ = ["SCHEMA", "Record", "json_text", "plain", "preformatted"]

SCHEMA = 1
"""The version of all JSON: it grows when a key goes away or changes its meaning, not when one is added."""


class Record:
    """A dataclass that is a report: `to_dict()` for Python, `to_json()` for scripts, `_repr_html_` for notebooks."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data: dicts, lists, numbers, text.  Infinities and NaN, which JSON lacks, are text."""
        return plain(asdict(cast("Any", self)))

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dict` as JSON text, with the version of its keys as `schema`."""
        return json_text(self.to_dict(), indent=indent)

    def _repr_html_(self) -> str:
        return preformatted(str(self))


def json_text(data: Mapping[str, Any], *, indent: int | None = None) -> str:
    """One JSON object, with the version of its keys as `schema`."""
    return json.dumps({"schema": SCHEMA, **data}, indent=indent)


def plain(value: Any) -> Any:
    """Data without tuples, and without the floats that JSON lacks."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: plain(each) for key, each in cast("dict[str, Any]", value).items()}
        case list() | tuple():
            return [plain(each) for each in cast("Sequence[Any]", value)]
        case _:
            return value


def preformatted(text: str) -> str:
    """Text as HTML that keeps its columns."""
    return f"<pre style='line-height:1.35;white-space:pre-wrap'>{escape(text)}</pre>"
