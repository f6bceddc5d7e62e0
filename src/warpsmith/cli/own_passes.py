"""`--load` and `--pipeline`: a user's own passes, for every command that runs passes.

In: a command's parser, then its parsed arguments.  Out: the files have run, so that what they register is known.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import traceback
from pathlib import Path

from warpsmith.errors import FileError, Span, UsageError, WarpsmithError

__all__ = ["add_arguments", "add_load", "load"]


def add_load(parser: argparse.ArgumentParser) -> None:
    """Declare `--load`."""
    parser.add_argument(
        "--load",
        action="append",
        default=[],
        metavar="FILE.py",
        help="run this file first: it registers passes or tile variants of yours",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `--load` and `--pipeline`."""
    add_load(parser)
    parser.add_argument(
        "--pipeline",
        default="",
        metavar="'+PASS@before:NAME'",
        help="change the passes: +PASS{opt=1}@after:NAME#2 puts one in (#2: the second NAME), -NAME leaves one out",
    )


def load(arguments: argparse.Namespace) -> None:
    """Run the files of `--load`.  FileError for one that isn't there, UsageError for one that raises."""
    for name in arguments.load:
        path = Path(name).resolve()
        key = f"warpsmith_loaded:{path}"
        spec = importlib.util.spec_from_file_location(key, path)
        if spec is None or spec.loader is None or not path.is_file():
            raise FileError(f"can't load {name}", help="give the path of a Python file")
        module = sys.modules[key] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[key]
            if isinstance(error, WarpsmithError):
                raise
            lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == str(path)]
            line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else 1
            cause = f"loading this file raised {type(error).__name__}: {error}"
            raise UsageError(cause, span=Span(name, line or 1, 1)) from error
