"""Look at HLO text, take it apart, print it another way.

warpsmith hlo stats FILE.hlo                       counts of opcodes, fusions, bytes; the fingerprint
warpsmith hlo print FILE.hlo --style short         the module in another of XLA's styles
warpsmith hlo opt FILE.hlo --passes gather-simplifier,scatter-simplifier
warpsmith hlo extract FILE.hlo fusion.3            one instruction, or one computation, as a module of its own
warpsmith hlo graph FILE.hlo --around add.7 --radius 3 --format mermaid
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from warpsmith.cli.files import write_text
from warpsmith.cli.modules import add_module, read_module
from warpsmith.errors import UnknownName, UsageError, did_you_mean

if TYPE_CHECKING:
    from warpsmith.hlo import HloComputation, HloInstruction, HloModule

_SUMMARIES = {
    "stats": "count opcodes, fusions, custom calls and bytes; print the fingerprint",
    "print": "print the module, in its own style or another",
    "opt": "run HLO passes and print the module",
    "extract": "print one instruction (its operands become parameters) or one computation as a module of its own",
    "graph": "draw a computation, or what is near an instruction",
}


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=type(parser))
    made = {name: actions.add_parser(name, help=summary, description=summary) for name, summary in _SUMMARIES.items()}
    for each in made.values():
        add_module(each)
        each.add_argument("--no-verify", action="store_true", help="take a module that breaks the verifier's rules")
        each.add_argument("-o", dest="output", metavar="OUT", help="write here instead of standard output")
    made["stats"].add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    styles = "XLA's default style, its short one, or operands with shapes; without this, the file's own"
    for each in (made["print"], made["opt"]):
        each.add_argument("--style", choices=("default", "short", "operand-shapes"), help=styles)
        each.add_argument("--no-metadata", action="store_true", help="leave metadata out")
        each.add_argument("--no-layouts", action="store_true", help="leave layouts out")
        target = "what tree-reduction and scatter-order are for (default: sm_90)"
        each.add_argument("--target", default="sm_90", help=target)
    made["print"].add_argument("--rewrites", dest="passes", metavar="A,B", help="as `hlo opt --passes`")
    made["opt"].add_argument(
        "--passes", default="", metavar="A,B", help="passes in order (default: only verify and print)"
    )
    made["opt"].add_argument("--list-passes", action="store_true", help="print each pass with what it may change")
    names = "an instruction, computation/instruction, or a computation"
    made["extract"].add_argument("name", metavar="NAME", help=names)
    constants = "constant operands stay constants, not parameters"
    made["extract"].add_argument("--keep-constants", action="store_true", help=constants)
    graph = made["graph"]
    graph.add_argument(
        "--format", default="dot", metavar="dot|mermaid", help="Graphviz (default) or Markdown's Mermaid"
    )
    graph.add_argument("--computation", metavar="NAME", help="instead of the entry")
    graph.add_argument("--around", metavar="NAME", help="only what is near this instruction")
    graph.add_argument("--radius", type=int, metavar="N", help="how many steps are near (default 2)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command on parsed arguments; the exit status (`warpsmith.cli`).  Raises WarpsmithError for bad input."""
    from warpsmith.hlo.verifier import verify_module

    if arguments.action == "opt" and arguments.list_passes:
        write_text(arguments.output, _passes())
        return 0
    module = read_module(arguments)
    if not arguments.no_verify:
        verify_module(module)
    write_text(arguments.output, _ACTIONS[arguments.action](module, arguments))
    return 0


def _stats(module: HloModule, arguments: argparse.Namespace) -> str:
    from warpsmith.hlo.query import fingerprint, statistics

    counted, digest = statistics(module), fingerprint(module)
    if arguments.json:
        return json.dumps({"module": module.name, "fingerprint": digest, **dataclasses.asdict(counted)})
    return f"module {module.name}\nfingerprint {digest}\n{counted}"


def _print(module: HloModule, arguments: argparse.Namespace) -> str:
    from warpsmith.hlo.text.printer import print_module
    from warpsmith.hlo.text.style import DEFAULT, SHORT

    if arguments.passes:
        from warpsmith.devices import device
        from warpsmith.hlo_passes.manager import apply

        module = apply(module, arguments.passes, device(arguments.target))
    styles = {"default": DEFAULT, "short": SHORT, "operand-shapes": dataclasses.replace(DEFAULT, operand_shapes=True)}
    style = module.style or DEFAULT
    if arguments.style is not None:
        style = styles[arguments.style]
    style = dataclasses.replace(
        style,
        metadata=style.metadata and not arguments.no_metadata,
        layouts=style.layouts and not arguments.no_layouts,
        tail="\n",
    )
    return print_module(module, style)


def _passes() -> str:
    """Every HLO pass with the first line of what it does and what it may change."""
    from warpsmith.hlo_passes.manager import CONTRACTS, lookup, names

    lines: list[str] = []
    for each in map(lookup, names()):
        summary = each.doc.partition("\n")[0].removeprefix(f"{each.name}: ")
        lines += [each.name, f"    {summary}", f"    contract: {each.contract}, {CONTRACTS[each.contract]}"]
    return "\n".join(lines)


def _extract(module: HloModule, arguments: argparse.Namespace) -> str:
    from warpsmith.hlo.edit import extract

    return str(extract(module, _named(module, arguments.name), keep_constants=arguments.keep_constants)).rstrip("\n")


def _named(module: HloModule, name: str) -> HloInstruction | HloComputation:
    """An instruction, or else a computation.  UnknownName with the nearest of both."""
    from warpsmith.hlo.query import instruction_named

    bare = name.replace("%", "")
    computations = {each.name: each for each in module.computations}
    instructions = {each.name for each in module.instructions()}
    if "/" in bare or bare in instructions:
        return instruction_named(module, bare)[1]
    if bare in computations:
        return computations[bare]
    raise UnknownName(
        f"module '{module.name}' has no instruction or computation '{bare}'",
        help=did_you_mean(bare, instructions | computations.keys()),
    )


def _graph(module: HloModule, arguments: argparse.Namespace) -> str:
    from warpsmith.hlo.graph import draw
    from warpsmith.hlo.query import instruction_named

    if arguments.radius is not None and (arguments.around is None or arguments.radius < 0):
        raise UsageError("--radius is a number of steps around an instruction, 0 or more", help="give --around NAME")
    computation = module.entry if arguments.computation is None else module.computation(arguments.computation)
    around = None
    if arguments.around is not None:
        if arguments.computation is None:
            computation, around = instruction_named(module, arguments.around)
        else:
            around = computation.instruction(arguments.around)
    return draw(
        computation, arguments.format, around=around, radius=2 if arguments.radius is None else arguments.radius
    )


_ACTIONS: dict[str, Callable[[HloModule, argparse.Namespace], str]] = {
    "stats": _stats,
    "print": _print,
    "opt": _print,
    "extract": _extract,
    "graph": _graph,
}
