"""Every error that a user can meet.

One class an error, each with a stable code, a place in the input, the cause, and the next step.  `str(error)` is
what the command line prints:

    gelu.hlo:7:12: error[WS0203]: unknown opcode 'tahn'
      7 |   t = f32[4] tahn(x)
        |              ^^^^
      help: did you mean 'tanh'?

Codes are grouped by the part of the system that raises them: 01 command line and API, 02 HLO text, 03 HLO
verifier, 04 indexing, 05 IR text, 06 IR verifier, 07 fusion and emitters, 08 passes, 09 targets, 10 run time,
11 simulator, 12 tile, 99 our own bugs.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import ClassVar

__all__ = [
    "Span",
    "WarpsmithError",
    "did_you_mean",
    "require",
]


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a source text.  `line` and `column` start at 1; `text` is the whole source line."""

    file: str
    line: int
    column: int
    text: str = ""
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class WarpsmithError(Exception):
    """Base of all errors that Warpsmith raises on purpose.

    `cause` says what is wrong in one sentence; `help` what to do next.  Subclasses set `code`.
    """

    code: ClassVar[str] = "WS0000"

    def __init__(self, cause: str, *, span: Span | None = None, help: str | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.span = span
        self.help = help

    def to_dict(self) -> dict[str, str | int]:
        """`code` and `cause`, and where known `help` and the place: `file`, `line`, `column` (from 1)."""
        found: dict[str, str | int] = {"code": self.code, "cause": self.cause}
        if self.help:
            found["help"] = self.help
        if self.span is not None:
            found |= {"file": self.span.file, "line": self.span.line, "column": self.span.column}
        return found

    def __str__(self) -> str:
        head = f"error[{self.code}]: {self.cause}"
        lines = [f"{self.span}: {head}" if self.span is not None else head]
        if self.span is not None and self.span.text:
            lines += _excerpt(self.span)
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


_EXCERPT_WIDTH = 160


def _excerpt(span: Span) -> list[str]:
    """The source line with carets under the span; a long line is cut to a window around the caret."""
    start, text = span.column - 1, span.text.rstrip("\n")
    offset = max(0, start - _EXCERPT_WIDTH // 2) if len(text) > _EXCERPT_WIDTH else 0
    window = text[offset : offset + _EXCERPT_WIDTH].replace("\t", " ")
    number = str(span.line)
    carets = "^" * max(1, min(span.length, len(window) - (start - offset)))
    return [f"  {number} | {window}", f"  {' ' * len(number)} | {' ' * (start - offset)}{carets}"]


_LONGEST_WORD = 64
_MOST_WORDS = 5000


def require(value: object, kind: type | tuple[type, ...], message: str, *, help: str | None = None) -> None:
    """UsageError unless `value` is a `kind`: for those who call without a type checker."""
    if not isinstance(value, kind):
        raise UsageError(f"{message}, not {type(value).__name__}", help=help)


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A help sentence that names the nearest known word, or None when nothing is near.

    Two swapped letters are the likeliest slip, so they are tried first: `tahn` is `tanh`, not `tan`.
    """
    if len(word) > _LONGEST_WORD:
        return None
    words = known if isinstance(known, Set) else set(known)
    for index in range(len(word) - 1):
        swapped = word[:index] + word[index + 1] + word[index] + word[index + 2 :]
        if swapped != word and swapped in words:
            return f"did you mean '{swapped}'?"
    if len(words) > _MOST_WORDS:
        return None  # the general search looks at every word: among very many it would take longer than the work did
    near = difflib.get_close_matches(word, sorted(words), n=1, cutoff=0.6)
    return f"did you mean '{near[0]}'?" if near else None


# 01: command line and API
class UsageError(WarpsmithError):
    """The command line or an API call is wrong."""

    code = "WS0101"


class FileError(WarpsmithError):
    """A file can't be read or written."""

    code = "WS0102"


class UnknownTarget(WarpsmithError):
    """No such target or device."""

    code = "WS0103"


class ArgumentMismatch(WarpsmithError):
    """Arrays given to an executable don't fit its parameters (count, shape, dtype)."""

    code = "WS0104"


# 02: HLO text
class HloSyntaxError(WarpsmithError):
    """The text isn't HLO."""

    code = "WS0201"


class UnknownDType(WarpsmithError):
    """No such element type."""

    code = "WS0202"


class UnknownOpcode(WarpsmithError):
    """No such HLO opcode."""

    code = "WS0203"


class UnknownName(WarpsmithError):
    """An operand or computation that was never defined."""

    code = "WS0204"


class DuplicateName(WarpsmithError):
    """A name defined twice."""

    code = "WS0205"


class BadAttribute(WarpsmithError):
    """An attribute that is unknown, missing, or malformed."""

    code = "WS0206"


class BadLiteral(WarpsmithError):
    """A constant whose text doesn't fit its shape or dtype."""

    code = "WS0207"


class ElidedConstant(WarpsmithError):
    """`constant({...})`: the values were left out when the text was printed."""

    code = "WS0208"


# 03: HLO verifier
class BadProto(WarpsmithError):
    """Bytes that aren't serialised HLO, or whose parts don't fit together."""

    code = "WS0209"


class InvalidHlo(WarpsmithError):
    """Well-formed HLO text that means nothing: shapes, dtypes or attributes don't fit together.

    `rule` names the verifier's rule that is broken (`slice.range`), and ends the first line of the message.
    """

    code = "WS0301"

    def __init__(self, cause: str, *, span: Span | None = None, help: str | None = None, rule: str = "") -> None:
        super().__init__(cause, span=span, help=help)
        self.rule = rule

    def __str__(self) -> str:
        first, newline, rest = super().__str__().partition("\n")
        return f"{first} [{self.rule}]{newline}{rest}" if self.rule else first + newline + rest


class UnsupportedHlo(WarpsmithError):
    """Valid HLO that the reference interpreter has no rule for."""

    code = "WS0302"


class StepLimit(WarpsmithError):
    """An evaluation takes too many steps: a loop that may never end."""

    code = "WS0303"


# 04: indexing
class IndexingSyntaxError(WarpsmithError):
    """The text isn't an indexing map."""

    code = "WS0401"


class IndexingError(WarpsmithError):
    """Indexing maps that don't fit together."""

    code = "WS0402"


# 05: IR text
class IrSyntaxError(WarpsmithError):
    """The text isn't MLIR."""

    code = "WS0501"


# 06: IR verifier
class InvalidIr(WarpsmithError):
    """IR that breaks a rule of its dialect, or of the stage that it is in."""

    code = "WS0601"


# 07: fusion and emitters
class UnsupportedFusion(WarpsmithError):
    """A fusion holds an op that no emitter takes."""

    code = "WS0701"


# 08: passes
class UnknownPass(WarpsmithError):
    """No such pass, or no such option of a pass."""

    code = "WS0801"


class PassFailed(WarpsmithError):
    """A pass met IR that it can't handle."""

    code = "WS0802"


class OwnPassFailed(WarpsmithError):
    """A pass of your own raised."""

    code = "WS0803"


# 09: targets
class LoweringError(WarpsmithError):
    """An op has no form on this target."""

    code = "WS0901"


class ToolMissing(WarpsmithError):
    """An optional tool (ptxas, nvdisasm, libdevice, a driver) isn't here."""

    code = "WS0902"


class ToolFailed(WarpsmithError):
    """An external tool refused its input."""

    code = "WS0903"


# 10: run time
class RuntimeFailure(WarpsmithError):
    """A kernel or a host step failed."""

    code = "WS1001"


# 11: simulator
class SimulationError(WarpsmithError):
    """The simulator can't run this IR."""

    code = "WS1101"


class PtxSyntaxError(WarpsmithError):
    """The text isn't PTX."""

    code = "WS1102"


class CheckFailed(SimulationError):
    """A kernel does in the simulator what no hardware would do; `finding` (see `simt.results`) has the details."""

    code = "WS1103"

    def __init__(self, cause: str, *, finding: object, span: Span | None = None, help: str | None = None) -> None:
        super().__init__(cause, span=span, help=help)
        self.finding = finding


# 12: tile programs
class TileSyntaxError(WarpsmithError):
    """Python text that the kernel language has no meaning for."""

    code = "WS1201"


class InvalidTileProgram(WarpsmithError):
    """A kernel whose parts don't fit together: shapes, dtypes, scopes, regions, launch extents."""

    code = "WS1202"


class InvalidLayout(InvalidTileProgram):
    """A layout that is none: its scopes don't connect, its extents don't fit a shape, no axis has the name."""

    code = "WS1204"


class DispatchFailed(WarpsmithError):
    """No variant of a tile primitive takes this call.

    `rejected` has a row a variant: its name with its priority, and why it doesn't take the call.
    """

    code = "WS1203"

    def __init__(
        self,
        cause: str,
        *,
        span: Span | None = None,
        help: str | None = None,
        rejected: Iterable[tuple[str, str]] = (),
    ) -> None:
        super().__init__(cause, span=span, help=help)
        self.rejected = tuple(rejected)

    def __str__(self) -> str:
        lines = super().__str__().split("\n")
        width = max((len(name) for name, _ in self.rejected), default=0)
        rows = [f"  {name:<{width}}  {reason}" for name, reason in self.rejected]
        at = len(lines) - 1 if self.help else len(lines)
        return "\n".join([*lines[:at], *rows, *lines[at:]])


# 99: our own bugs
class InternalError(WarpsmithError):
    """A bug in Warpsmith."""

    code = "WS9901"
