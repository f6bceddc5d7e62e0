"""HLO passes by name.

In: a module, names (`"gather-simplifier,comparison-expander"`) and a target.  Out: the module rewritten.

Passes are found by file: `gather_simplifier.py` in this folder is the pass `gather-simplifier`, imported when it is
first asked for.  Its docstring begins with its name and what it does, and draws it; it has `run(module, target)`, which
gives the module itself where nothing changes, and `CONTRACT`, a letter of `CONTRACTS`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from warpsmith.devices import Device
from warpsmith.errors import UnknownPass, did_you_mean
from warpsmith.hlo.module import HloModule

__all__ = ["CONTRACTS", "HloPass", "apply", "lookup", "names"]

CONTRACTS = {
    "E": "exact: every result keeps its bits",
    "S": "exact but for the sign of a zero, and which NaN it is",
    "R": "the order in which a sum, a product or a dot is rounded changes",
    "X": "float results change: under --numerics xla alone",
}
"""What a pass may change, by its mark."""

_NO_PASSES = frozenset(("kit", "manager", "support", "wrap"))
"""`wrap` makes a module of the schedule's; what it does depends on what the caller can emit."""


@dataclass(frozen=True, slots=True)
class HloPass:
    """A pass: its name, what it does to a module for a target, what it may change, and its documentation."""

    name: str
    run: Callable[[HloModule, Device], HloModule]
    contract: str
    doc: str


@cache
def names() -> tuple[str, ...]:
    """All passes, in alphabetical order."""
    found = {each.name for each in pkgutil.iter_modules([str(Path(__file__).parent)])}
    return tuple(sorted(name.replace("_", "-") for name in found - _NO_PASSES))


@cache
def lookup(name: str) -> HloPass:
    """The pass called `name`.  UnknownPass, with the nearest name, when there is none."""
    if name not in names():
        help = did_you_mean(name, names()) or f"known: {', '.join(names())}"
        raise UnknownPass(f"no HLO pass is called '{name}'", help=help)
    module = importlib.import_module(f"warpsmith.hlo_passes.{name.replace('-', '_')}")
    return HloPass(name, module.run, module.CONTRACT, module.__doc__ or "")


def apply(module: HloModule, passes: str, target: Device) -> HloModule:
    """`module` after the named passes, separated by commas, in order.  UnknownPass for another name."""
    for each in [lookup(name.strip()) for name in passes.split(",")]:
        module = each.run(module, target)
    return module
