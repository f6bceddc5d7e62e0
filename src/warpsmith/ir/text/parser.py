"""MLIR text to IR: pretty and generic form, mixed as they come.

In: text.  Out: a `builtin.module`.  Errors: IrSyntaxError with file, line, column, cause and help.  What the text means
is `verifier.py`'s business; the parser holds that each value has the type it is used with, that names are defined once,
and that all names and blocks used are defined.  Ops without `loc(...)` get the place of their text as location.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from warpsmith.errors import did_you_mean
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.ssa import REGISTRY, SHORT_NAMES, Block, Location, Operation, OpRow, Region, Trait, Value, row
from warpsmith.ir.core.types import Type
from warpsmith.ir.text.attribute_parser import AttributeParser
from warpsmith.ir.text.lexer import END, split_input

__all__ = ["Parser", "parse_module", "parse_modules"]

_NAME_HINT = re.compile(r"%[A-Za-z_$.-][^#]*")


def parse_module(text: str, file: str = "<string>", allow_unregistered: bool = False) -> Operation:
    """The module that `text` spells; ops at the top level are put into one.

    `allow_unregistered` lets ops in that no dialect here has (in generic form only).
    """
    return _parse(text, file, allow_unregistered, 0)


def parse_modules(text: str, file: str = "<string>", allow_unregistered: bool = False) -> list[Operation]:
    """The modules of a file whose parts are separated by `// -----` lines."""
    return [_parse(part, file, allow_unregistered, line) for part, line in split_input(text)]


def _parse(text: str, file: str, allow_unregistered: bool, line_offset: int) -> Operation:
    return Parser(text, file, allow_unregistered, line_offset).module()


@dataclass(slots=True)
class _Scope:
    """The names of one isolated region."""

    values: dict[str, Value] = field(default_factory=dict[str, Value])
    places: dict[str, int] = field(default_factory=dict[str, int])  # the token of each definition
    forward: dict[str, tuple[Value, int]] = field(default_factory=dict[str, tuple[Value, int]])
    log: list[str] = field(default_factory=list[str])


class Parser(AttributeParser):
    """The op parser.  The forms of op rows read through it."""

    __slots__ = ("_allow_unregistered", "_blocks", "_pending", "_scope", "_values")

    def __init__(self, text: str, file: str, allow_unregistered: bool, line_offset: int = 0) -> None:
        super().__init__(text, file, line_offset)
        self._allow_unregistered = allow_unregistered
        self._scope = _Scope()
        self._values = self._scope.values
        self._blocks: dict[str, Block] = {}
        self._pending: dict[str, int] = {}  # blocks used and not yet defined: the token of the first use

    # -- the whole text
    def module(self) -> Operation:
        """All ops of the text, in a `builtin.module` unless it is one itself.  IrSyntaxError for what isn't IR."""
        block = Block()
        tokens = self.tokens
        while (token := tokens[self.i]) != END:
            if token == "{-#":
                raise self.error("a resource section", help="constants are written out: dense<...>")
            if token[0] in "#!" and tokens[self.i + 1] == "=":
                self._skip_alias()
            else:
                block.append(self.operation())
        self._close_scope(self._scope)
        only = block.first
        if only is not None and only is block.last and only.name == "builtin.module":
            only.unlink()
            return only
        return Operation(row("builtin.module"), regions=(Region((block,)),), location=Location((), self.file, 1, 1))

    def _skip_alias(self) -> None:
        token = self.tokens[self.i]
        self.i += 2
        if token[0] == "!":
            self._resolved[token] = self.type()
        elif self.tokens[self.i] == "loc":
            self._resolved[token] = self.location()
        else:
            self._resolved[token] = self.attribute()

    # -- ops
    def operation(self) -> Operation:
        """One op, unlinked; its results are defined."""
        start = self.i
        token = self.tokens[start]
        names: list[tuple[str, int, int]] | None = None
        if token[:1] == "%":
            names = self._result_names()
            token = self.tokens[self.i]
        name_index = self.i
        if token[:1] == '"':
            op = self._generic()
        else:
            op = self._pretty(token)
        op.location = self.location() if self.tokens[self.i] == "loc" else Location((), self.file, *self.place(start))
        if names is not None:
            self._define_results(op, names, name_index)
        return op

    def _result_names(self) -> list[tuple[str, int, int]]:
        """`%a, %b:2 =`: each name, how many results it stands for, its token."""
        names: list[tuple[str, int, int]] = []
        while True:
            index = self.i
            name = self.tokens[index]
            if name[:1] != "%" or len(name) < 2 or "#" in name:
                raise self.error(f"expected the name of a result, found {self.shown()}")
            self.i += 1
            count = 1
            if self.accept(":"):
                count = self.integer("the number of results")
                if not 1 <= count < 1 << 16:
                    raise self.error(f"{count} results", self.i - 1)
            names.append((name, count, index))
            if not self.accept(","):
                break
        self.expect("=", "after the names of results")
        return names

    def _define_results(self, op: Operation, names: Sequence[tuple[str, int, int]], index: int) -> None:
        results = op.results
        total = sum(count for _, count, _ in names)
        if total != len(results):
            raise self.error(f"{op.name} has {len(results)} result(s), but {total} are named", index)
        at = 0
        for name, count, place in names:
            hint = name[1:] if _NAME_HINT.fullmatch(name) else ""
            if count == 1:
                results[at].name = hint
                self._define(name, results[at], place)
            else:
                for i in range(count):
                    results[at + i].name = hint if i == 0 else ""
                    self._define(f"{name}#{i}", results[at + i], place)
                self._define(name, results[at], place)
            at += count

    def _row(self, name: str, index: int) -> OpRow:
        found = REGISTRY.get(name)
        if found is None and name.startswith("xla."):  # today's spelling of the same ops
            found = REGISTRY.get(f"xla_gpu.{name[4:]}")
        if found is not None:
            return found
        if self._allow_unregistered and "." in name:
            return row(name)
        raise self.error(f"unknown op '{name}'", index, did_you_mean(name, REGISTRY))

    def _pretty(self, token: str) -> Operation:
        index = self.i
        name = SHORT_NAMES.get(token, token)
        if not (name[:1].isalpha() or name[:1] == "_"):
            raise self.error(f"expected an op, found {self.shown()}")
        found = self._row(name, index)
        if found.form is None:
            what = "has no pretty form" if found.name in REGISTRY else "is an op that no dialect here has"
            raise self.error(
                f"'{name}' {what}", index, f'only its generic form can be read: "{name}"(...) : (...) -> ...'
            )
        self.i += 1
        return found.form.parse(self, found)

    def _generic(self) -> Operation:
        index = self.i
        op_row = self._row(self.string("an op's name"), index)
        self.expect("(", "and the operands")
        refs = self.comma_separated(")", self.operand)
        successors: list[Block] = self.comma_separated("]", self.successor) if self.accept("[") else []
        attributes: dict[str, Attribute] = {}
        if self.accept("<"):
            attributes = self.attribute_dict()
            self.expect(">", "after the properties")
        regions: list[Region] = []
        if self.accept("("):
            isolated = op_row.has(Trait.ISOLATED)
            regions = self.comma_separated(")", lambda: self.region(isolated=isolated))
        for name, value in self.optional_dict().items():
            if name in attributes:
                raise self.error(f"attribute '{name}' is given twice", index)
            attributes[name] = value
        self.expect(":", "and the op's type")
        type_index = self.i
        type = self.function_type()
        if len(type.inputs) != len(refs):
            raise self.error(f"{len(refs)} operands, but {len(type.inputs)} operand types", type_index)
        operands = [self.resolve(r, t) for r, t in zip(refs, type.inputs, strict=True)]
        op = Operation(op_row, operands, type.results, attributes, regions, successors)
        for name in op_row.implied(op) if op_row.implied is not None else ():
            op.attributes.pop(name, None)
        return op

    # -- values
    def operand(self) -> int:
        """A use of a value: its token, to be resolved when its type is known."""
        index = self.i
        token = self.tokens[index]
        if token[:1] != "%" or len(token) < 2:
            raise self.error(f"expected a value such as %x, found {self.shown()}")
        self.i += 1
        return index

    def operand_list(self) -> list[int]:
        """Uses separated by commas; maybe none."""
        found: list[int] = []
        if self.tokens[self.i][:1] != "%":
            return found
        while True:
            found.append(self.operand())
            if not self.accept(","):
                return found

    def resolve(self, index: int, type: Type) -> Value:
        """The value of the use at token `index`, which must have `type`; one not defined yet stands in."""
        token = self.tokens[index]
        value = self._values.get(token)
        if value is None:
            waiting = self._scope.forward.get(token)
            if waiting is None:
                value = Value(type)
                self._scope.forward[token] = (value, index)
                return value
            value = waiting[0]
        if value.type is not type:
            raise self.error(f"'{token}' is of type {value.type}, but is used as {type}", index)
        return value

    def type_of(self, index: int) -> Type | None:
        """The type of the use at token `index`, if it is known already."""
        value = self._values.get(self.tokens[index])
        return value.type if value is not None else None

    def resolve_all(self, indices: Sequence[int], types: Sequence[Type], what: str = "operands") -> list[Value]:
        """The values of operands, one of each type; IrSyntaxError if they aren't as many."""
        if len(indices) != len(types):
            raise self.error(f"{len(indices)} {what}, but {len(types)} types", self.i - 1)
        return [self.resolve(i, t) for i, t in zip(indices, types, strict=True)]

    def _define(self, name: str, value: Value, index: int) -> None:
        scope = self._scope
        if name in scope.values:
            line, _ = self.place(scope.places[name])
            raise self.error(f"'{name}' is defined twice", index, f"the first definition is on line {line}")
        if scope.forward:
            waiting = scope.forward.pop(name, None)
            if waiting is not None:
                stand_in, use = waiting
                if stand_in.type is not value.type:
                    raise self.error(f"'{name}' is of type {value.type}, but is used as {stand_in.type}", use)
                stand_in.replace_by(value)
        scope.values[name] = value
        scope.places[name] = index
        scope.log.append(name)

    def _close_scope(self, scope: _Scope) -> None:
        for name, (_, index) in scope.forward.items():
            raise self.error(f"'{name}' is used, but not defined", index, did_you_mean(name, scope.values))

    # -- regions and blocks
    def region(
        self,
        arguments: Sequence[tuple[int, Type]] = (),
        *,
        isolated: bool = False,
        implicit: str = "",
        block: bool = False,
    ) -> Region:
        """A region in braces.

        `arguments`: the entry block's, declared by the op's form (token and type each).  `implicit`: the op that ends a
        block which lacks a terminator.  `block`: make the entry block even when the braces hold nothing.
        """
        self.enter()
        outer_scope, outer_blocks, outer_pending = self._scope, self._blocks, self._pending
        self._blocks, self._pending = {}, {}
        if isolated:
            self._scope = _Scope()
            self._values = self._scope.values
        mark = len(self._scope.log)
        region = Region()
        self.expect("{", "of a region")
        declared = bool(arguments) or block or bool(implicit)
        if declared or (self.tokens[self.i] != "}" and self.tokens[self.i][:1] != "^"):
            entry = region.add(Block())
            self._declare(entry, arguments)
            self._block_body(entry, implicit)
        while not self.accept("}"):
            self._labelled_block(region, implicit)
        for name, index in self._pending.items():
            raise self.error(f"block '{name}' is used, but not defined", index, did_you_mean(name, self._blocks))
        if isolated:
            self._close_scope(self._scope)
        else:
            log, values = self._scope.log, self._scope.values
            for name in log[mark:]:
                del values[name]
            del log[mark:]
        self._scope, self._blocks, self._pending = outer_scope, outer_blocks, outer_pending
        self._values = outer_scope.values
        self.leave()
        return region

    def _declare(self, block: Block, arguments: Sequence[tuple[int, Type]]) -> None:
        for index, type in arguments:
            name = self.tokens[index]
            self._define(name, block.add_arg(type, name[1:] if _NAME_HINT.fullmatch(name) else ""), index)

    def _block_body(self, block: Block, implicit: str) -> None:
        tokens = self.tokens
        while (token := tokens[self.i]) != "}" and token[:1] != "^":
            if token == END:
                raise self.error("the text ends inside a region", help="a '}' is missing")
            block.append(self.operation())
        if implicit and (block.last is None or not block.last.row.has(Trait.TERMINATOR)):
            block.append(Operation(row(implicit), location=Location((), self.file, *self.place(self.i))))

    def _labelled_block(self, region: Region, implicit: str) -> None:
        index = self.i
        name = self.tokens[index]
        if name[:1] != "^" or len(name) < 2:
            raise self.error(f"expected a block such as ^bb1, found {self.shown()}")
        self.i += 1
        if name in self._blocks and name not in self._pending:
            raise self.error(f"block '{name}' is defined twice", index)
        self._pending.pop(name, None)
        block = self._blocks.setdefault(name, Block())
        region.add(block)
        if self.accept("("):
            self._declare(block, self.comma_separated(")", self.typed_name))
        self.expect(":", "after a block's name")
        self._block_body(block, implicit)

    def typed_name(self) -> tuple[int, Type]:
        """`%a: T`, perhaps with a location, which is dropped."""
        index = self.operand()
        self.expect(":", "and a type")
        type = self.type()
        if self.tokens[self.i] == "loc":
            self.location()
        return index, type

    def successor(self) -> Block:
        """A use of a block of the current region."""
        name = self.tokens[self.i]
        if name[:1] != "^" or len(name) < 2:
            raise self.error(f"expected a block such as ^bb1, found {self.shown()}")
        found = self._blocks.get(name)
        if found is None:
            found = self._blocks[name] = Block()
            self._pending[name] = self.i
        self.i += 1
        return found
