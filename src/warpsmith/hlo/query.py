"""Questions about HLO: what is in it, where, who uses what, how much of it there is, and whether two are the same.

In: modules, computations, instructions.  Out: lists of them, `Statistics`, a fingerprint.  Nothing here changes or
recurses, so chains may be as long as memory allows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import cast

from warpsmith.errors import InvalidHlo, UnknownName, did_you_mean
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.shapes import UNBOUNDED, AnyShape
from warpsmith.hlo.text.attribute_table import ATTRIBUTES, HEADER
from warpsmith.hlo.text.printer import STACK_FRAMES
from warpsmith.hlo.traversal import callees_first, operands_first

__all__ = ["Statistics", "callers", "find", "fingerprint", "instruction_named", "neighbourhood", "statistics", "walk"]

Predicate = Callable[[HloInstruction], bool]


def walk(module: HloModule) -> Iterator[tuple[HloComputation, HloInstruction]]:
    """Every instruction with the computation that holds it, in text order."""
    for computation in module.computations:
        for instruction in computation.instructions:
            yield computation, instruction


def find(
    where: HloModule | HloComputation,
    opcode: str | None = None,
    *,
    name: str | None = None,
    predicate: Predicate | None = None,
) -> list[HloInstruction]:
    """The instructions with this opcode, a name that fits the pattern (`fusion*`, `add.?`), and for which `predicate`
    holds, in text order."""
    instructions = where.instructions() if isinstance(where, HloModule) else iter(where.instructions)
    return [
        each
        for each in instructions
        if (opcode is None or each.opcode == opcode)
        and (name is None or each.name == name or fnmatchcase(each.name, name))
        and (predicate is None or predicate(each))
    ]


def instruction_named(module: HloModule, name: str) -> tuple[HloComputation, HloInstruction]:
    """The instruction called `name`, or `computation/name` where several computations have one, with its computation.

    One in the entry goes before others.  UnknownName with the nearest name, InvalidHlo when the name is ambiguous.
    """
    bare = name.replace("%", "")
    if "/" in bare:
        place, _, inner = bare.partition("/")
        computation = module.computation(place)
        return computation, computation.instruction(inner)
    found = [(computation, each) for computation, each in walk(module) if each.name == bare]
    if not found:
        names = {each.name for each in module.instructions()}
        raise UnknownName(f"module '{module.name}' has no instruction '{bare}'", help=did_you_mean(bare, names))
    in_entry = [pair for pair in found if pair[0] is module.entry]
    if len(found) > 1 and not in_entry:
        raise InvalidHlo(
            f"{len(found)} computations have an instruction '{bare}'",
            help="say which: " + ", ".join(f"{computation.name}/{bare}" for computation, _ in found[:5]),
        )
    return in_entry[0] if in_entry else found[0]


def callers(module: HloModule) -> dict[HloComputation, tuple[HloInstruction, ...]]:
    """For each computation, the instructions that call it."""
    found: dict[HloComputation, list[HloInstruction]] = {each: [] for each in module.computations}
    for instruction in module.instructions():
        if instruction.attributes:
            for called in dict.fromkeys(instruction.called_computations):
                found.setdefault(called, []).append(instruction)
    return {computation: tuple(calls) for computation, calls in found.items()}


def neighbourhood(computation: HloComputation, around: HloInstruction, radius: int) -> list[HloInstruction]:
    """`around` and what is at most `radius` operand or user steps away, in text order."""
    near, edge = {around}, [around]
    for _ in range(radius):
        step = [other for each in edge for other in (*each.operands, *computation.users(each))]
        edge = [other for other in dict.fromkeys(step) if other not in near]
        near.update(edge)
        if not edge:
            break
    return [each for each in computation.instructions if each in near]


@dataclass(frozen=True, slots=True)
class Statistics:
    """How much of what is in a module; sizes are bytes, packed, and leave out dimensions without a bound.

    `result_bytes` counts results of instructions outside fusions and other called functions of scalars, once each,
    without tuples and bitcasts, which make nothing new.
    """

    computations: int
    instructions: int
    opcodes: Mapping[str, int]
    fusion_kinds: Mapping[str, int]
    custom_calls: Mapping[str, int]
    parameter_bytes: int
    constant_bytes: int
    result_bytes: int
    output_bytes: int

    def __str__(self) -> str:
        rows = [
            ("computations", self.computations),
            ("instructions", self.instructions),
            ("parameter bytes", self.parameter_bytes),
            ("constant bytes", self.constant_bytes),
            ("result bytes", self.result_bytes),
            ("output bytes", self.output_bytes),
        ]
        groups = (("opcodes", self.opcodes), ("fusions", self.fusion_kinds), ("custom calls", self.custom_calls))
        words = [name for name, _ in rows] + [f"  {name}" for _, group in groups for name in group]
        width = max(map(len, words))
        lines = [f"{name:<{width}}  {count:>12,}" for name, count in rows]
        for title, group in groups:
            if group:
                lines.append(title)
                ordered = sorted(group.items(), key=lambda item: (-item[1], item[0]))
                lines += [f"{'  ' + name:<{width}}  {count:>12,}" for name, count in ordered]
        return "\n".join(lines)


_MAKES_NOTHING = frozenset({"tuple", "get-tuple-element", "bitcast", "parameter", "constant", "after-all", "domain"})


def statistics(module: HloModule) -> Statistics:
    """Counts and sizes of `module`."""
    opcodes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    targets: Counter[str] = Counter()
    for instruction in module.instructions():
        opcodes[instruction.opcode] += 1
        if instruction.opcode == "fusion":
            kinds[str(instruction.attributes.get("kind", "?"))] += 1
        elif instruction.opcode == "custom-call":
            targets[str(instruction.attributes.get("custom_call_target", "?"))] += 1
    top = _executed(module)
    return Statistics(
        computations=len(module.computations),
        instructions=opcodes.total(),
        opcodes=dict(sorted(opcodes.items())),
        fusion_kinds=dict(sorted(kinds.items())),
        custom_calls=dict(sorted(targets.items())),
        parameter_bytes=sum(_bytes(each.shape) for each in module.entry.parameters),
        constant_bytes=sum(_bytes(each.shape) for each in module.instructions() if each.opcode == "constant"),
        result_bytes=sum(
            _bytes(each.shape)
            for computation in top
            for each in computation.instructions
            if each.opcode not in _MAKES_NOTHING
        ),
        output_bytes=_bytes(module.entry.root.shape),
    )


_RUNS_BODIES = frozenset({"call", "while", "conditional", "async-start"})


def _executed(module: HloModule) -> list[HloComputation]:
    """The entry and the computations that control flow runs from it."""
    found: dict[HloComputation, None] = {module.entry: None}
    stack = [module.entry]
    while stack:
        for instruction in stack.pop().instructions:
            if instruction.opcode in _RUNS_BODIES:
                new = [called for called in instruction.called_computations if called not in found]
                found.update(dict.fromkeys(new))
                stack += new
    return list(found)


def _bytes(shape: AnyShape) -> int:
    return sum(leaf.byte_size for leaf in shape.leaves() if UNBOUNDED not in leaf.dims)


_NOT_IN_FINGERPRINT = frozenset({"metadata", "statistics", "origin", "original_value"})


def fingerprint(what: HloModule | HloComputation) -> str:
    """64 hexadecimal digits that are equal for modules (or computations) that compute the same in the same way.

    Names, metadata, the order of the text, and computations that nothing reaches don't count; opcodes, shapes with
    layouts, operands, attributes, constants, and the header's fields do.  The hash is SHA-256 of a canonical text, the
    same on every machine; it changes only where this function does.
    """
    if isinstance(what, HloComputation):
        return _Fingerprint([what]).digest()
    header = sorted(
        f"{name}={HEADER[name].print(value, '') if name in HEADER else value}\n"
        for name, value in what.attributes.items()
        if name != STACK_FRAMES and name != "frontend_attributes"
    )
    return _Fingerprint([what.entry], header).digest()


class _Fingerprint:
    """Feeds the canonical text of computations, callees first, to a hash."""

    def __init__(self, roots: list[HloComputation], header: Iterable[str] = ()) -> None:
        self.hash = hashlib.sha256("".join(header).encode())
        self.numbers: dict[HloComputation, int] = {}
        self.shapes: dict[int, str] = {}
        for computation in callees_first(roots):
            self.numbers[computation] = len(self.numbers)
            self._computation(computation)

    def digest(self) -> str:
        return self.hash.hexdigest()

    def _computation(self, computation: HloComputation) -> None:
        # From the root, then what the root doesn't reach: parameters by number, then effects in their order.
        order = operands_first([*computation.parameters, computation.root, *computation.instructions])
        ids = {each: index for index, each in enumerate(order)}
        lines = [f"{{ root {ids[computation.root]}\n"]
        lines += [self._instruction(each, ids) for each in order]
        self.hash.update("".join(lines).encode())

    def _instruction(self, instruction: HloInstruction, ids: Mapping[HloInstruction, int]) -> str:
        shape = self.shapes.get(id(instruction.shape))
        if shape is None:
            shape = self.shapes[id(instruction.shape)] = str(instruction.shape)
        operands = ",".join([str(ids[operand]) for operand in instruction.operands])
        text = f"{instruction.opcode} {shape} {operands}"
        if instruction.parameter_number is not None:
            text += f" #{instruction.parameter_number}"
        for name in sorted(instruction.attributes):
            if name not in _NOT_IN_FINGERPRINT:
                text += f" {name}={self._value(name, instruction.attributes[name], ids)}"
        if instruction.literal is not None:
            text += f" {instruction.literal.digest()}"
        return text + "\n"

    def _value(self, name: str, value: object, ids: Mapping[HloInstruction, int]) -> str:
        if isinstance(value, HloComputation):
            return f"@{self.numbers[value]}"
        if isinstance(value, HloInstruction):
            return f"%{ids.get(value, -1)}"
        kind = ATTRIBUTES.get(name)
        if kind is not None and kind.refers:
            return ",".join(self._value(name, item, ids) for item in cast("tuple[object, ...]", value))
        return str(value) if kind is None else kind.print(value, "")
