"""Reading HLO text: places in it, and the small pieces that every part of the parser reads.

In: a text and its file name.  Out: `Source` (offsets to line and column) and `Scanner` (a position that reads names,
integers, strings and balanced text, skipping white space and both kinds of comment).  All errors carry a span.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from warpsmith.errors import HloSyntaxError, Span

__all__ = ["NAME", "Scanner", "Source"]

NAME = r"[A-Za-z_][\w.\-]*"
"""A name without its `%`, as XLA spells it."""

_SKIP = re.compile(r"(?:\s+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
_LINE_START = re.compile(r"\n *[%A-Za-z_]")
_NAME = re.compile(rf"%[\w.\-]+|{NAME}")
_INT = re.compile(r"-?[0-9]+(?![\w.])")
_WORD = re.compile(r"[^\s,(){}\[\]=:]+")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BALANCED_STOP = re.compile(r'[(){}\[\]"]')
_CLOSER = {"(": ")", "{": "}", "[": "]"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}

MAX_DEPTH = 200
"""How deep tuples, literals and nested braces may nest before the text is refused."""


class Source:
    """A text with a name; turns offsets into spans."""

    __slots__ = ("_starts", "file", "text")

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self._starts: list[int] | None = None

    def span(self, start: int, length: int = 1) -> Span:
        """The place of `length` characters from offset `start`; its line is cut out of the text."""
        if self._starts is None:
            self._starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        start = min(start, len(self.text))
        line = bisect_right(self._starts, start)
        first = self._starts[line - 1]
        end = self.text.find("\n", first)
        text = self.text[first : len(self.text) if end < 0 else end]
        return Span(self.file, line, start - first + 1, text, max(1, min(length, len(text) - (start - first))))


class Scanner:
    """A position in a source.  Each `take_*` skips white space and comments first, then reads or raises."""

    __slots__ = ("pos", "source", "text")

    def __init__(self, source: Source, pos: int = 0) -> None:
        self.source = source
        self.text = source.text
        self.pos = pos

    def span(self, start: int | None = None, length: int = 1) -> Span:
        """A place in the text: this one, or `length` characters from `start`."""
        return self.source.span(self.pos if start is None else start, length)

    def error(self, cause: str, start: int | None = None, length: int = 1, help: str | None = None) -> HloSyntaxError:
        """An error at `start`, or at the present position."""
        return HloSyntaxError(cause, span=self.span(start, length), help=help)

    def skip(self) -> int:
        """Move past white space and comments; the new position."""
        match = _SKIP.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()
        if self.text.startswith("/*", self.pos):
            raise self.error("this comment isn't closed", length=2, help="add '*/'")
        return self.pos

    def at_end(self) -> bool:
        """Whether nothing but white space and comments is left."""
        return self.skip() >= len(self.text)

    def peek(self) -> str:
        """The next character, or "" at the end."""
        pos = self.skip()
        return self.text[pos] if pos < len(self.text) else ""

    def next_is(self, char: str) -> bool:
        """Whether `char` stands next; cheap where it or a letter stands right here or after one line break."""
        text, pos = self.text, self.pos
        if text.startswith(char, pos):
            return True
        match = _LINE_START.match(text, pos)
        return match is None and self.peek() == char

    def found(self) -> tuple[str, int]:
        """What stands at the present position, for a message, and its length."""
        pos = self.skip()
        if pos >= len(self.text):
            return "the end of the text", 1
        match = _NAME.match(self.text, pos) or _WORD.match(self.text, pos)
        word = match.group() if match is not None else self.text[pos]
        return f"'{word if len(word) <= 40 else word[:37] + '...'}'", len(word)

    def expected(self, what: str, help: str | None = None) -> HloSyntaxError:
        """An error: `what` was expected, something else stands here."""
        word, length = self.found()
        return self.error(f"expected {what}, found {word}", length=length, help=help)

    def accept(self, token: str) -> bool:
        """Move past `token` if it stands next."""
        if self.text.startswith(token, self.skip()):
            self.pos += len(token)
            return True
        return False

    def expect(self, token: str, context: str) -> None:
        """Move past `token`; `context` ends the sentence `expected 'token' ...`."""
        if not self.accept(token):
            raise self.expected(f"'{token}' {context}")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Move past `pattern` if it stands next."""
        match = pattern.match(self.text, self.skip())
        if match is not None:
            self.pos = match.end()
        return match

    def name(self, what: str) -> tuple[str, int]:
        """A name without its `%`, and where it starts."""
        match = self.match(_NAME)
        if match is None:
            raise self.expected(what)
        return match.group().removeprefix("%"), match.start()

    def integer(self, what: str) -> int:
        """An integer of at most 64 bits; HloSyntaxError names `what` was expected."""
        match = self.match(_INT)
        if match is None:
            raise self.expected(what)
        return checked_int(self, match.group(), match.start())

    def string(self, what: str) -> str:
        """A quoted string, unescaped."""
        match = self.match(_STRING)
        if match is None:
            if self.peek() == '"':
                raise self.error("this string isn't closed", help="add a '\"'")
            raise self.expected(what)
        return unescape(match.group(1))

    def balanced(self) -> str:
        """The text from an opening bracket to the one that closes it, verbatim; strings are skipped over."""
        start = self.skip()
        text, pos = self.text, start
        open_at: list[int] = []
        while True:
            match = _BALANCED_STOP.search(text, pos)
            if match is None:
                raise self.error(f"this '{text[start]}' is never closed", start)
            char, pos = match.group(), match.end()
            if char == '"':
                string = _STRING.match(text, match.start())
                if string is None:
                    raise self.error("this string isn't closed", match.start(), help="add a '\"'")
                pos = string.end()
            elif char in _CLOSER:
                open_at.append(match.start())
            else:
                if not open_at or _CLOSER[text[open_at[-1]]] != char:
                    raise self.error(f"'{char}' closes nothing", match.start())
                open_at.pop()
                if not open_at:
                    self.pos = pos
                    return text[start:pos]


