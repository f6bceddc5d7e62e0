"""The module that a command works on: `FILE.hlo`, `-` or `--example NAME`, and what to do about values left out.

In: a command's arguments.  Out: an `HloModule`, whatever form its file has.  Values that were made up for
`constant({...})` are named on standard error, so that nobody takes the results for the real ones.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from warpsmith.cli.files import example_text, read_bytes
from warpsmith.errors import UsageError

if TYPE_CHECKING:
    from warpsmith.hlo.load import Snapshot
    from warpsmith.hlo.module import HloModule

__all__ = ["add_fill_elided", "add_module", "load_module", "module_name", "read_module"]


def add_module(
    parser: argparse.ArgumentParser, metavar: str = "FILE.hlo", help: str = "HLO text, a proto, or StableHLO"
) -> None:
    """Declare the arguments that say which module."""
    parser.add_argument("file", nargs="?", metavar=metavar, help=f"{help} (- for standard input)")
    parser.add_argument("--example", metavar="NAME", help="a shipped example instead of a file")
    add_fill_elided(parser)


def add_fill_elided(parser: argparse.ArgumentParser) -> None:
    """Declare `--fill-elided`."""
    parser.add_argument(
        "--fill-elided", type=int, metavar="SEED", help="make values up for constants that the text leaves out ({...})"
    )


def module_name(arguments: argparse.Namespace) -> str:
    """What messages call the module: the file, or the example.  UsageError for none or both."""
    if (arguments.file is None) == (arguments.example is None):
        raise UsageError("give a file, or --example NAME", help=f"see `warpsmith {arguments.words[0]} --help`")
    return arguments.file or f"{arguments.example}.hlo"


def read_module(arguments: argparse.Namespace) -> HloModule:
    """The module that the arguments name.  Raises FileError, UsageError, and what `parse_hlo` raises."""
    name = module_name(arguments)
    data = read_bytes(arguments.file) if arguments.file is not None else example_text(arguments.example).encode()
    return load_module(data, name, arguments.fill_elided).module


def load_module(data: bytes, name: str, fill: int | None) -> Snapshot:
    """What a file holds; with `fill`, a seed, the module has made-up values where the text left them out."""
    from warpsmith.hlo.load import load_snapshot

    found = load_snapshot(data, name)
    if fill is None:
        return found
    from warpsmith.hlo.elided import fill_elided

    filled, names = fill_elided(found.module, fill)
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    constants = "1 constant" if len(names) == 1 else f"{len(names)} constants"
    print(f"{name}: values of {constants} made up (seed {fill}): {listed or 'none'}", file=sys.stderr)
    return replace(found, module=filled)
