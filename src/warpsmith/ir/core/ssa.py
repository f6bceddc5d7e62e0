"""The SSA core: values, operations, blocks, regions, and the rows that say what an op is.

Slots and plain lists keep this light (a 2,000-op module builds in a few milliseconds).  The list of a block's ops is
doubly linked: insertion, erasure and moving cost O(1).  A value's users are a dict `op -> number of operand slots`.

An op's meaning lives in its row, an entry of a table in `ir/dialects/`, which parser, printer, verifier, folder,
simulator and LLVM emission all read.  These classes refer to one another, so they share a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Union

from warpsmith.errors import InternalError
from warpsmith.ir.core.attributes import Attribute, IntegerAttr, StringAttr, SymbolRefAttr
from warpsmith.ir.core.location import UNKNOWN, Location, fuse_locations
from warpsmith.ir.core.traits import Effect, Trait
from warpsmith.ir.core.types import Type

__all__ = [
    "REGISTRY",
    "SHORT_NAMES",
    "UNKNOWN",
    "Block",
    "BlockArgument",
    "Effect",
    "Fold",
    "Location",
    "OpResult",
    "OpRow",
    "Operation",
    "PrettyForm",
    "Region",
    "Trait",
    "Value",
    "fuse_locations",
    "register",
    "row",
]


# ------------------------------------------------------------------------------------------------------------- op rows
class PrettyForm(Protocol):
    """How an op is written and read after its name: a `Form` of `ir/text/format.py`, which types printer and parser."""

    @property
    def print(self) -> Callable[[Any, Operation], None]:
        """Writes what follows the name to a printer."""
        ...

    @property
    def parse(self) -> Callable[[Any, OpRow], Operation]:
        """Reads what follows the name from a parser."""
        ...

    @property
    def check(self) -> Callable[[Operation], str | None] | None:
        """Which type that the text leaves out isn't what the form makes of it, in words."""
        ...


Fold = Union["Value", Attribute]


@dataclass(frozen=True, slots=True)
class OpRow:
    """All that is known of an op, stated once.

    `operands`, `results`: names in order; a trailing `*` marks a variadic group, `?` an optional one (more than one
    such group in an op needs `operandSegmentSizes`).  `attributes`: required names; `optional`: others that the op
    knows.  `regions` is -1 where their number varies.  `effects`: (effect, operand name or None for memory at large).
    `verify(op)` raises InvalidIr where a rule is broken that neither the counts above, nor the traits, nor the types of
    the pretty form state.  `fold(op, constants)` gives one entry a result (a value or an attribute), or None.
    `numpy(op, *arrays)` gives the result array (or a tuple of them) for arrays of any shape; folder and simulator share
    it.  `llvm` names the op of the `llvm` dialect that it becomes one to one.  `form` is the pretty text; None means
    that only the generic form exists.  `short` is a name without dialect that the parser takes for the op's, and that
    the printer writes if `prints_short`.  `implied(op)` are attributes that the generic text must have for MLIR's sake,
    and ops here don't hold.
    """

    name: str
    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ("result",)
    attributes: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    regions: int = 0
    successors: int = 0
    traits: int = Trait.NONE
    effects: tuple[tuple[Effect, str | None], ...] = ()
    verify: Callable[[Operation], None] | None = None
    fold: Callable[[Operation, Sequence[Attribute | None]], Sequence[Fold] | None] | None = None
    numpy: Callable[..., Any] | None = None
    llvm: str | None = None
    form: PrettyForm | None = None
    short: str = ""
    prints_short: bool = False
    implied: Callable[[Operation], dict[str, Attribute]] | None = None
    result_hint: str = ""
    dialect: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dialect", self.name.partition(".")[0])

    def has(self, trait: int) -> bool:
        """Whether the op has a trait."""
        return bool(self.traits & trait)


REGISTRY: dict[str, OpRow] = {}
SHORT_NAMES: dict[str, str] = {}
"""Full names by short ones."""


def register(rows: Iterable[OpRow]) -> None:
    """Add rows to the registry; a name twice is a bug."""
    for new in rows:
        if new.name in REGISTRY:
            raise InternalError(f"op {new.name} registered twice")
        REGISTRY[new.name] = new
        if new.short:
            SHORT_NAMES[new.short] = new.name