def checked_int(scanner: Scanner, text: str, start: int) -> int:
    """`text` as an integer of at most 64 bits."""
    try:
        value = int(text) if len(text) <= 20 else 1 << 64
    except ValueError:
        raise scanner.error(f"'{text}' isn't an integer", start, len(text)) from None
    if not -(1 << 63) <= value < (1 << 64):
        raise scanner.error(f"{text[:24]} doesn't fit in 64 bits", start, len(text))
    return value


def _bytes(text: str) -> bytes:
    """UTF-8, in which a byte that wasn't UTF-8 stays itself; half a surrogate pair becomes a question mark."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def unescape(text: str) -> str:
    """A string's content with C escapes resolved; XLA escapes bytes, which are put together as UTF-8."""
    if "\\" not in text:
        return text
    raw = bytearray()
    pos = 0
    for match in _ESCAPE.finditer(text):
        raw += _bytes(text[pos : match.start()])
        if match.group(1) is not None:
            raw.append(int(match.group(1), 16))
        elif match.group(2) is not None:
            raw.append(int(match.group(2), 8) & 255)
        else:
            raw += _bytes(_PLAIN_ESCAPES.get(match.group(3), match.group(3)))
        pos = match.end()
    raw += _bytes(text[pos:])
    return raw.decode("utf-8", "surrogateescape")


_ESCAPED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def escape(text: str) -> str:
    """The inverse of `unescape`, as XLA writes strings: C escapes, and octal for bytes that don't print."""
    if text.isascii() and text.isprintable() and not any(char in text for char in "\"'\\"):
        return text
    parts: list[str] = []
    for char in text:
        known = _ESCAPED.get(char)
        if known is not None:
            parts.append(known)
        elif " " <= char <= "~":
            parts.append(char)
        else:
            parts += [f"\\{byte:03o}" for byte in _bytes(char)]
    return "".join(parts)
