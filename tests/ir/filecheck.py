"""A small FileCheck: text tests that say what a pass prints.

A test file holds IR, a line `// RUN: pass-a,pass-b{option=1}`, and directives in comments.  `// -----` lines split it
into modules that are run one by one.  Directives: CHECK, CHECK-NEXT (the next line), CHECK-SAME (the same line),
CHECK-NOT (absent up to the next match), CHECK-DAG (any order), CHECK-COUNT-n, CHECK-LABEL (splits the output; every
section is checked within itself).  In a pattern `{{regex}}` is a regular expression, `[[X:regex]]` captures, `[[X]]` is
what was captured; runs of blanks are equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_DIRECTIVE = re.compile(r"//\s*CHECK(-NEXT|-SAME|-NOT|-DAG|-LABEL|-COUNT-\d+)?:\s*(.*?)\s*$")
_RUN = re.compile(r"//\s*RUN:\s*(.*?)\s*$")
_PART = re.compile(r"\{\{(.*?)\}\}|\[\[(\w+):(.*?)\]\]|\[\[(\w+)\]\]")


class CheckFailed(AssertionError):
    """A directive that the output doesn't satisfy."""


@dataclass(frozen=True)
class Directive:
    kind: str
    pattern: str
    line: int


def directives_of(text: str) -> list[Directive]:
    """All directives of a test, in order."""
    found: list[Directive] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _DIRECTIVE.search(line)
        if match:
            found.append(Directive((match[1] or "").lstrip("-"), match[2], number))
    return found


def run_line(text: str) -> str:
    """The passes of the first RUN line."""
    for line in text.splitlines():
        match = _RUN.search(line)
        if match:
            return match[1]
    raise CheckFailed("the test has no RUN line")


def check_file(path: Path, run: Callable[[str, str], str]) -> None:
    """Run `run(module text, passes)` on each module of the file and check what it gives."""
    text = path.read_text()
    passes = run_line(text)
    for chunk in re.split(r"^// -----.*$", text, flags=re.MULTILINE):
        if directives_of(chunk):
            check(chunk, run(_without_directives(chunk), passes), path.name)


def _without_directives(text: str) -> str:
    """The module alone; comment lines become empty ones, so that line numbers stay."""
    return "\n".join("" if line.lstrip().startswith("//") else line for line in text.splitlines()) + "\n"


def check(test: str, output: str, name: str = "test") -> None:
    """Raise CheckFailed unless `output` satisfies the directives in `test`."""
    _Checker(_squeeze(output), name).run(directives_of(test))


def _squeeze(text: str) -> str:
    return "\n".join(re.sub(r"[ \t]+", " ", line).strip() for line in text.splitlines()) + "\n"


class _Checker:
    def __init__(self, output: str, name: str) -> None:
        self.output = output
        self.name = name
        self.variables: dict[str, str] = {}

    def run(self, directives: list[Directive]) -> None:
        if not directives:
            raise CheckFailed(f"{self.name}: no directives")
        sections: list[tuple[int, list[Directive]]] = []
        position, current = 0, list[Directive]()
        sections.append((0, current))
        for directive in directives:
            if directive.kind == "LABEL":
                match = self.search(directive, position, len(self.output))
                if match is None:
                    raise self.failure(directive, position, len(self.output))
                position = match.end()
                current = []
                sections.append((match.start(), current))
            current.append(directive)
        for i, (start, section) in enumerate(sections):
            end = sections[i + 1][0] if i + 1 < len(sections) else len(self.output)
            self.section(section, start, end)

    def section(self, directives: list[Directive], start: int, end: int) -> None:
        position, banned = start, list[Directive]()
        i = 0
        while i < len(directives):
            directive = directives[i]
            if directive.kind == "NOT":
                banned.append(directive)
                i += 1
                continue
            if directive.kind == "DAG":
                first = position
                starts: list[int] = []
                taken: set[int] = set()
                while i < len(directives) and directives[i].kind == "DAG":
                    match = self.search(directives[i], first, end, taken)
                    if match is None:
                        raise self.failure(directives[i], first, end)
                    taken.add(match.start())
                    starts.append(match.start())
                    position = max(position, match.end())
                    i += 1
                self.absent(banned, first, min(starts))
            else:
                begin, position = self.step(directive, position, end)
                self.absent(banned, start, begin)
                i += 1
            banned, start = [], position
        self.absent(banned, position, end)

    def step(self, directive: Directive, position: int, end: int) -> tuple[int, int]:
        """One positive directive: where its match begins and ends."""
        if directive.kind.startswith("COUNT"):
            begin = -1
            for _ in range(int(directive.kind.rpartition("-")[2])):
                match = self.search(directive, position, end)
                if match is None:
                    raise self.failure(directive, position, end)
                begin = match.start() if begin < 0 else begin
                position = match.end()
            return begin, position
        low, high = position, end
        if directive.kind in ("NEXT", "SAME"):
            line_end = self.output.find("\n", position)
            if directive.kind == "NEXT":
                low = line_end + 1
                line_end = self.output.find("\n", low)
            high = min(end, line_end) if line_end >= 0 else end
        match = self.search(directive, low, high)
        if match is None:
            raise self.failure(directive, low, high)
        return match.start(), match.end()

    def absent(self, banned: list[Directive], start: int, end: int) -> None:
        for directive in banned:
            match = self.search(directive, start, end)
            if match is not None:
                raise CheckFailed(f"{self.name}:{directive.line}: found what must be absent: {match[0]}\n{self.output}")

    def search(self, directive: Directive, start: int, end: int, taken: set[int] | None = None) -> re.Match[str] | None:
        regex = self.regex(directive)
        match = regex.search(self.output, start, end)
        while match is not None and taken and match.start() in taken:
            match = regex.search(self.output, match.start() + 1, end)
        if match is not None and directive.kind != "NOT":
            self.variables.update({k: v for k, v in match.groupdict().items() if v is not None})
        return match

    def regex(self, directive: Directive) -> re.Pattern[str]:
        parts: list[str] = []
        last = 0
        own: set[str] = set()
        for match in _PART.finditer(directive.pattern):
            parts.append(self.literal(directive.pattern[last : match.start()]))
            if match[1] is not None:
                parts.append(f"(?:{match[1]})")
            elif match[2] is not None:
                own.add(match[2])
                parts.append(f"(?P<{match[2]}>{match[3]})")
            elif match[4] in own:
                parts.append(f"(?P={match[4]})")
            elif match[4] in self.variables:
                # A name must not match the beginning of a longer one.
                parts.append(re.escape(self.variables[match[4]]) + r"(?!\w)")
            else:
                raise CheckFailed(f"{self.name}:{directive.line}: [[{match[4]}]] was never captured")
            last = match.end()
        parts.append(self.literal(directive.pattern[last:]))
        return re.compile("".join(parts))

    @staticmethod
    def literal(text: str) -> str:
        return re.sub(r"(\\ )+", r"[ ]+", re.escape(re.sub(r"[ \t]+", " ", text)))

    def failure(self, directive: Directive, start: int, end: int) -> CheckFailed:
        known = "".join(f"\n  [[{k}]] = {v}" for k, v in self.variables.items())
        where = self.output[start:end]
        return CheckFailed(
            f"{self.name}:{directive.line}: CHECK-{directive.kind or 'ANY'} not found: {directive.pattern}{known}\n"
            f"--- in:\n{where}\n--- whole output:\n{self.output}"
        )
