"""IR to MLIR text: the pretty form that people read, and the generic form that any MLIR tool parses.

In: an op (usually a module).  Out: text that `parser.py` reads back to an equal op.  The forms are the seed
walk-through's: names from hints, made unique within a function; indexing maps as `#map` aliases at the top;
constants named after their value.  Work and memory grow linearly with the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping

from warpsmith.errors import InvalidIr
from warpsmith.ir.core.attributes import Attribute, IndexingMapAttr, IntegerAttr, UnitAttr
from warpsmith.ir.core.ssa import UNKNOWN, Block, Location, Operation, OpResult, Region, Trait, Value
from warpsmith.ir.core.types import I1, INDEX
from warpsmith.ir.text.attribute_text import attribute_name, attribute_text, quote

__all__ = ["Printer", "Unprintable", "location_text", "print_module", "print_op"]

_NATIVE_PROPERTIES = ("noWrapFlags", "overflowFlags")
"""Properties of llvm ops that MLIR doesn't take among the other attributes."""

_PLAIN_HINT = re.compile(r"[A-Za-z_$.][\w$.-]*", re.ASCII)
_BAD_CHARACTER = re.compile(r"[^\w$.-]", re.ASCII)


class Unprintable(Exception):
    """The pretty form can't say what an op holds; the printer falls back on the generic form."""


def print_op(op: Operation, *, generic: bool = False, locations: bool = False) -> str:
    """The text of an op and all in its regions, without a newline at the end.

    `generic` prints the form that `mlir-opt --allow-unregistered-dialect` reads; `locations` adds `loc(...)`.  Maps are
    aliases at the top if the op has regions, written out otherwise.
    """
    printer = Printer(generic=generic, locations=locations, aliases=bool(op.regions))
    printer.op(op)
    return printer.text()


def print_module(module: Operation, *, generic: bool = False, locations: bool = False) -> str:
    """`print_op` with a newline at the end, as files have it."""
    return print_op(module, generic=generic, locations=locations) + "\n"


def location_text(location: Location) -> str:
    """`loc(...)`."""
    place = f"{quote(location.file)}:{location.line}:{location.column}" if location.file or location.line else ""
    if not location.names:
        return f"loc({place or 'unknown'})"
    first = quote(location.names[0]) + (f"({place})" if place else "")
    if len(location.names) == 1:
        return f"loc({first})"
    return f"loc(fused[{', '.join([first, *map(quote, location.names[1:])])}])"


class _Names(dict[Value, str]):
    """The `%name` of each value; one that has none yet gets it when it is first asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._clean: dict[str, str] = {}
        self._fresh()

    def _fresh(self) -> None:
        self.used: set[str] = set()
        self.counters: dict[str, int] = {}
        self.number = 0
        self.argument = 0
        self.log: list[str] = []
        self.counter_log: list[tuple[str, int]] = []

    def __missing__(self, value: Value) -> str:
        if isinstance(value, OpResult):
            self.define_results(value.op)
        else:
            self.define_argument(value)
        return self[value]

    # -- scopes
    def isolated(self) -> Callable[[], None]:
        """Start afresh; the function given goes back."""
        saved = (self.used, self.counters, self.number, self.argument, self.log, self.counter_log)
        self._fresh()

        def restore() -> None:
            self.used, self.counters, self.number, self.argument, self.log, self.counter_log = saved

        return restore

    def nested(self) -> Callable[[], None]:
        """A scope whose names are free again once the function given is called; numbers aren't used twice."""
        names, counts = len(self.log), len(self.counter_log)

        def restore() -> None:
            self.used.difference_update(self.log[names:])
            del self.log[names:]
            for hint, old in reversed(self.counter_log[counts:]):
                self.counters[hint] = old
            del self.counter_log[counts:]

        return restore

    # -- definitions
    def define_results(self, op: Operation) -> None:
        """Names for an op's results: one for all, unless later ones have hints of their own."""
        results = op.results
        first = results[0]
        if len(results) == 1:
            self[first] = self._make(first.name or (_constant_hint(op) if op.row.traits & Trait.CONSTANT else ""))
        elif any(r.name for r in results[1:]):
            for result in results:
                self[result] = self._make(result.name)
        else:
            base = self._make(first.name)
            for i, result in enumerate(results):
                self[result] = f"{base}#{i}"

    def results_text(self, op: Operation) -> str:
        """What stands left of an op's `=`."""
        results = op.results
        first = self[results[0]]
        if len(results) == 1:
            return first
        if first.endswith("#0"):
            return f"{first[:-2]}:{len(results)}"
        return ", ".join([self[r] for r in results])

    def define_argument(self, argument: Value) -> str:
        """A name for a block argument."""
        if argument.name:
            name = self._make(argument.name)
        else:
            while f"%arg{self.argument}" in self.used:
                self.argument += 1
            name = f"%arg{self.argument}"
            self.used.add(name)
            self.log.append(name)
        self[argument] = name
        return name

    def _make(self, hint: str) -> str:
        if not hint:
            name = f"%{self.number}"
            self.number += 1
            return name  # no hint is a number, so none can be taken
        base = self._clean.get(hint)
        if base is None:
            base = self._clean[hint] = f"%{_cleaned(hint)}"
        name = base
        if name in self.used:
            count = self.counters.get(base, 0)
            self.counter_log.append((base, count))
            while (name := f"{base}_{count}") in self.used:
                count += 1
            self.counters[base] = count + 1
        self.used.add(name)
        self.log.append(name)
        return name