def row(name: str) -> OpRow:
    """The row of op `name`; an unregistered one gets a row of unknown effects (for text from other tools)."""
    found = REGISTRY.get(name)
    return found if found is not None else OpRow(name, effects=((Effect.UNKNOWN, None),))


# -------------------------------------------------------------------------------------------------------------- values
class Value:
    """An SSA value.  `users` maps each op that uses it to the number of its operand slots that do."""

    __slots__ = ("name", "type", "users")

    def __init__(self, type: Type, name: str = "") -> None:
        self.type = type
        self.name = name
        self.users: dict[Operation, int] = {}

    def replace_by(self, new: Value) -> None:
        """Make every user use `new` instead."""
        if new is self:
            return
        for user in list(self.users):
            user.replace_uses(self, new)
        if self.name and not new.name:
            new.name = self.name

    @property
    def has_one_use(self) -> bool:
        """Whether one operand, of all ops, is this value."""
        return len(self.users) == 1 and next(iter(self.users.values())) == 1

    @property
    def defining_op(self) -> Operation | None:
        """The op whose result this is; None for a block argument."""
        return None

    @property
    def parent_block(self) -> Block | None:
        """The block that the value is defined in."""
        raise InternalError("a bare value has no block")


class OpResult(Value):
    """Result `index` of `op`."""

    __slots__ = ("index", "op")

    def __init__(self, type: Type, op: Operation, index: int, name: str = "") -> None:
        self.type = type
        self.name = name
        self.users = {}
        self.op = op
        self.index = index

    @property
    def defining_op(self) -> Operation | None:
        """The op whose result it is."""
        return self.op

    @property
    def parent_block(self) -> Block | None:
        """The block of that op; None while it's in none."""
        return self.op.block


class BlockArgument(Value):
    """Argument `index` of `block`."""

    __slots__ = ("block", "index")

    def __init__(self, type: Type, block: Block, index: int, name: str = "") -> None:
        super().__init__(type, name)
        self.block = block
        self.index = index

    @property
    def parent_block(self) -> Block | None:
        """The block whose argument it is."""
        return self.block


