"""Explain a module's kernels: which emitter and why, who touches which element, what it costs on a device.

  warpsmith explain FILE.hlo
  warpsmith explain FILE.hlo --target cpu
  warpsmith explain FILE.hlo --target l40s --svg kernel.svg
  warpsmith explain KERNELS.py:softmax      a tile kernel: which variant each primitive got, and why

Nothing is timed, and no GPU is needed: costs are counted by simulating blocks of each kernel, times are a model's.
"""

from __future__ import annotations

import argparse

from warpsmith.cli.files import terminal_width, writable, write_text
from warpsmith.cli.modules import add_module, read_module


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_module(parser, "FILE", "HLO text, or FILE.py[:NAME]")
    parser.add_argument(
        "--target", default="sm_90", help="cpu, sm_80, sm_90, sm_100, or a device's name (default: sm_90)"
    )
    parser.add_argument("--numerics", default="strict", help="strict (default) or xla")
    parser.add_argument("--deterministic", action="store_true", help="as `warpsmith run --deterministic` compiles it")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a constant of a @T.jit kernel"
    )
    parser.add_argument("--svg", metavar="OUT", help="write pictures: threads on elements, elements on banks")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(arguments: argparse.Namespace) -> int:
    """Run the command on parsed arguments; the exit status (`warpsmith.cli`).  Raises WarpsmithError for bad input."""
    from warpsmith.report.explain.explanation import explain

    if arguments.file is not None and arguments.file.partition(":")[0].endswith(".py"):
        return _tile(arguments)
    options = {"numerics": arguments.numerics, "deterministic": arguments.deterministic}
    writable(arguments.svg)
    found = explain(read_module(arguments), arguments.target, **options)
    if arguments.svg is not None:
        write_text(arguments.svg, found.svg())
    write_text(None, found.to_json() if arguments.json else found.text(terminal_width()))
    return 0


def _tile(arguments: argparse.Namespace) -> int:
    """A tile kernel of a Python file."""
    from warpsmith.cli.tile import constants
    from warpsmith.report.explain.tile import tile_explanation
    from warpsmith.tile.files import load_kernel

    kernel = load_kernel(arguments.file, constants(arguments.set))
    if arguments.svg is not None:
        from warpsmith.tile.picture import kernel_svg

        write_text(arguments.svg, kernel_svg(kernel))
    found = tile_explanation(kernel, arguments.target)
    write_text(None, found.to_json() if arguments.json else str(found))
    return 0
