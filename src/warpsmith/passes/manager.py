"""Running passes: names to modules, options from text, order, timing, and hooks.

In: a module and a list of passes, as text (`"canonicalize,optimize-loops{max_unroll=8},cse"`) or as parsed.  Out: the
module, rewritten in place, and one `PassTiming` a pass.

Passes are found by file: `flatten_tensors.py` in this folder is the pass `flatten-tensors`, imported when it is first
asked for.  It has `run(module, **options)`, `CONTRACT`, and, if it does away with something, `ILLEGAL_AFTER`
(`support/legality.py`).  A user's own passes come from `register`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Protocol, TypeVar

from warpsmith.errors import (
    InternalError,
    InvalidIr,
    OwnPassFailed,
    Span,
    UnknownPass,
    UsageError,
    WarpsmithError,
    did_you_mean,
)
from warpsmith.ir.core import verifier
from warpsmith.ir.core.ssa import Operation
from warpsmith.passes.support.legality import Illegal, Legality

__all__ = [
    "Option",
    "PassCall",
    "PassInfo",
    "PassTiming",
    "lookup",
    "names",
    "parse_pipeline",
    "register",
    "run_pipeline",
]

Option = int | float | bool | str

_NO_PASSES = frozenset(("manager", "pipeline", "support"))


class _Run(Protocol):
    def __call__(self, module: Operation, /, **options: Option) -> None: ...


_RunT = TypeVar("_RunT", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class PassInfo:
    """A pass: its name, what it does to a module, its options with their defaults, and what it promises.

    `doc` begins with what it does in a line; `illegal_after` is what it leaves none of; `is_own`: it's one of ours.
    """

    name: str
    run: _Run
    options: Mapping[str, Option]
    contract: str
    doc: str = ""
    illegal_after: tuple[Illegal, ...] = ()
    is_own: bool = True


@dataclass(frozen=True, slots=True)
class PassCall:
    """A pass with the options it's to run with."""

    name: str
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])

    def __str__(self) -> str:
        if not self.options:
            return self.name
        return f"{self.name}{{{' '.join(f'{k}={_show(v)}' for k, v in self.options.items())}}}"


@dataclass(frozen=True, slots=True)
class PassTiming:
    """How long one pass ran."""

    index: int
    name: str
    seconds: float


def _show(value: Option) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _files() -> dict[str, str]:
    """Name on the command line -> module below `warpsmith.passes`."""
    found = (each.name for each in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return {name.replace("_", "-"): name for name in found if name not in _NO_PASSES}


_registered: dict[str, PassInfo] = {}


def names() -> list[str]:
    """All passes, in alphabetical order."""
    return sorted({*_files(), *_registered})


def register(name: str, *, contract: str, illegal_after: Iterable[Illegal] = ()) -> Callable[[_RunT], _RunT]:
    """Make a function of a module the pass `name`: a decorator, for passes that aren't files of this folder.

        @register("mine", contract="bit-exact")
        def run(module: Operation, *, limit: int = 4) -> None: ...

    `contract` is "bit-exact", or says which ops may change by how much.  Options are keyword parameters with defaults.
    Registering a name again replaces the pass.  UsageError for a name that a pass of ours has, or of another form.
    """
    if name in _files():
        raise UsageError(f"there is a pass '{name}' already", help="give yours a name of its own")
    if not _NAME.fullmatch(name):
        raise UsageError(f"'{name}' can't be the name of a pass", help="such as fold-squares")

    def registered(run: _RunT) -> _RunT:
        doc = f"{name}: {inspect.getdoc(run) or ''}"
        _registered[name] = PassInfo(name, run, _options_of(run), contract, doc, tuple(illegal_after), is_own=False)
        lookup.cache_clear()
        return run

    return registered


@cache
def lookup(name: str) -> PassInfo:
    """The pass called `name`.  UnknownPass, with the nearest name, when there is none."""
    if name in _registered:
        return _registered[name]
    module_name = _files().get(name)
    if module_name is None:
        raise UnknownPass(
            f"no pass is called '{name}'", help=did_you_mean(name, names()) or f"known: {', '.join(names())}"
        )
    module = importlib.import_module(f"{__package__}.{module_name}")
    run: _Run = module.run
    contract: str = module.CONTRACT
    illegal: tuple[Illegal, ...] = getattr(module, "ILLEGAL_AFTER", ())
    return PassInfo(name, run, _options_of(run), contract, module.__doc__ or "", illegal)


def _options_of(run: _Run) -> dict[str, Option]:
    return {
        parameter.name: parameter.default
        for parameter in list(inspect.signature(run).parameters.values())[1:]
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }


_NAME = re.compile(r"[A-Za-z][\w-]*")
_CALL = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:\{([^{}]*)\})?\s*(,|$)")