# ---------------------------------------------------------------------------------------------------------- operations
class Operation:
    """One op.  Make it with `Builder.create`; change operands only through its methods, so that users stay right."""

    __slots__ = (
        "attributes",
        "block",
        "location",
        "next",
        "operands",
        "prev",
        "regions",
        "results",
        "row",
        "successors",
    )

    def __init__(
        self,
        row: OpRow,
        operands: Sequence[Value] = (),
        result_types: Sequence[Type] = (),
        attributes: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
        successors: Sequence[Block] = (),
        location: Location = UNKNOWN,
    ) -> None:
        self.row = row
        self.operands: list[Value] = list(operands)
        for value in self.operands:
            value.users[self] = value.users.get(self, 0) + 1
        self.results: list[OpResult] = [OpResult(type, self, i, row.result_hint) for i, type in enumerate(result_types)]
        self.attributes: dict[str, Attribute] = dict(attributes) if attributes else {}
        self.regions: list[Region] = list(regions)
        for region in self.regions:
            region.parent = self
        self.successors: list[Block] = list(successors)
        self.block: Block | None = None
        self.prev: Operation | None = None
        self.next: Operation | None = None
        self.location = location

    # -- what it is
    @property
    def name(self) -> str:
        """The op's full name, such as `arith.addi`."""
        return self.row.name

    @property
    def result(self) -> OpResult:
        """The only result."""
        if len(self.results) != 1:
            raise InternalError(f"{self.row.name} has {len(self.results)} results, not one")
        return self.results[0]

    @property
    def is_unused(self) -> bool:
        """Whether no result has a user."""
        results = self.results
        if len(results) == 1:  # nearly always, and a generator would take three times as long
            return not results[0].users
        return all(not result.users for result in results)

    @property
    def parent(self) -> Operation | None:
        """The op whose region holds this one."""
        block = self.block
        return block.region.parent if block is not None and block.region is not None else None

    @property
    def body(self) -> Block:
        """The first block of the first region."""
        return self.regions[0].blocks[0]

    def int_attr(self, name: str) -> int:
        """The value of an integer attribute."""
        found = self.attributes[name]
        if not isinstance(found, IntegerAttr):
            raise InternalError(f"attribute {name} of {self.row.name} is no integer")
        return found.value

    def str_attr(self, name: str) -> str:
        """The text of a string or symbol attribute."""
        found = self.attributes[name]
        if isinstance(found, StringAttr):
            return found.value
        if isinstance(found, SymbolRefAttr):
            return found.name
        raise InternalError(f"attribute {name} of {self.row.name} is no string")

    # -- operands
    def set_operand(self, index: int, value: Value) -> None:
        """Replace one operand."""
        old = self.operands[index]
        if old is value:
            return
        self._drop_use(old)
        self.operands[index] = value
        value.users[self] = value.users.get(self, 0) + 1

    def set_operands(self, values: Sequence[Value]) -> None:
        """Replace all operands; there may be more or fewer than before."""
        for old in self.operands:
            self._drop_use(old)
        self.operands = list(values)
        for value in self.operands:
            value.users[self] = value.users.get(self, 0) + 1

    def replace_uses(self, old: Value, new: Value) -> None:
        """Use `new` wherever this op uses `old`."""
        count = old.users.pop(self, 0)
        if count:
            self.operands = [new if v is old else v for v in self.operands]
            new.users[self] = new.users.get(self, 0) + count

    def _drop_use(self, value: Value) -> None:
        left = value.users[self] - 1
        if left:
            value.users[self] = left
        else:
            del value.users[self]

    # -- place
    def unlink(self) -> None:
        """Take the op out of its block, keeping its operands."""
        block = self.block
        if block is None:
            return
        if self.prev is not None:
            self.prev.next = self.next
        else:
            block.first = self.next
        if self.next is not None:
            self.next.prev = self.prev
        else:
            block.last = self.prev
        self.block = self.prev = self.next = None

    def move_before(self, other: Operation) -> None:
        """Take the op from where it is, and put it in front of another."""
        self.unlink()
        _block_of(other).insert_before(other, self)

    def erase(self) -> None:
        """Remove the op and all in its regions; its results must have no users left."""
        for result in self.results:
            if result.users:
                raise InternalError(
                    f"erasing {self.row.name} whose result is still used by {next(iter(result.users)).name}"
                )
        self.drop_references()
        self.unlink()

    def drop_references(self) -> None:
        """Forget all operands, here and in the regions (before erasing a whole subtree)."""
        for value in self.operands:
            value.users.pop(self, None)
        self.operands = []
        for region in self.regions:
            for block in region.blocks:
                for op in block:
                    op.drop_references()

    def replace_by(self, values: Sequence[Value]) -> None:
        """Replace the results by `values` and erase the op."""
        for result, value in zip(self.results, values, strict=True):
            result.replace_by(value)
        self.erase()

    # -- walks
    def walk(self) -> Iterator[Operation]:
        """This op, then all ops in its regions, in text order.  The op just given may be erased or moved."""
        yield self
        if self.regions:
            yield from _walk(self.regions)

    def walk_post(self) -> Iterator[Operation]:
        """All ops in the regions, inner ones first, then this op.  The op just given may be erased."""
        if self.regions:
            yield from _walk_post(self.regions)
        yield self

    def clone(self, mapping: dict[Value, Value] | None = None) -> Operation:
        """A copy, unlinked; operands and nested uses are mapped through `mapping`, which gains the new values."""
        mapping = {} if mapping is None else mapping
        copy = Operation(
            self.row,
            [mapping.get(v, v) for v in self.operands],
            [r.type for r in self.results],
            self.attributes,
            (),
            self.successors,
            self.location,
        )
        for old, new in zip(self.results, copy.results, strict=True):
            new.name = old.name
            mapping[old] = new
        for region in self.regions:
            copied = region.clone(mapping)
            copied.parent = copy
            copy.regions.append(copied)
        return copy

    def is_ancestor_of(self, other: Operation) -> bool:
        """Whether `other` is this op or lies in its regions."""
        op: Operation | None = other
        while op is not None:
            if op is self:
                return True
            op = op.parent
        return False

    def __str__(self) -> str:
        from warpsmith.ir.text.printer import print_op  # the printer needs the core; text is asked for rarely

        return print_op(self)

    def __repr__(self) -> str:
        return f"<{self.row.name} at {id(self):#x}>"


# Most ops have no regions, so these don't make a generator for each op.
def _walk(regions: Sequence[Region]) -> Iterator[Operation]:
    for region in regions:
        for block in region.blocks:
            op = block.first
            while op is not None:
                following = op.next
                yield op
                if op.regions:
                    yield from _walk(op.regions)
                op = following


