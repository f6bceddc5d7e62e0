"""The module that a command works on: `FILE.hlo`, `-` or `--example NAME`, and what to do about values left out.

In: a command's arguments.  Out: an `HloModule`.  Values that were made up for `constant({...})` are named on standard
error, so that nobody takes the results for the real ones.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from warpsmith.cli.files import example_text, read_text
from warpsmith.errors import UsageError

if TYPE_CHECKING:
    from warpsmith.hlo.module import HloModule

__all__ = ["add_fill_elided", "add_module", "module_name", "parse_module", "read_module"]


def add_module(parser: argparse.ArgumentParser, metavar: str = "FILE.hlo", help: str = "HLO text") -> None:
    """Declare the arguments that say which module."""
    parser.add_argument("file", nargs="?", metavar=metavar, help=f"{help}; - for standard input")
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
    text = read_text(arguments.file) if arguments.file is not None else example_text(arguments.example)
    return parse_module(text, name, arguments.fill_elided)


def parse_module(text: str, name: str, fill: int | None) -> HloModule:
    """The module of a text; with `fill`, a seed, it has made-up values where the text left them out."""
    from warpsmith.hlo.text.parser import parse_hlo

    module = parse_hlo(text, name)
    if fill is None:
        return module
    from warpsmith.hlo.elided import fill_elided

    filled, names = fill_elided(module, fill)
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    print(f"{name}: values of {len(names)} constants made up (seed {fill}): {listed or 'none'}", file=sys.stderr)
    return filled
