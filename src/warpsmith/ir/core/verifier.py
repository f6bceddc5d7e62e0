"""Whether IR is well formed: structure, dominance, symbols, and each op's own rules.

In: a module (or any op).  Out: nothing, or InvalidIr about the first thing that is wrong, with the op, its place, the
cause, and the rule.  What is checked, in this order: an op's counts and attributes as its row states them; its types
(by its pretty form, and its row's own rule); its regions; that each value is defined before it is used and visible
there; that the lists of users agree with the operands; symbols; and destination passing (`destination.py`).
Time grows linearly with the module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warpsmith.errors import InvalidIr, did_you_mean
from warpsmith.ir.analysis.destination import check_destinations
from warpsmith.ir.analysis.dominance import dominator_tree
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import llvm_types as lt
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.attributes import StringAttr, SymbolRefAttr
from warpsmith.ir.core.diagnostics import invalid, need_types, types_of
from warpsmith.ir.core.operands import operand_groups, split
from warpsmith.ir.core.ssa import REGISTRY, Block, Operation, Region, Trait, Value
from warpsmith.ir.core.types import ShapedType, Type

__all__ = ["verify"]

_SYMBOL_USES = ("callee", "combiner", "global_name", "name")


def verify(module: Operation, *, allow_unregistered: bool = False) -> None:
    """Raise InvalidIr if `module` breaks a rule.  `allow_unregistered` takes ops that no dialect here has, as they are.

    Which ops may be alive after a pass, the pass says (`passes/support/legality.py`).
    """
    _Verifier(allow_unregistered).run(module)


class _Verifier:
    """One run over a module."""

    def __init__(self, allow_unregistered: bool) -> None:
        self.allow_unregistered = allow_unregistered
        self.visible: set[Value] = set()
        self.symbols: dict[str, Operation] = {}
        self.uses: dict[Value, int] = {}  # operand slots that hold each value
        self.ops: list[Operation] = []

    def run(self, module: Operation) -> None:
        self.collect_symbols(module)
        for value in module.operands:
            self.visible.add(value)
        self.op(module)
        self.check_users()
        check_destinations(self.ops)

    # -- symbols
    def collect_symbols(self, module: Operation) -> None:
        for region in module.regions:
            for block in region.blocks:
                for op in block:
                    name = op.attributes.get("sym_name")
                    if not isinstance(name, StringAttr):
                        continue
                    if name.value in self.symbols:
                        raise invalid(
                            op, f"symbol @{name.value} is defined twice", "a module's symbols have different names"
                        )
                    self.symbols[name.value] = op

    def check_symbol_uses(self, op: Operation) -> None:
        for key in _SYMBOL_USES:
            used = op.attributes.get(key)
            if not isinstance(used, SymbolRefAttr):
                continue
            target = self.symbols.get(used.name)
            if target is None:
                hint = did_you_mean(used.name, self.symbols) or "a symbol is defined at the top level of the module"
                raise invalid(op, f"@{used.name} isn't defined", hint)
            _check_symbol_use(op, key, target)

    # -- one op
    def op(self, op: Operation) -> None:
        self.ops.append(op)
        for value in op.operands:
            if value not in self.visible:
                self.not_visible(op, value)
            self.uses[value] = self.uses.get(value, 0) + 1
        row = op.row
        if row.name in REGISTRY:
            self.check_row(op)
        elif not self.allow_unregistered:
            raise invalid(op, "no dialect has this op", did_you_mean(row.name, REGISTRY))
        if op.attributes:
            self.check_symbol_uses(op)
        for region in op.regions:
            if region.parent is not op:
                raise invalid(op, "a region that doesn't know its op", "add regions through Operation or Region.add")
            self.region(op, region)

    def check_row(self, op: Operation) -> None:
        row = op.row
        if row.operands or op.operands:
            try:
                operand_groups(op)
            except InvalidIr as bad:
                raise invalid(op, bad.cause, bad.help) from None
        if split(row.results, op.results) is None:
            raise invalid(op, f"{len(op.results)} results", f"it has: {', '.join(row.results) or 'none'}")
        for name in row.attributes:
            if name not in op.attributes:
                raise invalid(op, f"attribute '{name}' is missing", f"it needs: {', '.join(row.attributes)}")
        if len(op.successors) != row.successors:
            raise invalid(op, f"{len(op.successors)} successors", f"it has {row.successors}")
        if len(op.regions) != row.regions >= 0:
            raise invalid(op, f"{len(op.regions)} regions", f"it has {row.regions}")
        traits = row.traits
        if traits & Trait.SAME_TYPE:
            self.check_same_type(op)
        elif traits & Trait.ELEMENTWISE:
            self.check_elementwise(op)
        if traits & Trait.TERMINATOR and (op.block is None or op.block.last is not op):
            raise invalid(op, "a terminator that isn't last in its block", "a terminator ends its block")
        if row.form is not None and row.form.check is not None:
            broken = row.form.check(op)
            if broken is not None:
                raise invalid(op, broken)
        if row.verify is not None:
            row.verify(op)

    def check_same_type(self, op: Operation) -> None:
        type = op.operands[0].type
        for value in (*op.operands, *op.results):
            if value.type is not type:
                raise invalid(op, f"types {type} and {value.type}", "all operands and results have one type")

    def check_elementwise(self, op: Operation) -> None:
        shape = _shape(op.operands[0])
        for value in (*op.operands, *op.results):
            if _shape(value) != shape:
                raise invalid(
                    op, f"types {op.operands[0].type} and {value.type}", "all operands and results have one shape"
                )

    # -- regions and dominance
    def region(self, op: Operation, region: Region) -> None:
        outer = self.visible
        if op.row.traits & Trait.ISOLATED:
            self.visible = set()
        blocks = region.blocks
        if len(blocks) == 1:
            self.undo(self.block(op, region, blocks[0], blocks))
        elif blocks:
            self.graph(op, region)
        self.visible = outer

    def undo(self, defined: Iterable[Value]) -> None:
        self.visible.difference_update(defined)

    def graph(self, op: Operation, region: Region) -> None:
        """Blocks in the order of their dominator tree; what a block defines is visible in those that it dominates."""
        blocks = region.blocks
        for block in blocks:
            last = block.last
            for target in last.successors if last is not None else ():
                if target.region is not region:
                    raise invalid(last or op, "a branch out of its region", "a successor is a block of the same region")
                if target is blocks[0]:
                    raise invalid(last or op, "a branch to the entry block", "the entry block has no predecessors")
        children, unreachable = dominator_tree(region)
        todo: list[tuple[Block | None, list[Value]]] = [(blocks[0], [])]
        while todo:
            block, defined = todo.pop()
            if block is None:
                self.undo(defined)
                continue
            todo.append((None, self.block(op, region, block, blocks)))
            todo += [(child, []) for child in children.get(block, ())]
        if unreachable:  # no path leads there, so what is visible there means nothing
            everything = {v for b in blocks for v in (*b.args, *(r for o in b for r in o.results))} - self.visible
            self.visible |= everything
            for block in unreachable:
                self.block(op, region, block, blocks)
            self.undo(everything)

    def block(self, parent: Operation, region: Region, block: Block, blocks: list[Block]) -> list[Value]:
        """Check a block; gives the values that it defined, which are visible now."""
        if block.region is not region:
            raise invalid(parent, "a block that doesn't know its region", "add blocks through Region.add")
        defined: list[Value] = []
        visible = self.visible
        for i, argument in enumerate(block.args):
            if argument.block is not block or argument.index != i:
                raise invalid(parent, f"block argument {i} doesn't know its block or place")
            visible.add(argument)
            defined.append(argument)
        before: Operation | None = None
        op = block.first
        while op is not None:
            if op.block is not block or op.prev is not before:
                raise invalid(
                    op, "the links between ops are broken", "move ops through Block and Operation methods alone"
                )
            self.op(op)
            for i, result in enumerate(op.results):
                if result.op is not op or result.index != i:
                    raise invalid(op, f"result {i} doesn't know its op or place")
                visible.add(result)
                defined.append(result)
            before, op = op, op.next
        if block.last is not before:
            raise invalid(
                parent, "the links between ops are broken", "move ops through Block and Operation methods alone"
            )
        self.check_end(parent, block, blocks)
        return defined

    def check_end(self, parent: Operation, block: Block, blocks: list[Block]) -> None:
        if parent.row.name == "builtin.module" or parent.row.name not in REGISTRY:
            return
        last = block.last
        if last is None or not last.row.traits & Trait.TERMINATOR:
            if last is not None and last.row.name not in REGISTRY:
                return
            raise invalid(
                parent,
                "a block without a terminator",
                "its last op is a terminator, such as a yield, a return or a branch",
            )
        if len(blocks) > 1 and not parent.row.traits & Trait.ISOLATED:
            raise invalid(parent, f"a region of {len(blocks)} blocks", "its regions have one block each")

    def not_visible(self, op: Operation, value: Value) -> None:
        definer = value.defining_op
        text = f"'%{value.name}'" if value.name else f"a value of type {value.type}"
        if definer is not None and definer.block is None:
            raise invalid(
                op, f"uses {text}, whose op {definer.name} was taken out of the module", "erase an op after its users"
            )
        if type(value) is Value or value.parent_block is None:
            raise invalid(op, f"uses {text}, which no op defines")
        isolated = _isolated_between(op, value.parent_block)
        if isolated is not None:
            raise invalid(
                op,
                f"uses {text} from outside {isolated.name}",
                "pass it as an argument: nothing from above is visible there",
            )
        raise invalid(
            op,
            f"uses {text}, whose definition doesn't come before it",
            "a value is visible after its definition, in its block and the regions in it",
        )

    # -- users
    def check_users(self) -> None:
        """Users lists against operands, both ways, in one pass over each."""
        inside = set(self.ops)
        for op in self.ops:
            operands = op.operands
            for value in operands:
                if value.users.get(op) != (1 if len(operands) == 1 else operands.count(value)):
                    raise invalid(
                        op,
                        "an operand doesn't know this user",
                        "change operands through set_operand, set_operands or replace_by",
                    )
        for op in self.ops:
            for result in op.results:
                self.check_value(op, result, inside)
            for region in op.regions:
                for block in region.blocks:
                    for argument in block.args:
                        self.check_value(op, argument, inside)

    def check_value(self, op: Operation, value: Value, inside: set[Operation]) -> None:
        recorded = 0
        for user, count in value.users.items():
            if user not in inside:
                raise invalid(
                    op,
                    f"a value still lists {user.name} as a user, which isn't in the module",
                    "erase ops through Operation.erase",
                )
            recorded += count
        if recorded != self.uses.get(value, 0):
            raise invalid(
                op,
                f"a value has {self.uses.get(value, 0)} uses but lists {recorded}",
                "change operands through set_operand, set_operands or replace_by",
            )


def _isolated_between(op: Operation, home: Block) -> Operation | None:
    """The isolated op that separates `op` from a block around it, if there is one."""
    found: Operation | None = None
    at: Operation | None = op
    while at is not None:
        if at.block is home:
            return found
        at = at.parent
        if found is None and at is not None and at.row.traits & Trait.ISOLATED:
            found = at
    return None


def _shape(value: Value) -> tuple[int, ...] | None:
    type = value.type
    return type.shape if isinstance(type, ShapedType) else None


def _signature(target: Operation) -> tuple[Sequence[Type], Sequence[Type]] | None:
    found = target.attributes.get("function_type")
    type = found.type if isinstance(found, at.TypeAttr) else None
    if isinstance(type, ty.FunctionType):
        return type.inputs, type.results
    if isinstance(type, lt.LLVMFunctionType):
        return type.inputs, [] if type.result is lt.VOID else [type.result]
    return None


def _check_symbol_use(op: Operation, key: str, target: Operation) -> None:
    """`op` names `target` by attribute `key`: calls fit the function's type, addresses name a global."""
    signature = _signature(target)
    if key == "combiner" and signature is not None:
        types = types_of(op.operands)
        need_types(op, [*types, *types], signature[0], "the values combined")
        need_types(op, types, signature[1], "the results")
    elif key == "callee":
        if signature is None:
            raise invalid(
                op, f"calls {target.row.name} @{target.str_attr('sym_name')}", "only a function can be called"
            )
        need_types(op, types_of(op.operands), signature[0], "the arguments")
        need_types(op, types_of(op.results), signature[1], "the results")
    elif op.row.name == "memref.get_global":
        type = target.attributes.get("type")
        if not isinstance(type, at.TypeAttr) or type.type is not op.results[0].type:
            raise invalid(op, f"a result of type {op.results[0].type} for a global of another type")
