"""Operands to functions that fetch them: what every decoder of instructions starts with."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError
from warpsmith.simt.ptx.machine import Frame
from warpsmith.simt.ptx.spec import Form, form_of
from warpsmith.simt.ptx.text.module import (
    TYPE_BITS,
    Address,
    Function,
    Immediate,
    Instruction,
    Negated,
    Operand,
    PtxModule,
    Register,
    Special,
    Symbol,
)
from warpsmith.simt.ptx.values import UNSIGNED, reader, resize, writer

__all__ = ["Context", "Fetch"]

Fetch = Callable[[Frame], Array]


@dataclass(slots=True)
class Context:
    """One instruction on its way to a step, with all that its operands may name.

    `symbols` gives each variable's state space and its address there; `wanted` the slots that some instruction reads,
    `demanded` the bits of each that count; `exchanged` the addresses of compare-and-exchanges.
    """

    module: PtxModule
    function: Function
    symbols: dict[str, tuple[str, int]]
    wanted: frozenset[int]
    demanded: Mapping[int, int]
    exchanged: frozenset[Address]
    worst: bool
    instruction: Instruction

    @property
    def form(self) -> Form:
        """The opcode taken apart."""
        return form_of(self.instruction.parts, self.worst)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The instruction's operands, target first."""
        return self.instruction.operands

    def fail(self, cause: str, help: str | None = None) -> NoReturn:
        """Raise SimulationError at the instruction."""
        raise SimulationError(cause, span=self.module.span(self.instruction.text_line), help=help)

    def unknown(self) -> NoReturn:
        """No such instruction here."""
        self.fail(f"the simulator doesn't know '{self.instruction.opcode}' with these operands")

    # -- operands
    def register(self, operand: Operand) -> Register:
        """The operand, a register; SimulationError if it's something else."""
        if not isinstance(operand, Register):
            self.fail("a register is wanted here")
        return operand

    def address_of(self, symbol: Symbol) -> tuple[str, int]:
        """The state space of a variable and the address of a byte in it."""
        found = self.symbols.get(symbol.name)
        if found is None:
            self.fail(f"no variable '{symbol.name}'")
        return found[0], found[1] + symbol.offset

    def bits_of(self, operand: Immediate, type: str) -> Array:
        """A literal as the bits of a type."""
        bits = TYPE_BITS[type]
        value = operand.value
        if operand.kind == "decimal":
            number = np.array([struct.unpack("<d", value.to_bytes(8, "little"))[0]])
            return writer(type if type in ("f16", "bf16", "f32", "f64") else "f64")(number)
        if bits == 1:
            return np.array([value != 0])
        return np.array([value & ((1 << bits) - 1)], UNSIGNED[bits])

    def raw(self, operand: Operand, type: str) -> Fetch:
        """The operand's bits; a register's in its own width, anything else in the type's."""
        if isinstance(operand, Register):
            slot = operand.slot

            def fetch(frame: Frame) -> Array:
                value = frame.regs[slot]
                return frame.undefined(slot) if value is None else value

            return fetch
        if isinstance(operand, Negated):
            inner = self.raw(operand.register, "pred")
            return lambda frame: ~inner(frame)
        if isinstance(operand, Immediate):
            constant = self.bits_of(operand, type)
            return lambda frame: constant
        if isinstance(operand, Special):
            name, bits = operand.name, TYPE_BITS[type]
            return lambda frame: resize(frame.batch.special(name), bits)
        if not isinstance(operand, Symbol):
            self.unknown()
        address = np.array([self.address_of(operand)[1]], np.uint64)
        return lambda frame: address

    def value(self, operand: Operand, type: str) -> Fetch:
        """The operand as the numbers that an instruction of this type sees."""
        raw = self.raw(operand, type)
        read = reader(type)
        if isinstance(operand, Register):
            width = TYPE_BITS[operand.type]
            if width < TYPE_BITS[type]:
                self.fail(f"{operand.name} has {width} bits; '{self.instruction.opcode}' reads {TYPE_BITS[type]}")
            if width == TYPE_BITS[type] and (type[0] in "bu" or type == "pred") and type != "bf16":
                return raw
        if isinstance(operand, Immediate):
            constant = read(self.bits_of(operand, type))
            return lambda frame: constant
        return lambda frame: read(raw(frame))

    def address(self, operand: Operand) -> tuple[str, Fetch]:
        """The state space that the operand names by itself ("" for a register), and its address."""
        if not isinstance(operand, Address):
            self.fail("an address in brackets is wanted here")
        base, offset = operand.base, operand.offset
        if isinstance(base, Symbol):
            space, start = self.address_of(base)
            constant = np.array([start + offset], np.uint64)
            return space, lambda frame: constant
        if isinstance(base, Immediate):
            constant = np.array([(base.value + offset) & (2**64 - 1)], np.uint64)
            return "", lambda frame: constant
        raw = self.raw(base, "b64")
        if offset == 0:
            return "", lambda frame: raw(frame).astype(np.uint64, copy=False)
        step = np.uint64(offset & (2**64 - 1))
        return "", lambda frame: raw(frame).astype(np.uint64, copy=False) + step
