"""Run passes on IR text and print the result.

warpsmith opt FILE.mlir --passes 'canonicalize,optimize-loops{max_unroll=8},cse'
"""

from __future__ import annotations

import argparse
import sys

from warpsmith.cli.files import read_text, write_text
from warpsmith.cli.own_passes import add_arguments, load
from warpsmith.errors import UsageError


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", nargs="?", metavar="FILE.mlir", help="IR text; - for standard input")
    parser.add_argument(
        "--passes", default="", metavar="'a,b{opt=1},c'", help="passes in order (default: only verify and print)"
    )
    add_arguments(parser)
    parser.add_argument("--list-passes", action="store_true", help="print each pass with its options and contract")
    parser.add_argument("--time-passes", action="store_true", help="print what each pass took, on standard error")
    parser.add_argument(
        "--verify-each", action="store_true", help="also refuse what a pass says it leaves none of, after it and later"
    )
    parser.add_argument("--generic", action="store_true", help="print MLIR's generic form, which mlir-opt reads")
    parser.add_argument(
        "--allow-unregistered-dialect", action="store_true", help="take ops that Warpsmith doesn't know"
    )
    parser.add_argument("-o", dest="output", metavar="OUT", help="write here instead of standard output")


def run(arguments: argparse.Namespace) -> int:
    """Run the command on parsed arguments; the exit status (`warpsmith.cli`).  Raises WarpsmithError for bad input."""
    from warpsmith.ir import dialects as _dialects  # registers the ops
    from warpsmith.ir.core.verifier import verify
    from warpsmith.ir.text.parser import parse_module
    from warpsmith.ir.text.printer import print_op
    from warpsmith.passes import manager
    from warpsmith.passes.support.edits import edited, parse_edits

    del _dialects
    load(arguments)
    if arguments.list_passes:
        for name in manager.names():
            info = manager.lookup(name)
            options = " ".join(f"{k}={v}" for k, v in info.options.items())
            print(f"{name}{f' {{{options}}}' if options else ''}\n    contract: {info.contract}")
        return 0
    if arguments.file is None:
        raise UsageError("a file is missing", help="give IR text, or - for standard input")
    calls = manager.parse_pipeline(arguments.passes) if arguments.passes.strip() else ()
    calls = edited(calls, parse_edits(arguments.pipeline))
    module = parse_module(
        read_text(arguments.file), arguments.file, allow_unregistered=arguments.allow_unregistered_dialect
    )
    verify(module)
    timings = manager.run_pipeline(module, calls, verify=lambda op, _: verify(op), legality=arguments.verify_each)
    write_text(arguments.output, print_op(module, generic=arguments.generic))
    if arguments.time_passes:
        for timing in timings:
            print(f"{timing.seconds * 1e3:9.3f} ms  {timing.name}", file=sys.stderr)
    return 0