def parse_pipeline(text: str) -> tuple[PassCall, ...]:
    """Passes from text: names separated by commas, each with options in braces (`a,b{x=1 y=two},c`).

    UnknownPass for a name or an option that doesn't exist, a value of the wrong kind, or text of another form.
    """
    calls: list[PassCall] = []
    position = 0
    while position < len(text) or not calls:
        match = _CALL.match(text, position)
        if match is None:
            raise UnknownPass(
                f"can't read the pass list at '{text[position : position + 30]}'", help="write a,b{option=1 other=x},c"
            )
        name: str = match[1]
        given: str = match[2] or ""
        calls.append(PassCall(name, _options(lookup(name), given)))
        position = match.end()
        if not match[3]:
            break
    return tuple(calls)


def _options(info: PassInfo, text: str) -> dict[str, Option]:
    values: dict[str, Option] = {}
    for item in text.replace(",", " ").split():
        key, _, value = item.partition("=")
        key = key.replace("-", "_")
        if key not in info.options:
            known = ", ".join(info.options) or "it has none"
            raise UnknownPass(
                f"pass '{info.name}' has no option '{key}'", help=did_you_mean(key, info.options) or f"options: {known}"
            )
        values[key] = _parse(info, key, value)
    return values


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False, "": True}


def _parse(info: PassInfo, key: str, text: str) -> Option:
    default = info.options[key]
    value: Option | None = text
    if isinstance(default, bool):
        value = _BOOLEANS.get(text)
    elif isinstance(default, int):
        value = int(text) if re.fullmatch(r"-?\d+", text) else None
    elif isinstance(default, float):
        value = float(text) if re.fullmatch(r"-?\d+(\.\d*)?(e-?\d+)?", text) else None
    if value is None:
        raise UnknownPass(f"option '{key}' of pass '{info.name}' is {type(default).__name__}, not '{text}'")
    return value


def run_pipeline(
    module: Operation,
    passes: str | Iterable[PassCall | str],
    *,
    verify: Callable[[Operation, str], None] | None = None,
    on_after: Callable[[int, str, Operation], None] | None = None,
    legality: bool = False,
) -> list[PassTiming]:
    """Run passes in order on `module`.

    `verify(module, name)` runs after each pass and raises when the IR is broken; with `legality` InvalidIr is raised
    when something is alive that a pass says it leaves none of; `on_after(index, name, module)` sees the module after
    each pass (dumps, traces, bisection).  Their time is not counted.
    """
    gone = Legality() if legality else None
    timings: list[PassTiming] = []
    for index, call in enumerate(_calls(passes)):
        info = lookup(call.name)
        start = perf_counter()
        if info.is_own:
            info.run(module, **call.options)
        else:
            _run_registered(info, module, call.options)
        timings.append(PassTiming(index, call.name, perf_counter() - start))
        if verify is not None:
            verify(module, call.name)
        if gone is not None:
            gone.check(module, call.name, info.illegal_after)
        if on_after is not None:
            on_after(index, call.name, module)
    return timings


def _run_registered(info: PassInfo, module: Operation, options: Mapping[str, Option]) -> None:
    """OwnPassFailed that names the pass and the line for what it raises, and InvalidIr for what it leaves broken."""
    had_entry = _has_entry(module)
    try:
        info.run(module, **options)
    except InternalError as error:  # it asked the IR for what can't be
        raise _failed(info, error, error.cause) from error
    except WarpsmithError:
        raise
    except Exception as error:
        raise _failed(info, error, str(error)) from error
    try:
        verifier.verify(module, allow_unregistered=True)
    except InvalidIr as error:
        cause = f"pass '{info.name}' leaves invalid IR: {error.cause}"
        raise InvalidIr(cause, span=error.span, help=error.help) from None
    if had_entry and not _has_entry(module):
        raise InvalidIr(f"pass '{info.name}' leaves invalid IR: the function with xla.entry is gone")


def _failed(info: PassInfo, error: Exception, cause: str) -> OwnPassFailed:
    """The failure of a user's pass, at the last line of the file of its function, not where it calls ours."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    here = [each for each in frames if each.filename == frames[0].filename]  # none: it can't be called so
    span = Span(here[-1].filename, here[-1].lineno or 1, 1) if here else None
    return OwnPassFailed(f"pass '{info.name}' raised {type(error).__name__}: {cause}", span=span)


def _has_entry(module: Operation) -> bool:
    return any("xla.entry" in op.attributes for region in module.regions for block in region.blocks for op in block)


def _calls(passes: str | Iterable[PassCall | str]) -> Sequence[PassCall]:
    if isinstance(passes, str):
        return parse_pipeline(passes)
    calls: list[PassCall] = []
    for item in passes:
        calls.extend(parse_pipeline(item) if isinstance(item, str) else (item,))
    return calls
