"""Compile a module and print a stage of it.

warpsmith compile gelu.hlo --target sm_90 --stage ptx
warpsmith compile gelu.hlo --target sm_90 --dump-to DIR
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from warpsmith.cli.files import write_bytes, write_text
from warpsmith.cli.modules import add_module, module_name, read_module
from warpsmith.cli.own_passes import add_arguments, load
from warpsmith.errors import UsageError

_DEFAULT_STAGES = {True: "ptx", False: "asm"}


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_module(parser)
    parser.add_argument(
        "--target", default="sm_90", help="cpu, sm_80, sm_90, sm_100, gfx942, or a device's name (default: sm_90)"
    )
    parser.add_argument(
        "--stage",
        help="hlo, emitted, lowered, llvm; on NVIDIA's GPUs cuda, ptx, cubin, sass; on other targets llvm-opt, asm "
        "(default: the last text)",
    )
    parser.add_argument("-o", dest="output", metavar="OUT", help="write here instead of standard output")
    parser.add_argument("--dump-to", metavar="DIR", help="one file a pass, numbered and named")
    parser.add_argument("--dump-pass-re", metavar="REGEX", help="dump only after passes that match")
    parser.add_argument("--generic", action="store_true", help="IR in MLIR's generic form, which mlir-opt reads")
    parser.add_argument("--time-passes", action="store_true", help="what each pass took, on standard error")
    parser.add_argument("--numerics", default="strict", help="strict (default) or xla")
    parser.add_argument("--deterministic", action="store_true", help="results that repeat bit for bit on a GPU, too")
    add_arguments(parser)
    parser.add_argument("--no-cache", action="store_true", help="look nothing up on disk, and keep nothing there")


def run(arguments: argparse.Namespace) -> int:
    """Run the command on parsed arguments; the exit status (`warpsmith.cli`).  Raises WarpsmithError for bad input."""
    from warpsmith.compiler import check_stage, stage_bytes, stage_text
    from warpsmith.devices import device

    load(arguments)
    module_name(arguments)
    target = device(arguments.target)
    stage = arguments.stage or _DEFAULT_STAGES[target.is_nvidia]
    check_stage(stage, target)
    module = read_module(arguments)
    if arguments.dump_to:
        from warpsmith.report.page.dump import dump_module

        written = dump_module(
            module,
            arguments.dump_to,
            target=arguments.target,
            pass_re=arguments.dump_pass_re,
            generic=arguments.generic,
            cache=not arguments.no_cache,
            **_options(arguments),
        )
        if arguments.stage is None and arguments.output is None:
            print(f"{len(written)} files in {arguments.dump_to}")
            return 0
    if arguments.time_passes:
        _print_times(module, arguments)
    if stage == "cubin":
        if arguments.output is None:
            raise UsageError("a cubin is binary", help="write it to a file: -o OUT.cubin")
        write_bytes(arguments.output, stage_bytes(module, arguments.target, **_options(arguments)))
        return 0
    write_text(
        arguments.output,
        stage_text(
            module,
            stage,
            arguments.target,
            generic=arguments.generic,
            cache=not arguments.no_cache,
            **_options(arguments),
        ),
    )
    return 0


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """What each way of compiling takes."""
    return {
        "numerics": arguments.numerics,
        "deterministic": arguments.deterministic,
        "pipeline": arguments.pipeline,
    }


def _print_times(module: object, arguments: argparse.Namespace) -> None:
    from warpsmith.compiler import time_passes
    from warpsmith.hlo.module import HloModule

    assert isinstance(module, HloModule)
    rows = time_passes(module, arguments.target, **_options(arguments))
    total = sum(seconds for _, seconds in rows)
    for name, seconds in rows:
        print(f"{seconds * 1e3:9.3f} ms  {seconds / total:5.1%}  {name}", file=sys.stderr)
    print(f"{total * 1e3:9.3f} ms  total", file=sys.stderr)