def _cleaned(hint: str) -> str:
    if _PLAIN_HINT.fullmatch(hint):
        return hint
    cleaned = _BAD_CHARACTER.sub("_", hint)
    return f"_{cleaned}" if cleaned[0].isdigit() or cleaned[0] == "-" else cleaned


def _constant_hint(op: Operation) -> str:
    value = op.attributes.get("value")
    if not isinstance(value, IntegerAttr):
        return "cst"
    if value.type is I1:
        return "true" if value.value else "false"
    return f"c{value.value}" if value.type is INDEX else f"c{value.value}_{value.type}"


class Printer:
    """Text in the making.  The forms of op rows write to it."""

    def __init__(self, *, generic: bool, locations: bool, aliases: bool) -> None:
        self.generic = generic
        self.locations = locations
        self.out: list[str] = []
        self.write = self.out.append
        self.names = _Names()
        self.indent = ""
        self.blocks: dict[Block, str] = {}
        self._use_aliases = aliases
        self._aliases: dict[Attribute, str] = {}
        self._attributes: dict[Attribute, str] = {}

    def text(self) -> str:
        """All that was printed, below the aliases that it uses."""
        head = [f"{name} = {attribute_text(attribute)}\n" for attribute, name in self._aliases.items()]
        if head:
            head.append("\n")
        return "".join(head + self.out)

    # -- ops
    def op(self, op: Operation) -> None:
        """One op, from the indentation's end to its last character."""
        write = self.write
        if op.results:
            write(self.names.results_text(op))
            write(" = ")
        row = op.row
        form = None if self.generic else row.form
        if form is None or (row.attributes and not all(name in op.attributes for name in row.attributes)):
            self.generic_op(op)
        else:
            mark = len(self.out)
            write(row.short if row.prints_short else row.name)
            try:
                form.print(self, op)
            except (Unprintable, InvalidIr):
                del self.out[mark:]
                self.generic_op(op)
        if self.locations and op.location is not UNKNOWN:
            write(f" {location_text(op.location)}")

    def generic_op(self, op: Operation) -> None:
        """`"name"(%a)[^bb1] ({...}) {a = 1 : i32} : (T) -> U`."""
        names = self.names
        write = self.write
        write(f"{quote(op.row.name)}({', '.join([names[v] for v in op.operands])})")
        if op.successors:
            write(f"[{', '.join([self.block_name(b) for b in op.successors])}]")
        native = (
            [n for n in _NATIVE_PROPERTIES if n in op.attributes] if op.attributes and op.row.dialect == "llvm" else ()
        )
        if native:
            write(f" <{{{', '.join([f'{n} = {self.attribute(op.attributes[n])}' for n in native])}}}>")
        if op.regions:
            write(" (")
            for i, region in enumerate(op.regions):
                if i:
                    write(", ")
                self.region(region, arguments=True)
            write(")")
        implied = op.row.implied
        self.attributes(op, native, extra=implied(op) if implied is not None else None)
        operands = ", ".join([v.type.text for v in op.operands])
        results = [r.type.text for r in op.results]
        outs = results[0] if len(results) == 1 and "->" not in results[0] else f"({', '.join(results)})"
        write(f" : ({operands}) -> {outs}")

    # -- regions and blocks
    def region(self, region: Region, *, arguments: bool = False, hide: str = "", scoped: bool = False) -> None:
        """A region in braces.

        `arguments` prints the entry block's label; `hide` names a terminator to leave out when it has neither operands
        nor attributes; `scoped` says that the form has opened the region's scope of names and closes it.
        """
        parent = region.parent
        names = self.names
        isolated = parent is not None and bool(parent.row.traits & Trait.ISOLATED)
        restore = None if scoped else names.isolated() if isolated else names.nested()
        self.write("{\n")
        if len(region.blocks) > 1:
            self._number_blocks(region)
        outer = self.indent
        for i, block in enumerate(region.blocks):
            if i or (arguments and (block.args or block.first is None)):
                self._label(block, outer)
            self.indent = outer + "  "
            self._block(block, hide)
            self.indent = outer
        if restore is not None:
            restore()
        self.write(f"{outer}}}")

    def _number_blocks(self, region: Region) -> None:
        """Names for everything in a region of several blocks: a use may come before its definition in the text."""
        for i, block in enumerate(region.blocks):
            self.blocks[block] = f"^bb{i}"
        names = self.names
        for block in region.blocks:
            for argument in block.args:
                names[argument]
            for op in block:
                if op.results:
                    names[op.results[0]]

    def _label(self, block: Block, outer: str) -> None:
        args = ", ".join([f"{self.names[a]}: {a.type}" for a in block.args])
        self.write(f"{outer}{self.block_name(block)}{f'({args})' if args else ''}:\n")

    def _block(self, block: Block, hide: str) -> None:
        op = block.first
        write, indent = self.write, self.indent
        while op is not None:
            if op.next is None and hide and op.row.name == hide and not op.operands and not op.attributes:
                return
            write(indent)
            self.op(op)
            write("\n")
            op = op.next

    def block_name(self, block: Block) -> str:
        """A block's label."""
        return self.blocks.get(block, "^bb0")

    # -- pieces
    def operands(self, values: Iterable[Value]) -> str:
        """The names of values, separated by commas."""
        names = self.names
        return ", ".join([names[v] for v in values])

    def attribute(self, attribute: Attribute) -> str:
        """The text of an attribute; an indexing map is an alias."""
        if self._use_aliases and type(attribute) is IndexingMapAttr:
            found = self._aliases.get(attribute)
            if found is None:
                count = len(self._aliases)
                found = self._aliases[attribute] = f"#map{count or ''}"
            return found
        found = self._attributes.get(attribute)
        if found is None:
            found = self._attributes[attribute] = attribute_text(attribute)
        return found

    def attributes(
        self,
        op: Operation,
        hidden: Collection[str] = (),
        keyword: str = "",
        extra: Mapping[str, Attribute] | None = None,
    ) -> None:
        """` {a = 1 : i32, b}` without those in `hidden`, with `extra`, sorted; nothing if none is left."""
        if not op.attributes and not extra:
            return
        parts: list[str] = []
        for name, value in sorted({**op.attributes, **(extra or {})}.items()):
            if name not in hidden:
                text = attribute_name(name)
                parts.append(text if type(value) is UnitAttr else f"{text} = {self.attribute(value)}")
        if parts:
            self.write(f" {keyword}{{{', '.join(parts)}}}")
