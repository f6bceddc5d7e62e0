"""Printing modules as HLO text, in XLA's own style.

In: a module, and optionally a `PrintStyle` (by default the style of the text that the module came from, else XLA's
default).  Out: text that parses to an equal module, and that is byte for byte XLA's where the module came from XLA.
A constant of a million and more equal elements that code made prints as the broadcast of a scalar constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from warpsmith.hlo.attributes import StackFrames
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule, frozen
from warpsmith.hlo.shapes import AnyShape
from warpsmith.hlo.text.attribute_table import ATTRIBUTES, HEADER, KINDS
from warpsmith.hlo.text.literals import as_broadcast, literal_text
from warpsmith.hlo.text.style import DEFAULT, PrintStyle

__all__ = ["print_instruction", "print_module"]

_RAW = KINDS["raw"]
STACK_FRAMES = "stack_frames"
"""The module attribute that holds the stack frame tables; it prints after the header, not in it."""


def print_module(module: HloModule, style: PrintStyle | None = None) -> str:
    """The module's text."""
    chosen = style or module.style or DEFAULT
    printer = _Printer(chosen)
    lines = [f"HloModule {module.name}{_header(module.attributes)}\n"]
    frames = module.attributes.get(STACK_FRAMES)
    if isinstance(frames, StackFrames):
        lines.append(f"\n{frames}\n")
    lines.append("\n")
    for index, computation in enumerate(module.computations):
        lines.append("\n\n" if index else "")
        printer.computation(lines, computation, computation is module.entry)
    lines.append(chosen.tail)
    return "".join(lines)


def print_instruction(instruction: HloInstruction, style: PrintStyle = DEFAULT) -> str:
    """One instruction's text, without `ROOT`."""
    return _Printer(style).instruction(instruction)


def _header(attributes: Mapping[str, object]) -> str:
    parts: list[str] = []
    for name, value in attributes.items():
        if name == STACK_FRAMES:
            continue
        text = HEADER.get(name, _RAW).print(value, "")
        parts.append(f", {name}={text}" + ("\n" if "\n" in text else ""))
    return "".join(parts)


class _Printer:
    """Prints with one style; remembers the text of shapes and attribute values that many instructions share."""

    def __init__(self, style: PrintStyle) -> None:
        self.style = style
        self.percent = "%" if style.percent else ""
        self._shapes: dict[int, str] = {}
        self._values: dict[tuple[str, int], str] = {}

    def shape(self, shape: AnyShape) -> str:
        # Keyed by identity: hashing a shape costs more than printing it.  The module keeps the shapes alive.
        text = self._shapes.get(id(shape))
        if text is None:
            text = self._shapes[id(shape)] = shape.text(layout=self.style.layouts)
        return text

    def computation(self, lines: list[str], computation: HloComputation, entry: bool) -> None:
        head = f"{'ENTRY ' if entry else ''}{self.percent}{computation.name} "
        if self.style.program_shape:
            parameters = [f"{each.name}: {each.shape.text(layout=False)}" for each in computation.parameters]
            head += f"({', '.join(parameters)}) -> {computation.root.shape.text(layout=False)} "
        lines.append(head + "{\n")
        root = computation.root
        for each in computation.instructions:
            mark = "  ROOT " if each is root else "  "
            scalar = as_broadcast(each.literal) if each.literal is not None else None
            if scalar is None:
                lines.append(f"{mark}{self.instruction(each)}\n")
            else:
                names = {other.name for other in computation.instructions}
                name = next(name for i in count() if (name := f"{each.name}.element.{i}") not in names)
                element = HloInstruction(name, "constant", scalar.shape, literal=scalar)
                attributes = frozen({"dimensions": (), **each.attributes})
                whole = HloInstruction(each.name, "broadcast", each.shape, (element,), attributes)
                lines.append(f"  {self.instruction(element)}\n{mark}{self.instruction(whole)}\n")
        lines.append("}" + self.attributes(computation.attributes))

    def instruction(self, each: HloInstruction) -> str:
        if each.literal is not None and each.opcode == "constant":
            inner = literal_text(each.literal)
        elif each.parameter_number is not None:
            inner = str(each.parameter_number)
        else:
            inner = self.operands(each.operands)
        text = f"{self.percent}{each.name} = {self.shape(each.shape)} {each.opcode}({inner})"
        return text + self.attributes(each.attributes) if each.attributes else text

    def operands(self, operands: tuple[HloInstruction, ...]) -> str:
        percent = self.percent
        if self.style.operand_shapes:
            texts = [f"{self.shape(operand.shape)} {percent}{operand.name}" for operand in operands]
        else:
            texts = [percent + operand.name for operand in operands]
        if self.style.operand_index:
            for index in range(5, len(texts), 5):
                texts[index] = f"/*index={index}*/{texts[index]}"
        return ", ".join(texts)

    def attributes(self, attributes: Mapping[str, object]) -> str:
        parts: list[str] = []
        for name, value in attributes.items():
            if name == "metadata" and not self.style.metadata:
                continue
            key = (name, id(value))
            text = self._values.get(key)
            if text is None:
                text = ATTRIBUTES.get(name, _RAW).print(value, self.percent)
                self._values[key] = text
            parts.append(f", {name}={text}")
        return "".join(parts)
