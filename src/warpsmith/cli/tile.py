"""Read a tile kernel, print a stage of it, or run it.

warpsmith tile FILE.py[:NAME] --stage tirx|dispatched|lowered|cuda|ptx|cubin
warpsmith tile FILE.py[:NAME] --run --platform sim|cpu|cuda
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from warpsmith.cli.files import writable, write_bytes, write_text
from warpsmith.cli.own_passes import add_load, load
from warpsmith.errors import UsageError

if TYPE_CHECKING:
    from warpsmith.tile.program import Kernel


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", metavar="FILE.py[:NAME]", help="a Python file with kernels; NAME picks one")
    parser.add_argument("--stage", help="tirx, dispatched, lowered, cuda, ptx, or cubin (default: dispatched)")
    parser.add_argument("--target", default="sm_90", help="sm_80, sm_90, sm_100, or a GPU's name (default: sm_90)")
    parser.add_argument("--run", action="store_true", help="run it, and compare with the meaning of its primitives")
    parser.add_argument(
        "--platform", default="sim", help="sim, the simulator (default); cpu, native code; cuda, a GPU of this computer"
    )
    parser.add_argument("--json", action="store_true", help="with --run: one JSON object, nothing else")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a constant of a @T.jit kernel"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the generated arrays (default: 0)")
    parser.add_argument("--input", metavar="FILE.npz", help="arrays by parameter")
    parser.add_argument("--output", metavar="FILE.npz", help="write the buffers that the kernel writes")
    parser.add_argument("--svg", metavar="OUT", help="a picture of who owns which element, for each buffer")
    parser.add_argument("--explain", action="store_true", help="which variant each primitive got, and why")
    add_load(parser)
    parser.add_argument("--generic", action="store_true", help="IR in MLIR's generic form")
    parser.add_argument("-o", dest="out", metavar="OUT", help="write here instead of standard output")


def run(arguments: argparse.Namespace) -> int:
    """Run the command on parsed arguments; the exit status (`warpsmith.cli`).  Raises WarpsmithError for bad input."""
    from warpsmith.compiler.tile.programs import DEFAULT_STAGE, tile_bytes, tile_text
    from warpsmith.tile.files import load_kernel

    load(arguments)
    kernel = load_kernel(arguments.file, constants(arguments.set))
    writable(arguments.svg)
    if arguments.svg:
        from warpsmith.tile.picture import kernel_svg

        write_text(arguments.svg, kernel_svg(kernel))
        if arguments.stage is None and not arguments.run and not arguments.explain:
            return 0
    if arguments.explain:
        from warpsmith.report.explain.tile import tile_explanation

        write_text(arguments.out, str(tile_explanation(kernel, arguments.target)))
        return 0
    if arguments.run:
        return _run(kernel, arguments)
    stage = arguments.stage or DEFAULT_STAGE
    if stage == "cubin" and arguments.out is not None:
        write_bytes(arguments.out, tile_bytes(kernel, arguments.target))
    else:
        write_text(arguments.out, tile_text(kernel, stage, arguments.target, generic=arguments.generic))
    return 0


def constants(given: list[str]) -> dict[str, Any]:
    """The constants of `--set NAME=VALUE`, Python literals or else text.  Raises UsageError."""
    import ast

    found: dict[str, Any] = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not equals:
            raise UsageError(f"'{each}' gives no constant", help="--set NAME=VALUE")
        try:
            found[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            found[name] = text
    return found


def _run(kernel: Kernel, arguments: argparse.Namespace) -> int:
    from warpsmith.cli.npz import read_named, write_named
    from warpsmith.report import tile as tiles

    given = read_named(arguments.input) if arguments.input else None
    report = tiles.run(kernel, given, target=arguments.target, platform=arguments.platform, seed=arguments.seed)
    if arguments.output:
        write_named(arguments.output, report.outputs)
    sys.stdout.write((report.to_json() if arguments.json else str(report)) + "\n")
    return 0 if report.ok else 1
