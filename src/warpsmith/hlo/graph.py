"""A computation as a picture: nodes and edges in DOT (Graphviz) or Mermaid (Markdown).

In: a computation and the instructions to show.  Out: text.  Edges to instructions that aren't shown end in a small
node `...`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warpsmith.errors import UsageError, did_you_mean
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.query import neighbourhood

__all__ = ["FORMATS", "draw"]


@dataclass(frozen=True, slots=True)
class _Node:
    key: str
    lines: tuple[str, ...]
    kind: str
    """"op", "root", "parameter", "constant", "centre" or "cut"."""


_Edge = tuple[str, str]


def draw(
    computation: HloComputation, format: str = "dot", *, around: HloInstruction | None = None, radius: int = 2
) -> str:
    """The graph of `computation`, or of what lies at most `radius` steps around one instruction.

    UsageError for an unknown format.
    """
    writer = FORMATS.get(format)
    if writer is None:
        raise UsageError(
            f"no graph format is called '{format}'",
            help=did_you_mean(format, FORMATS) or f"formats: {', '.join(FORMATS)}",
        )
    shown = neighbourhood(computation, around, radius) if around is not None else list(computation.instructions)
    nodes, edges = _graph(computation, shown, around)
    return writer(computation.name, nodes, edges)


def _graph(
    computation: HloComputation, shown: Sequence[HloInstruction], around: HloInstruction | None
) -> tuple[list[_Node], list[_Edge]]:
    keys = {each: f"n{index}" for index, each in enumerate(shown)}
    nodes: list[_Node] = []
    edges: list[_Edge] = []
    for each, key in keys.items():
        nodes.append(_Node(key, _lines(each), _kind(computation, each, around)))
        edges += [(keys[operand], key) for operand in each.operands if operand in keys]
        if any(operand not in keys for operand in each.operands):
            nodes.append(_Node(f"{key}_in", ("...",), "cut"))
            edges.append((f"{key}_in", key))
        if any(user not in keys for user in computation.users(each)):
            nodes.append(_Node(f"{key}_out", ("...",), "cut"))
            edges.append((key, f"{key}_out"))
    return nodes, edges


def _kind(computation: HloComputation, instruction: HloInstruction, around: HloInstruction | None) -> str:
    if instruction is around:
        return "centre"
    if computation.is_root(instruction):
        return "root"
    return instruction.opcode if instruction.opcode in ("parameter", "constant") else "op"


def _lines(instruction: HloInstruction) -> tuple[str, ...]:
    shape = instruction.shape.text(layout=False)
    called = ", ".join(each.name for each in instruction.called_computations)
    second = f"{instruction.opcode} {shape if len(shape) <= 60 else shape[:57] + '...'}"
    return (instruction.name, second, called) if called else (instruction.name, second)


_DOT_STYLE = {
    "op": "shape=box",
    "root": "shape=box, penwidth=2",
    "parameter": "shape=box, style=rounded",
    "constant": "shape=box, style=dotted",
    "centre": "shape=box, style=filled, fillcolor=lightyellow",
    "cut": "shape=plaintext",
}


def _dot(name: str, nodes: Sequence[_Node], edges: Sequence[_Edge]) -> str:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    lines = [f"digraph {quoted(name)} {{"]
    for node in nodes:
        label = quoted("\n".join(node.lines)).replace("\n", "\\n")
        lines.append(f"  {node.key} [label={label}, {_DOT_STYLE[node.kind]}];")
    lines += [f"  {source} -> {target};" for source, target in edges]
    return "\n".join([*lines, "}"])


_MERMAID_BRACKETS = {
    "op": ('["', '"]'),
    "root": ('[["', '"]]'),
    "parameter": ('(["', '"])'),
    "constant": ('("', '")'),
    "centre": ('{{"', '"}}'),
    "cut": ('["', '"]'),
}
_MERMAID_ESCAPES = str.maketrans({'"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;"})


def _mermaid(name: str, nodes: Sequence[_Node], edges: Sequence[_Edge]) -> str:
    lines = [f"%% {name}", "flowchart TD"]
    for node in nodes:
        start, end = _MERMAID_BRACKETS[node.kind]
        label = "<br/>".join(line.translate(_MERMAID_ESCAPES) for line in node.lines)
        lines.append(f"  {node.key}{start}{label}{end}")
    lines += [f"  {source} --> {target}" for source, target in edges]
    return "\n".join(lines)


FORMATS: dict[str, Callable[[str, Sequence[_Node], Sequence[_Edge]], str]] = {"dot": _dot, "mermaid": _mermaid}
"""How each format is written."""
