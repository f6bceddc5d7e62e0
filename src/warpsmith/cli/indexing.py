"""Print, for each instruction, which elements of its operands an element of its result is made of.

  warpsmith indexing FILE.hlo
  warpsmith indexing FILE.hlo --instruction transpose.1 --style xla

A map goes from the indices of the result (d0, d1, ...) to indices of the operand.  s0, s1, ... run over what is summed
or reduced; rt0, rt1, ... are start indices, read from memory.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from warpsmith.cli.files import write_text
from warpsmith.cli.modules import add_module, read_module
from warpsmith.errors import UnknownName, did_you_mean

if TYPE_CHECKING:
    from warpsmith.hlo import HloComputation, HloInstruction, HloModule
    from warpsmith.indexing.expr_printer import Style


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_module(parser)
    parser.add_argument("--instruction", metavar="NAME", help="this instruction alone")
    parser.add_argument(
        "--style", choices=("mlir", "xla"), default="mlir", help="write floordiv (mlir, the default) or / (xla)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("-o", dest="output", metavar="OUT", help="write here instead of standard output")


def run(arguments: argparse.Namespace) -> int:
    """Run the command on parsed arguments; the exit status (`warpsmith.cli`).  Raises WarpsmithError for bad input."""
    module = read_module(arguments)
    chosen = list(_chosen(module, arguments.instruction))
    if arguments.json:
        text = json.dumps({"module": module.name, "computations": [_json(*part, arguments.style) for part in chosen]})
    else:
        text = "\n\n".join(_text(*part, arguments.style) for part in chosen)
    write_text(arguments.output, text)
    return 0


def _chosen(module: HloModule, name: str | None) -> Iterator[tuple[HloComputation, list[HloInstruction]]]:
    """The computations and their instructions that are asked for.  UnknownName when no instruction is called `name`."""
    found = False
    bare = name.removeprefix("%") if name is not None else None
    for computation in module.computations:
        instructions = [each for each in computation if bare is None or each.name == bare]
        if instructions:
            found = True
            yield computation, instructions
    if not found:
        names = [each.name for each in module.instructions()]
        raise UnknownName(f"module '{module.name}' has no instruction '{name}'", help=did_you_mean(bare or "", names))


def _maps(instruction: HloInstruction, style: Style) -> list[list[str]]:
    """For each operand, its maps as text; none where they are unknown."""
    from warpsmith.hlo.indexing.maps import output_to_input_indexing
    from warpsmith.indexing import print_map

    return [[print_map(map, style) for map in maps] for maps in output_to_input_indexing(instruction)]


def _sources(instruction: HloInstruction, style: Style) -> list[tuple[str, int, str]]:
    """For each runtime variable: its name, the operand that holds it, and the map to its place there."""
    from warpsmith.hlo.indexing.maps import runtime_variables
    from warpsmith.indexing import print_map

    sources = runtime_variables(instruction)
    return [(f"rt{i}", source.operand, print_map(source.map, style)) for i, source in enumerate(sources)]


def _json(computation: HloComputation, instructions: list[HloInstruction], style: Style) -> dict[str, Any]:
    rows = [
        {
            "name": each.name,
            "opcode": each.opcode,
            "shape": str(each.shape),
            "operands": [
                {"name": operand.name, "maps": maps}
                for operand, maps in zip(each.operands, _maps(each, style), strict=True)
            ],
            "runtime_variables": [
                {"name": name, "operand": number, "map": map} for name, number, map in _sources(each, style)
            ],
        }
        for each in instructions
    ]
    return {"name": computation.name, "instructions": rows}


def _text(computation: HloComputation, instructions: list[HloInstruction], style: Style) -> str:
    from warpsmith.hlo.text.printer import print_instruction

    lines = [f"{computation.name}:"]
    for each in instructions:
        lines.append(f"  {print_instruction(each).strip()}")
        # A fusion's list of maps is empty for a parameter that nothing reads, too.
        none = "unknown, or not read" if each.opcode == "fusion" else "unknown"
        for number, maps in enumerate(_maps(each, style)):
            lines += [f"    operand {number} ({each.operands[number].name}): {map}" for map in maps or [none]]
        for name, number, map in _sources(each, style):
            lines.append(f"    {name} is read from operand {number} at {map}")
    return "\n".join(lines)
