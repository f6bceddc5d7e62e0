"""Find the first pass that changed a result: each kernel runs after every pass, on the same inputs.

  warpsmith bisect FILE.hlo
  warpsmith bisect FILE.hlo --target cpu --seed 3

Status 0: every step kept its contract.  Status 1: one didn't; it is named, with the elements and its change of the IR.
"""

from __future__ import annotations

import argparse
from typing import Any

from warpsmith.cli.files import write_text
from warpsmith.cli.modules import add_module, read_module
from warpsmith.cli.own_passes import add_arguments, load


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_module(parser)
    parser.add_argument("--target", default="sm_90", metavar="TARGET", help="a device or cpu (default: sm_90)")
    parser.add_argument("--numerics", default="strict", help="strict (default) or xla")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the generated input (default: 0)")
    parser.add_argument("--input", metavar="FILE.npz", help="arrays 0, 1, ... instead of generated input")
    add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(arguments: argparse.Namespace) -> int:
    """Run the command on parsed arguments; the exit status (`warpsmith.cli`).  Raises WarpsmithError for bad input."""
    from warpsmith.compiler.bisection import bisect
    from warpsmith.compiler.generated import random_inputs
    from warpsmith.report.bisect import bisection_text

    load(arguments)
    module = read_module(arguments)
    inputs: list[Any] = random_inputs(module, arguments.seed, arguments.numerics)
    if arguments.input:
        from warpsmith.cli.npz import read_npz

        inputs = read_npz(arguments.input)
    found = bisect(module, *inputs, target=arguments.target, numerics=arguments.numerics, pipeline=arguments.pipeline)
    write_text(None, found.to_json() if arguments.json else bisection_text(found))
    return 1 if found.culprit is not None else 0
