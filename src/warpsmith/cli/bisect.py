"""Find the first pass that changed a result: each kernel runs after every pass, on the same inputs.

  warpsmith bisect FILE.hlo
  warpsmith bisect FILE.hlo --target cpu --seed 3

Status 0: every step kept its contract.  Status 1: one didn't; it is named, with the elements and its change of the IR.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from warpsmith.cli.files import example_text, read_text, write_text
from warpsmith.errors import UsageError


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", nargs="?", metavar="FILE.hlo", help="HLO text; - for standard input")
    parser.add_argument("--example", metavar="NAME", help="a shipped example instead of a file")
    parser.add_argument("--target", default="sm_90", metavar="TARGET", help="a device or cpu (default: sm_90)")
    parser.add_argument("--numerics", default="strict", help="strict (default) or xla")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the generated input (default: 0)")
    parser.add_argument("--input", metavar="FILE.npz", help="arrays 0, 1, ... instead of generated input")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(arguments: argparse.Namespace) -> int:
    """Run the command on parsed arguments; the exit status (`warpsmith.cli`).  Raises WarpsmithError for bad input."""
    from warpsmith.compiler.bisection import bisect
    from warpsmith.hlo import parse_hlo
    from warpsmith.report.bisect import bisection_data, bisection_text
    from warpsmith.report.run.checked_run import random_inputs

    if (arguments.file is None) == (arguments.example is None):
        raise UsageError("give a file, or --example NAME", help="see `warpsmith bisect --help`")
    name = arguments.file or f"{arguments.example}.hlo"
    text = read_text(arguments.file) if arguments.file is not None else example_text(arguments.example)
    module = parse_hlo(text, name)
    inputs: list[Any] = random_inputs(module, arguments.seed)
    if arguments.input:
        from warpsmith.cli.npz import read_npz

        inputs = read_npz(arguments.input)
    found = bisect(module, *inputs, target=arguments.target, numerics=arguments.numerics)
    write_text(None, json.dumps(bisection_data(found)) if arguments.json else bisection_text(found))
    return 1 if found.culprit is not None else 0
