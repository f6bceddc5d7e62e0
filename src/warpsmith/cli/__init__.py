"""The command line: `warpsmith COMMAND ...`.

One module a command (`cli/run.py`...), each with `register(parser)` and `run(arguments) -> exit status`.  A module is
imported only when its command is asked for.  Exit status: 0 all held; 1 a result differs or a check fired; 2 the input
or the command is wrong; 3 nothing was compared, since no generated input made results that say something; 70 our own
bug.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from warpsmith.errors import InternalError, PassFailed, UsageError, WarpsmithError, did_you_mean

__all__ = ["COMMANDS", "NOTHING_COMPARED", "is_ours", "main"]

NOTHING_COMPARED = 3
"""The exit status of a comparison that proves nothing."""

COMMANDS: dict[str, str] = {
    "run": "compile a module, run it, and compare it with the reference interpreter",
    "compile": "print a stage: emitted or lowered IR, LLVM IR, PTX, machine code",
    "opt": "run passes on IR text",
    "indexing": "print the indexing maps of each instruction",
    "explain": "say why each kernel is as it is, and what it costs",
    "bisect": "find the first pass that changed a result",
    "reduce": "shrink a module that fails",
    "hlo": "count, print, extract from, or draw HLO",
    "tile": "print a stage of a tile kernel, or run it",
    "doctor": "say what is installed and what works here",
}


class Parser(argparse.ArgumentParser):
    """argparse whose errors are ours: a code, the cause, the next step."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError, which ends the command with status 2."""
        help = f"see `{self.prog} --help`"
        option, _, problem = message.removeprefix("argument ").partition(": ")
        if problem == "expected one argument":
            help = f"a value that begins with a dash needs an equals sign: {option.split('/')[-1]}=-VALUE; {help}"
        raise UsageError(message, help=help)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status.  `argv` defaults to the process's arguments."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(arguments)
    except WarpsmithError as error:
        if is_ours(error, arguments):
            from warpsmith.cli.crash import report_crash

            return report_crash(error, arguments)
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of our output has gone (`warpsmith ... | head`): nothing is wrong.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as error:  # the last line of defence: whatever it is, it's ours, and the user gets a repro
        from warpsmith.cli.crash import report_crash

        return report_crash(error, arguments)


def is_ours(error: WarpsmithError, words: Sequence[str]) -> bool:
    """Whether an error is a bug of ours: it says so, or a pass refused IR that is all ours."""
    changed = words[0] == "opt" or any(each.startswith("--pipeline") for each in words)
    return isinstance(error, InternalError) or (isinstance(error, PassFailed) and not changed)


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if arguments[0] in ("-V", "--version"):
        from warpsmith import __version__

        print(f"warpsmith {__version__}")
        return 0
    command = arguments[0]
    if command not in COMMANDS:
        raise UsageError(
            f"no command is called '{command}'",
            help=did_you_mean(command, COMMANDS) or "see `warpsmith --help`",
        )
    module = importlib.import_module(f"warpsmith.cli.{command}")
    parser = Parser(
        prog=f"warpsmith {command}", description=module.__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    module.register(parser)
    try:
        parsed = parser.parse_args(arguments[1:])
    except SystemExit as exit:
        return int(exit.code or 0)
    parsed.words = arguments
    return module.run(parsed)


def _overview() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    more = "`warpsmith COMMAND --help` says more, `warpsmith --version` which version this is."
    return f"usage: warpsmith COMMAND ...\n\n{rows}\n\n{more}\nStart with: warpsmith run --example gelu"
