"""The HLO object model: instructions, computations, modules.

In: parts, from the parser or `builder`.  Out: immutable objects.  Instructions and computations compare by identity;
modules compare by structure: two are equal when every field of every instruction agrees, in order.  No traversal here
recurses over operands, so a chain may be as long as memory allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar, cast

from warpsmith.errors import BadAttribute, InvalidHlo, Span, UnknownName, did_you_mean
from warpsmith.hlo.attributes import OpMetadata
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.shapes import AnyShape, Shape, TupleShape

if TYPE_CHECKING:
    from warpsmith.hlo.text.lexer import Source
    from warpsmith.hlo.text.style import PrintStyle

__all__ = ["NO_ATTRIBUTES", "HloComputation", "HloInstruction", "HloModule", "Origin"]

T = TypeVar("T")

NO_ATTRIBUTES: Mapping[str, object] = MappingProxyType({})


def _no_attributes() -> Mapping[str, object]:
    return NO_ATTRIBUTES


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an object was written: offsets into a source text, turned into a `Span` only when one is asked for."""

    source: Source
    start: int
    length: int

    @property
    def span(self) -> Span:
        """The place in the source text."""
        return self.source.span(self.start, self.length)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HloInstruction:
    """One operation: `name = shape opcode(operands), attributes`.

    `opcode` is XLA's spelling (`get-tuple-element`).  `attributes` holds everything after the operands, typed
    (`dimensions`: tuple[int, ...], `to_apply`: HloComputation, `window`: Window...).  `literal` is a constant's
    value, `parameter_number` a parameter's.
    """

    name: str
    opcode: str
    shape: AnyShape
    operands: tuple[HloInstruction, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=_no_attributes)
    literal: Literal | None = None
    parameter_number: int | None = None
    origin: Origin | None = None

    @property
    def span(self) -> Span | None:
        """Where the instruction was written, or None for one that code made."""
        return self.origin.span if self.origin is not None else None

    @property
    def array_shape(self) -> Shape:
        """The shape of a result that isn't a tuple; InvalidHlo when it is one."""
        if isinstance(self.shape, TupleShape):
            raise InvalidHlo(f"'{self.name}' is a tuple where an array is expected", span=self.span)
        return self.shape

    @property
    def metadata(self) -> OpMetadata | None:
        """Where the instruction comes from, if the module says so."""
        found = self.attributes.get("metadata")
        return found if isinstance(found, OpMetadata) else None

    def attr(self, name: str, kind: type[T]) -> T:
        """The attribute `name` as a `kind`; BadAttribute when it is missing or something else."""
        value = self.attributes.get(name)
        if not isinstance(value, kind):
            what = "is missing" if value is None else f"isn't a {kind.__name__}"
            raise BadAttribute(f"attribute '{name}' of {self.opcode} '{self.name}' {what}", span=self.span)
        return value

    def ints(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """The attribute `name` as integers (`dimensions={0,2}`), or `default` when it is missing and one is given."""
        if default is not None and name not in self.attributes:
            return default
        value = cast("tuple[object, ...]", self.attr(name, tuple))
        if not all(isinstance(item, int) for item in value):
            raise BadAttribute(f"attribute '{name}' of {self.opcode} '{self.name}' isn't integers", span=self.span)
        return cast("tuple[int, ...]", value)

    @property
    def called_computations(self) -> tuple[HloComputation, ...]:
        """Computations that attributes name, in attribute order."""
        found: list[HloComputation] = []
        for value in self.attributes.values():
            if isinstance(value, HloComputation):
                found.append(value)
            elif isinstance(value, tuple):
                found.extend(item for item in cast("tuple[object, ...]", value) if isinstance(item, HloComputation))
        return tuple(found)

    def __repr__(self) -> str:
        return f"<{self.name} = {self.shape} {self.opcode}({', '.join(op.name for op in self.operands)})>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HloComputation:
    """Instructions in an order where operands come first, one of which is the root (the result).

    InvalidHlo when the parameters aren't numbered 0..n-1, the root isn't among the instructions, or an operand
    isn't defined before its use.
    """

    name: str
    instructions: tuple[HloInstruction, ...]
    root: HloInstruction
    attributes: Mapping[str, object] = field(default_factory=_no_attributes)
    origin: Origin | None = None
    parameters: tuple[HloInstruction, ...] = field(init=False, default=())
    _users: dict[HloInstruction, tuple[HloInstruction, ...]] = field(
        init=False, default_factory=dict[HloInstruction, tuple[HloInstruction, ...]]
    )
    _by_name: dict[str, HloInstruction] = field(init=False, default_factory=dict[str, HloInstruction])

    def __post_init__(self) -> None:
        seen: set[HloInstruction] = set()
        for instruction in self.instructions:
            for operand in instruction.operands:
                if operand not in seen:
                    raise InvalidHlo(
                        f"'{instruction.name}' uses '{operand.name}', which '{self.name}' doesn't define before it",
                        span=instruction.span,
                    )
            seen.add(instruction)
        if self.root not in seen:
            raise InvalidHlo(f"the root '{self.root.name}' isn't an instruction of '{self.name}'")
        object.__setattr__(self, "parameters", _numbered_parameters(self))

    @property
    def span(self) -> Span | None:
        """Its place in the source text; None for one that was built."""
        return self.origin.span if self.origin is not None else None

    def is_root(self, instruction: HloInstruction) -> bool:
        """Whether an instruction is the computation's result."""
        return instruction is self.root

    def instruction(self, name: str) -> HloInstruction:
        """The instruction called `name` (with or without `%`); UnknownName with the nearest one otherwise."""
        if not self._by_name:
            self._by_name.update((instruction.name, instruction) for instruction in self.instructions)
        found = self._by_name.get(name.removeprefix("%"))
        if found is None:
            raise UnknownName(
                f"computation '{self.name}' has no instruction '{name}'", help=did_you_mean(name, self._by_name)
            )
        return found

    def users(self, instruction: HloInstruction) -> tuple[HloInstruction, ...]:
        """Instructions that take `instruction` as an operand, each once, in order."""
        if not self._users:
            lists: dict[HloInstruction, dict[HloInstruction, None]] = {each: {} for each in self.instructions}
            for user in self.instructions:
                for operand in user.operands:
                    lists[operand][user] = None
            self._users.update((each, tuple(found)) for each, found in lists.items())
        return self._users.get(instruction, ())

    def __iter__(self) -> Iterator[HloInstruction]:
        return iter(self.instructions)

    def __len__(self) -> int:
        return len(self.instructions)

    def __repr__(self) -> str:
        return f"<computation {self.name}: {len(self.instructions)} instructions>"


def _numbered_parameters(computation: HloComputation) -> tuple[HloInstruction, ...]:
    """The parameters by number; InvalidHlo when a number is missing or taken twice."""
    by_number: dict[int, HloInstruction] = {}
    for instruction in computation.instructions:
        if instruction.opcode != "parameter":
            continue
        number = instruction.parameter_number
        if number is None:
            raise InvalidHlo(f"parameter '{instruction.name}' has no number", span=instruction.span)
        if number in by_number:
            raise InvalidHlo(
                f"'{computation.name}' has two parameters with number {number}: "
                f"'{by_number[number].name}' and '{instruction.name}'",
                span=instruction.span,
                help="parameters are numbered 0, 1, 2, ... without repeats",
            )
        by_number[number] = instruction
    for number in range(len(by_number)):
        if number not in by_number:
            raise InvalidHlo(
                f"'{computation.name}' has {len(by_number)} parameters but none with number {number}",
                span=computation.span,
                help="parameters are numbered 0, 1, 2, ... without gaps",
            )
    return tuple(by_number[number] for number in range(len(by_number)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HloModule:
    """Computations in text order, one of which is the entry; `attributes` are the header's fields, typed.

    `style` is how the text that the module came from was printed; it isn't part of equality.
    """

    name: str
    computations: tuple[HloComputation, ...]
    entry: HloComputation
    attributes: Mapping[str, object] = field(default_factory=_no_attributes)
    style: PrintStyle | None = None
    _by_name: dict[str, HloComputation] = field(init=False, default_factory=dict[str, HloComputation])

    def __post_init__(self) -> None:
        if self.entry not in self.computations:
            raise InvalidHlo(f"the entry '{self.entry.name}' isn't a computation of module '{self.name}'")

    def computation(self, name: str) -> HloComputation:
        """The computation called `name` (with or without `%`); UnknownName with the nearest one otherwise."""
        if not self._by_name:
            self._by_name.update((computation.name, computation) for computation in self.computations)
        bare = name.removeprefix("%")
        found = self._by_name.get(bare)
        if found is None:
            raise UnknownName(
                f"module '{self.name}' has no computation '{name}'", help=did_you_mean(bare, self._by_name)
            )
        return found

    def instructions(self) -> Iterator[HloInstruction]:
        """Every instruction of every computation, in text order."""
        for computation in self.computations:
            yield from computation.instructions

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HloModule):
            return NotImplemented
        return (
            self.name == other.name
            and self.entry.name == other.entry.name
            and dict(self.attributes) == dict(other.attributes)
            and len(self.computations) == len(other.computations)
            and all(map(same_computation, self.computations, other.computations))
        )

    def __hash__(self) -> int:
        return hash((self.name, self.entry.name, len(self.computations)))

    def __str__(self) -> str:
        from warpsmith.hlo.text.printer import print_module  # the printer reads this module

        return print_module(self)

    def __repr__(self) -> str:
        return f"<module {self.name}: {len(self.computations)} computations, entry {self.entry.name}>"


def _by_reference(value: object) -> object:
    """An attribute value with instructions and computations replaced by their names, for comparison."""
    if isinstance(value, HloComputation):
        return ("computation", value.name)
    if isinstance(value, HloInstruction):
        return ("instruction", value.name)
    if isinstance(value, tuple):
        return tuple(_by_reference(item) for item in cast("tuple[object, ...]", value))
    return value


def _same_attributes(a: Mapping[str, object], b: Mapping[str, object]) -> bool:
    return a.keys() == b.keys() and all(_by_reference(value) == _by_reference(b[key]) for key, value in a.items())


def _same_instruction(a: HloInstruction, b: HloInstruction) -> bool:
    return (
        a.name == b.name
        and a.opcode == b.opcode
        and a.shape == b.shape
        and a.parameter_number == b.parameter_number
        and len(a.operands) == len(b.operands)
        and all(x.name == y.name for x, y in zip(a.operands, b.operands, strict=True))
        and a.literal == b.literal
        and _same_attributes(a.attributes, b.attributes)
    )


def same_computation(a: HloComputation, b: HloComputation) -> bool:
    """Whether two computations agree in every field, instruction by instruction."""
    return (
        a.name == b.name
        and a.root.name == b.root.name
        and len(a.instructions) == len(b.instructions)
        and _same_attributes(a.attributes, b.attributes)
        and all(map(_same_instruction, a.instructions, b.instructions))
    )


def frozen(attributes: Mapping[str, object] | Iterable[tuple[str, object]]) -> Mapping[str, object]:
    """A read-only copy of `attributes` that keeps their order."""
    copied = dict(attributes)
    return MappingProxyType(copied) if copied else NO_ATTRIBUTES
