"""Shrink a module that fails to a smaller one that fails in the same way.

  warpsmith reduce FILE.hlo                        whichever fails: a wrong result, or a crash
  warpsmith reduce FILE.hlo --target sm_90         in the simulator: also findings of its checks
  warpsmith reduce FILE.hlo --question './still-fails.sh {}'

Status 0: the module doesn't fail.  Status 1: it does, and the smaller module is on standard output (or in -o).
"""

from __future__ import annotations

import argparse
import sys

from warpsmith.cli.files import write_text
from warpsmith.cli.modules import add_module, module_name, read_module
from warpsmith.errors import FileError, UsageError


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_module(parser)
    parser.add_argument("--failure", metavar="NAME", help="wrong, check or crash (default: the first that holds)")
    parser.add_argument(
        "--question", metavar="COMMAND", help="a command that is given a file and answers with status 0 while it fails"
    )
    parser.add_argument("--target", default="cpu", metavar="TARGET", help="cpu (default), or a GPU, which is simulated")
    parser.add_argument("--numerics", default="strict", help="strict (default) or xla")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the generated input (default: 0)")
    parser.add_argument("--limit", type=int, default=2000, metavar="N", help="modules to try (default: 2000)")
    parser.add_argument("-o", dest="output", metavar="OUT", help="write the module here instead of standard output")
    parser.add_argument("--save-repro", metavar="X.zip", help="write a zip that runs the smaller module elsewhere")


def run(arguments: argparse.Namespace) -> int:
    """Run the command on parsed arguments; the exit status (`warpsmith.cli`).  Raises WarpsmithError for bad input."""
    from warpsmith.report.reduction import reduce, told_by

    name = module_name(arguments)
    if arguments.failure and arguments.question:
        raise UsageError("--failure and --question exclude each other")
    found = reduce(
        read_module(arguments),
        told_by(arguments.question) if arguments.question else arguments.failure,
        target=arguments.target,
        numerics=arguments.numerics,
        seed=arguments.seed,
        limit=arguments.limit,
    )
    if found is None:
        print(f"{name} doesn't fail ({arguments.failure or 'wrong, check, crash'}): nothing to reduce", file=sys.stderr)
        return 0
    write_text(arguments.output, str(found.module))
    print(
        f"{found.failure}: {found.before} instructions became {found.after}, {found.asked} modules tried",
        file=sys.stderr,
    )
    if arguments.save_repro:
        _save(arguments, str(found.module))
    return 1


def _save(arguments: argparse.Namespace, text: str) -> None:
    """A zip that replays `warpsmith run` on the smaller module."""
    import tempfile
    from pathlib import Path

    from warpsmith.cli.crash import save_repro

    words = ["run", "--no-cache", "--numerics", arguments.numerics, "--seed", str(arguments.seed)]
    if arguments.target != "cpu":
        words += ["--platform", "sim", "--stage", "ptx", "--target", arguments.target]
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "reduced.hlo"
            file.write_text(text, encoding="utf-8")
            save_repro(arguments.save_repro, [*words, str(file)])
    except OSError as error:
        raise FileError(f"can't write {arguments.save_repro}: {error.strerror}") from error
