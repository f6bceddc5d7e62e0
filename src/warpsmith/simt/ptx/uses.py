"""What instructions do with registers: which they read and write, where each is read last, and which bits count.

A load may bring more than is wanted: LLVM fills the gaps between loads, and what follows the last, to make one vector
load of them.  `demanded` says which bits of a register some result depends on, so that nobody takes the others for
read.  It goes by registers, not by paths: a bit that counts somewhere counts everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from warpsmith.simt.ptx.flow import BasicBlock
from warpsmith.simt.ptx.spec import Form, form_of
from warpsmith.simt.ptx.text.module import (
    TYPE_BITS,
    Address,
    Function,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Vector,
)

__all__ = ["WORD", "deaths", "demanded", "exchanged", "parts_of", "uses"]

WORD = 4
"""Bytes of the compare-and-exchange that stands for one of a byte or two."""

_NO_TARGET = frozenset({"st", "red", "cp", "stmatrix", "bra", "brx", "bar", "barrier", "ret", "exit", "trap", "call"})


# ----------------------------------------------------------------------------------------------------- reads and writes
def _registers(operand: Operand) -> Sequence[Register]:
    if isinstance(operand, Register):
        return (operand,)
    if isinstance(operand, Address):
        return (operand.base,) if isinstance(operand.base, Register) else ()
    if isinstance(operand, Negated):
        return (operand.register,)
    if isinstance(operand, Vector):
        return [r for e in operand.elements for r in _registers(e)]
    if isinstance(operand, Pair):
        return [*_registers(operand.first), *_registers(operand.second)]
    return ()


def uses(instruction: Instruction) -> tuple[list[int], list[int]]:
    """The slots that an instruction reads and those that it writes."""
    operands = list(instruction.operands)
    written: list[int] = []
    if operands and instruction.parts[0] not in _NO_TARGET:
        written = [r.slot for r in _registers(operands.pop(0))]
    read = [r.slot for operand in operands for r in _registers(operand)]
    if instruction.predicate is not None:
        read += [instruction.predicate.slot, *written]  # what a false predicate leaves alone is still wanted
    return read, written


def deaths(function: Function, blocks: Sequence[BasicBlock]) -> dict[int, tuple[int, ...]]:
    """For each instruction the registers that are used up by it: those that live and die in one block."""
    home: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, block in enumerate(blocks):
        for i in range(block.start, block.stop):
            read, written = uses(function.instructions[i])
            for slot in read:
                if home.setdefault(slot, -1) != number:
                    home[slot] = -1
                last[slot] = i
            for slot in written:
                if home.setdefault(slot, number) != number:
                    home[slot] = -1
                last[slot] = i
    found: dict[int, list[int]] = {}
    for slot, number in home.items():
        if number >= 0:
            found.setdefault(last[slot], []).append(slot)
    return {i: tuple(slots) for i, slots in found.items()}


# ----------------------------------------------------------------------------------------------------------------- bits
Masks = Mapping[int, int]
Demands = Iterator[tuple[Operand, int]]


def _ones(bits: int) -> int:
    return (1 << bits) - 1


def _of(masks: Masks, operand: Operand) -> int:
    """The bits of a target that count."""
    return masks.get(operand.slot, 0) if isinstance(operand, Register) else 0


def _moved(form: Form, operands: Sequence[Operand], masks: Masks) -> Demands:
    target, source = operands
    if isinstance(target, Vector):
        width = TYPE_BITS[form.type] // len(target.elements)
        yield source, sum((_of(masks, each) & _ones(width)) << i * width for i, each in enumerate(target.elements))
    elif isinstance(source, Vector):
        width = TYPE_BITS[form.type] // len(source.elements)
        for i, each in enumerate(source.elements):
            yield each, _of(masks, target) >> i * width & _ones(width)
    else:
        yield source, _of(masks, target)


def _shifted(form: Form, operands: Sequence[Operand], masks: Masks) -> Demands:
    target, source, amount = operands
    mask, bits = _of(masks, target), TYPE_BITS[form.type]
    if not isinstance(amount, Immediate):
        yield amount, -1
        yield source, -1 if mask else 0
    elif form.base == "shl":
        yield source, mask >> amount.value
    else:
        sign = 1 << bits - 1 if form.type[0] == "s" and mask else 0
        yield source, mask << amount.value & _ones(bits) | sign


def _bitwise(form: Form, operands: Sequence[Operand], masks: Masks) -> Demands:
    target, *sources = operands
    mask = _of(masks, target)
    for constant in sources:
        if isinstance(constant, Immediate) and form.base in ("and", "or"):
            mask &= constant.value if form.base == "and" else ~constant.value
    for source in sources:
        yield source, mask


def _converted(form: Form, operands: Sequence[Operand], masks: Masks) -> Demands:
    """Between integers: the low bits, and the sign that fills the high ones."""
    target, *sources = operands
    mask, bits = _of(masks, target), TYPE_BITS[form.type]
    if "sat" in form.flags or any(each[0] not in "us" for each in form.types):
        yield from ((each, -1) for each in sources)
        return
    (source,) = sources
    sign = 1 << bits - 1 if form.type[0] == "s" and mask >> bits else 0
    yield source, mask & _ones(bits) | sign


def _permuted(_form: Form, operands: Sequence[Operand], masks: Masks) -> Demands:
    """prmt: byte `i` of the result is one of eight, by four bits of the selector."""
    target, low, high, selector = operands
    mask = _of(masks, target)
    if not isinstance(selector, Immediate) or not isinstance(target, Register):
        yield from ((each, -1) for each in (low, high, selector))
        return
    wanted = 0
    for i in range(4):
        bits, choice = mask >> 8 * i & 0xFF, selector.value >> 4 * i & 15
        wanted |= (0x80 if choice & 8 and bits else bits) << 8 * (choice & 7)
    yield low, wanted & _ones(32)
    yield high, wanted >> 32


def _extracted(form: Form, operands: Sequence[Operand], masks: Masks) -> Demands:
    target, source, first, count = operands
    if form.type[0] == "u" and isinstance(first, Immediate) and isinstance(count, Immediate):
        yield source, (_of(masks, target) & _ones(count.value)) << first.value
    else:
        yield from ((each, -1) for each in (source, first, count))


def _stored(form: Form, operands: Sequence[Operand], _masks: Masks) -> Demands:
    yield operands[0], -1
    for value in operands[1:]:
        for each in value.elements if isinstance(value, Vector) else (value,):
            yield each, _ones(TYPE_BITS[form.type])


_RULES: Mapping[str, Callable[[Form, Sequence[Operand], Masks], Demands]] = {
    **dict.fromkeys(("and", "or", "xor", "not"), _bitwise),
    **dict.fromkeys(("shl", "shr"), _shifted),
    "bfe": _extracted,
    "cvt": _converted,
    "mov": _moved,
    "prmt": _permuted,
    "st": _stored,
}
"""Instructions of which some bits of the operands may not count; any other needs all that it reads."""


def demanded(function: Function) -> dict[int, int]:
    """For each register's slot the bits that some store, address, branch or arithmetic depends on."""
    masks: dict[int, int] = {}

    def need(operand: Operand, mask: int) -> bool:
        grown = False
        for register in _registers(operand) if mask else ():
            before = masks.get(register.slot, 0)
            after = before | mask & _ones(TYPE_BITS[register.type])
            masks[register.slot] = after
            grown |= after != before
        return grown

    passing: list[tuple[Instruction, Form]] = []
    for instruction in function.instructions:
        if instruction.predicate is not None:
            need(instruction.predicate, 1)
        rule = _RULES.get(instruction.parts[0])
        if rule is not None:
            passing.append((instruction, form_of(instruction.parts)))
            continue
        skipped = 0 if instruction.parts[0] in _NO_TARGET else 1
        read = [*instruction.operands[skipped:], *(each for row in instruction.arguments for each in row)]
        for operand in read:
            need(operand, -1)
    grows = True
    while grows:
        grows = False
        for instruction, form in reversed(passing):
            for operand, mask in _RULES[form.base](form, instruction.operands, masks):
                grows |= need(operand, mask)
    return masks


def exchanged(function: Function) -> frozenset[Address]:
    """Addresses of words that are compared and exchanged: the loop around that starts with a plain load from there."""
    return frozenset(
        operand
        for each in function.instructions
        if each.parts[0] == "atom" and "cas" in each.parts and "b32" in each.parts
        for operand in each.operands
        if isinstance(operand, Address)
    )


def parts_of(targets: Sequence[Operand], width: int, signed: bool, masks: Masks) -> tuple[tuple[int, int], ...]:
    """Of a load of items of `width` bytes the runs of bytes that count: (first byte, number of bytes)."""
    used: list[bool] = []
    for target in targets:
        mask = _of(masks, target)
        if signed and mask >> 8 * width:
            mask |= 1 << 8 * width - 1
        used += [bool(mask >> 8 * i & 0xFF) for i in range(width)]
    found: list[tuple[int, int]] = []
    for i, each in enumerate(used):
        if each and found and sum(found[-1]) == i:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        elif each:
            found.append((i, 1))
    return tuple(found)