def _walk_post(regions: Sequence[Region]) -> Iterator[Operation]:
    for region in regions:
        for block in region.blocks:
            op = block.first
            while op is not None:
                following = op.next
                if op.regions:
                    yield from _walk_post(op.regions)
                yield op
                op = following


def _block_of(op: Operation) -> Block:
    if op.block is None:
        raise InternalError(f"{op.name} is in no block")
    return op.block


class Block:
    """A straight run of ops, with arguments.  `arg_attributes` are on functions, not here."""

    __slots__ = ("args", "first", "last", "region")

    def __init__(self, arg_types: Sequence[Type] = (), arg_names: Sequence[str] = ()) -> None:
        names = list(arg_names) + [""] * (len(arg_types) - len(arg_names))
        self.args: list[BlockArgument] = [BlockArgument(t, self, i, names[i]) for i, t in enumerate(arg_types)]
        self.first: Operation | None = None
        self.last: Operation | None = None
        self.region: Region | None = None

    def __iter__(self) -> Iterator[Operation]:
        """The ops in order; the op just given may be erased or moved."""
        op = self.first
        while op is not None:
            following = op.next
            yield op
            op = following

    def __reversed__(self) -> Iterator[Operation]:
        op = self.last
        while op is not None:
            preceding = op.prev
            yield op
            op = preceding

    @property
    def parent_op(self) -> Operation | None:
        """The op whose region the block is in; None while it's in none."""
        return self.region.parent if self.region is not None else None

    @property
    def terminator(self) -> Operation:
        """The last op; InternalError for an empty block."""
        if self.last is None:
            raise InternalError("a block without a terminator")
        return self.last

    def append(self, op: Operation) -> Operation:
        """Put an op at the end; returns it."""
        op.block = self
        op.prev = self.last
        op.next = None
        if self.last is None:
            self.first = op
        else:
            self.last.next = op
        self.last = op
        return op

    def insert_before(self, anchor: Operation, op: Operation) -> Operation:
        """Put an op in front of another one of the block; returns it."""
        op.block = self
        op.prev, op.next = anchor.prev, anchor
        if anchor.prev is None:
            self.first = op
        else:
            anchor.prev.next = op
        anchor.prev = op
        return op

    def insert_after(self, anchor: Operation, op: Operation) -> Operation:
        """Put an op behind another one of the block; returns it."""
        if anchor.next is None:
            return self.append(op)
        return self.insert_before(anchor.next, op)

    def prepend(self, op: Operation) -> Operation:
        """Put an op in front of all; returns it."""
        return self.append(op) if self.first is None else self.insert_before(self.first, op)

    def add_arg(self, type: Type, name: str = "") -> BlockArgument:
        """One more argument."""
        arg = BlockArgument(type, self, len(self.args), name)
        self.args.append(arg)
        return arg

    def erase_arg(self, index: int) -> None:
        """Remove an argument that nobody uses."""
        if self.args[index].users:
            raise InternalError("erasing a block argument that is still used")
        del self.args[index]
        for i in range(index, len(self.args)):
            self.args[i].index = i


class Region:
    """A list of blocks that belongs to an op."""

    __slots__ = ("blocks", "parent")

    def __init__(self, blocks: Sequence[Block] = ()) -> None:
        self.blocks: list[Block] = []
        self.parent: Operation | None = None
        for block in blocks:
            self.add(block)

    def add(self, block: Block) -> Block:
        """Put a block at the end; returns it."""
        block.region = self
        self.blocks.append(block)
        return block

    def clone(self, mapping: dict[Value, Value]) -> Region:
        """A copy of all blocks, with values mapped; branches go to the copied blocks."""
        copies: dict[Block, Block] = {}
        result = Region()
        for block in self.blocks:
            copy = result.add(Block([a.type for a in block.args], [a.name for a in block.args]))
            copies[block] = copy
            mapping.update(zip(block.args, copy.args, strict=True))
        for block in self.blocks:
            for op in block:
                new = copies[block].append(op.clone(mapping))
                new.successors = [copies.get(s, s) for s in new.successors]
        if len(self.blocks) > 1:  # a use may come before its definition in text order
            for copy in result.blocks:
                for op in copy:
                    for i, value in enumerate(op.operands):
                        if value in mapping:
                            op.set_operand(i, mapping[value])
        return result
