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
from warpsmith.records import json_text

if TYPE_CHECKING:
    from warpsmith.compiler.tile.programs import TileRun
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
    from warpsmith.compiler.tile.programs import tile_bytes, tile_text

    stage = arguments.stage or "dispatched"
    if stage == "cubin" and arguments.out is not None:
        write_bytes(arguments.out, tile_bytes(kernel, arguments.target))
        return 0
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
    from warpsmith.compiler.tile.programs import run_tile

    given = read_named(arguments.input) if arguments.input else None
    result = run_tile(kernel, given, target=arguments.target, platform=arguments.platform, seed=arguments.seed)
    if arguments.output:
        write_named(arguments.output, result.outputs)
    sys.stdout.write(_json(kernel, result, arguments) if arguments.json else _report(kernel, result))
    return 0 if result.ok else 1


def _report(kernel: Kernel, result: TileRun) -> str:
    lines = [
        f"kernel {kernel.name}: grid {kernel.launch.grid}, block {kernel.launch.block}, platform {result.platform}"
    ]
    for name, array in result.outputs.items():
        verdict = result.mismatches.get(name, "as its primitives mean")
        lines.append(f"  {name} {array.dtype}{list(array.shape)}: {verdict}")
    if result.counters is not None:
        counted = result.counters
        lines.append(
            f"  {counted.warp_instructions} warp instructions, {counted.conflicts} bank conflicts, "
            f"{counted.sectors} sectors of global memory ({counted.ideal_sectors} at least), "
            f"{counted.barriers} barrier waits"
            + (f", {counted.matrix_flops} operations of the matrix units" if counted.matrix_flops else "")
        )
    lines += [f"{finding}" for finding in result.findings]
    if result.findings:
        lines.append(f"{len(result.findings)} finding(s)")
    else:
        lines.append(
            "no findings" if result.platform == "sim" else "not watched: races and the like are found by --platform sim"
        )
    return "\n".join(lines) + "\n"


def _json(kernel: Kernel, result: TileRun, arguments: argparse.Namespace) -> str:
    found = {
        "kernel": kernel.name,
        "platform": result.platform,
        "target": arguments.target,
        "grid": kernel.launch.grid,
        "block": kernel.launch.block,
        "match": not result.mismatches,
        "outputs": {
            name: {"dtype": str(array.dtype), "shape": array.shape, "mismatch": result.mismatches.get(name)}
            for name, array in result.outputs.items()
        },
        "findings": [str(finding) for finding in result.findings],
        "counters": None if result.counters is None else result.counters.to_dict(),
    }
    return json_text(found) + "\n"
