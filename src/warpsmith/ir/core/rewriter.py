"""The greedy rewriter: a worklist of ops, folds first, then patterns by op name, until nothing changes.

In: an op (a module, a function) or a few ops to start from, and a table `op name -> patterns`.  Out: the same IR,
rewritten in place.  What it does to each op, in this order:

1. an op that is not needed (no users, no effects) is erased;
2. a constant is moved to the head of its function and merged with an equal one;
3. a constant left operand of a commutative op moves to the right;
4. the op is folded (`ir/core/folding.py`); constants that come out are made once a function, at its head;
5. patterns of the op's name are tried in order; the first that changes something ends the visit.

Every op that may fold differently after a change is queued again: users of new values, makers of values that lost a
user, and new ops.  The work is linear in the number of changes; a budget of visits stops patterns that undo each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from warpsmith.errors import PassFailed
from warpsmith.ir.core.attributes import Attribute, IntegerAttr
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.effects import is_removable
from warpsmith.ir.core.folding import fold
from warpsmith.ir.core.ssa import Block, Operation, Trait, Value, fuse_locations, row
from warpsmith.ir.core.types import I1, INDEX, Type

__all__ = ["Pattern", "Patterns", "Rewriter", "rewrite", "rewrite_ops"]

Pattern = Callable[[Operation, "Rewriter"], bool]
Patterns = Mapping[str, Sequence[Pattern]]

_VISITS_PER_OP = 64
_SPARE_VISITS = 100_000


class _Constants:
    """The constants at the head of one function."""

    __slots__ = ("block", "last", "table")

    def __init__(self, block: Block) -> None:
        self.block = block
        self.last: Operation | None = None
        self.table: dict[tuple[Attribute, Type], Operation] = {}


class Rewriter:
    """The changes a pattern may make; each keeps the worklist right.

    A pattern that edits an op by hand calls `changed`.
    """

    __slots__ = ("_constants", "_queue", "_queued", "did_change", "folding")

    def __init__(self, folding: bool = True) -> None:
        self._queue: list[Operation] = []
        self._queued: set[Operation] = set()
        self._constants: dict[Operation | None, _Constants] = {}
        self.did_change = False
        self.folding = folding

    # -- the worklist
    def push(self, op: Operation) -> None:
        """Visit `op` (again)."""
        if op not in self._queued:
            self._queued.add(op)
            self._queue.append(op)

    def push_users(self, value: Value) -> None:
        """Look at all users of a value again."""
        for user in value.users:
            self.push(user)

    def changed(self, op: Operation) -> None:
        """`op` was edited in place: it, its users, and its parent are visited again."""
        self.did_change = True
        self.push(op)
        for result in op.results:
            self.push_users(result)

    def _forget(self, op: Operation) -> None:
        self._queued.discard(op)
        if op.row.name == "arith.constant":
            pool = self._constants.get(_scope(op))
            if pool is not None:
                key = (op.attributes["value"], op.results[0].type)
                if pool.table.get(key) is op:
                    del pool.table[key]
                if pool.last is op:
                    before = op.prev
                    pool.last = before if before is not None and before.row.name == "arith.constant" else None
        for region in op.regions:
            for block in region.blocks:
                for inner in block:
                    self._forget(inner)

    # -- changes
    def builder(self, op: Operation) -> Builder:
        """A builder before `op` whose new ops are visited."""
        builder = Builder.before(op)
        builder.created = _Inbox(self)
        return builder

    def replace(self, op: Operation, values: Sequence[Value]) -> None:
        """Replace the results of `op` by `values` and erase it."""
        for result, value in zip(op.results, values, strict=True):
            if value is not result:
                self.replace_value(result, value)
        self.erase(op)

    def replace_value(self, old: Value, new: Value) -> None:
        """Make all users of `old` use `new`."""
        if old is new:
            return
        self.did_change = True
        self.push_users(old)
        maker = new.defining_op
        if maker is not None and old.users:
            self.push(maker)
        # A replaced value's name is kept only where the new one has no name of its own.
        old.replace_by(new)

    def erase(self, op: Operation) -> None:
        """Erase `op` (its results have no users) and visit the makers of its operands."""
        self.did_change = True
        block = op.block
        operands = op.operands
        captured = _captured(op) if op.regions else ()
        self._forget(op)
        op.erase()
        for value in operands:
            self._lost_user(value)
        for value in captured:
            self._lost_user(value)
        # A body of one or two ops may be what a pattern of the parent waits for.
        if block is not None and (block.first is block.last or (block.first and block.first.next is block.last)):
            parent = block.parent_op
            if parent is not None and parent.block is not None:
                self.push(parent)

    def _lost_user(self, value: Value) -> None:
        if len(value.users) > 1:
            return
        maker = value.defining_op
        if maker is not None:
            if maker.block is not None:
                self.push(maker)
            return
        block = value.parent_block
        parent = block.parent_op if block is not None else None
        if parent is not None and parent.block is not None:
            self.push(parent)

    def set_operand(self, op: Operation, index: int, value: Value) -> None:
        """Replace one operand; what has lost its last user is looked at again."""
        old = op.operands[index]
        if old is not value:
            op.set_operand(index, value)
            self._lost_user(old)
            self.changed(op)

    def set_operands(self, op: Operation, values: Sequence[Value]) -> None:
        """Replace all operands; what has lost its last user is looked at again."""
        old = op.operands
        op.set_operands(values)
        for value in old:
            self._lost_user(value)
        self.changed(op)

    def inline_before(self, block: Block, anchor: Operation, arguments: Sequence[Value]) -> list[Value]:
        """Move the ops of `block`, but for its terminator, before `anchor`.  Gives the terminator's operands."""
        for arg, value in zip(block.args, arguments, strict=True):
            self.replace_value(arg, value)
        terminator = block.terminator
        values = list(terminator.operands)
        self._forget(terminator)
        terminator.erase()
        for op in block:
            op.move_before(anchor)
            self.push(op)
        self.did_change = True
        return values

    def constant(self, near: Operation, attribute: Attribute, type: Type) -> Value:
        """The constant at the head of the function that holds `near`; made on first use."""
        pool = self._pool(near)
        key = (attribute, type)
        known = pool.table.get(key)
        if known is None:
            known = Operation(row("arith.constant"), (), (type,), {"value": attribute})
            known.results[0].name = _constant_name(attribute)
            self._place(pool, known)
            pool.table[key] = known
        return known.results[0]

    def _pool(self, op: Operation) -> _Constants:
        scope = _scope(op)
        pool = self._constants.get(scope)
        if pool is None:
            block = op.block if scope is None else scope.regions[0].blocks[0]
            if block is None:
                raise PassFailed(f"{op.name} is in no block")
            pool = self._constants[scope] = _Constants(block)
            for head in block:  # constants that are at the head already
                if head.row.name != "arith.constant":
                    break
                pool.table.setdefault((head.attributes["value"], head.results[0].type), head)
                pool.last = head
        return pool

    def _place(self, pool: _Constants, op: Operation) -> None:
        if pool.last is op:  # an equal constant before it has just gone
            return
        op.unlink()
        if pool.last is None:
            pool.block.prepend(op)
        else:
            pool.block.insert_after(pool.last, op)
        pool.last = op

    def _visit_constant(self, op: Operation) -> bool:
        """Uniques a constant at its function's head.  True when it's gone."""
        result = op.results[0]
        if not result.users:
            self.erase(op)
            return True
        pool = self._pool(op)
        key = (op.attributes["value"], result.type)
        known = pool.table.get(key)
        if known is op:
            return False
        if known is not None:
            known.location = fuse_locations(known.location, op.location)
            self.replace(op, known.results)
            return True
        pool.table[key] = op
        self._place(pool, op)
        return False

    # -- the loop
    def run(self, patterns: Patterns) -> bool:
        """Visit queued ops until none is left.  Whether anything changed; PassFailed when it never ends."""
        queue, queued = self._queue, self._queued
        queue.reverse()  # popped from the end: text order
        budget = _VISITS_PER_OP * len(queue) + _SPARE_VISITS
        none: tuple[Pattern, ...] = ()
        changed = False
        while queue:
            op = queue.pop()
            if op not in queued:
                continue
            queued.discard(op)
            if op.block is None:
                continue
            budget -= 1
            if budget < 0:
                raise PassFailed(
                    f"rewriting doesn't end (last op visited: {op.name})", help="please report this as a bug"
                )
            self.did_change = False
            self._visit(op, patterns.get(op.row.name, none))
            changed = changed or self.did_change
        return changed

    def _visit(self, op: Operation, patterns: Sequence[Pattern]) -> None:
        traits = op.row.traits
        if op.row.name == "arith.constant":
            self._visit_constant(op)
            return
        if op.is_unused and is_removable(op):
            self.erase(op)
            return
        if traits & Trait.COMMUTATIVE and len(op.operands) == 2:
            left, right = op.operands
            if _is_constant(left) and not _is_constant(right):
                op.operands[0], op.operands[1] = right, left
                self.changed(op)
        if self.folding and self._fold(op):
            return
        for pattern in patterns:
            if pattern(op, self):
                self.did_change = True
                return

    def _fold(self, op: Operation) -> bool:
        folded = fold(op)
        if folded is None:
            return False
        results = op.results
        values: list[Value] = []
        same = True
        for entry, result in zip(folded, results, strict=True):
            value = entry if isinstance(entry, Value) else self.constant(op, entry, result.type)
            same = same and value is result
            values.append(value)
        if same:
            return False
        for value, result in zip(values, results, strict=True):
            self.replace_value(result, value)
        if not op.row.traits & Trait.TERMINATOR and is_removable(op):
            self.erase(op)
        return True


class _Inbox(list[Operation]):
    """What `Builder.created` appends to: new ops go straight to the worklist."""

    __slots__ = ("_rewriter",)

    def __init__(self, rewriter: Rewriter) -> None:
        super().__init__()
        self._rewriter = rewriter

    def append(self, object: Operation) -> None:
        self._rewriter.did_change = True
        self._rewriter.push(object)


def _is_constant(value: Value) -> bool:
    op = value.defining_op
    return op is not None and bool(op.row.traits & Trait.CONSTANT)


def _constant_name(attribute: Attribute) -> str:
    if not isinstance(attribute, IntegerAttr):
        return "cst"
    if attribute.type is I1:
        return "true" if attribute.value else "false"
    name = f"c{attribute.value}" if attribute.value >= 0 else f"c_{-attribute.value}"
    return name if attribute.type is INDEX else f"{name}_{attribute.type}"


def _scope(op: Operation) -> Operation | None:
    """The function (any isolated op) whose entry block holds the constants for `op`."""
    parent = op.parent
    while parent is not None and not parent.row.traits & Trait.ISOLATED:
        parent = parent.parent
    return parent


def _captured(op: Operation) -> list[Value]:
    """The outer operands of the ops inside `op` (they lose users when it goes)."""
    ops = list(op.walk())
    inside = set(ops)
    found: list[Value] = []
    for inner in ops[1:]:
        for value in inner.operands:
            block = value.parent_block
            if block is None or block.parent_op not in inside:
                found.append(value)
    return found


def rewrite(root: Operation, patterns: Patterns, *, folding: bool = True) -> bool:
    """Rewrite everything inside `root` (not `root` itself) to a fixpoint.  Whether anything changed."""
    rewriter = Rewriter(folding)
    ops = root.walk()
    next(ops)
    for op in ops:
        rewriter.push(op)
    return rewriter.run(patterns)


def rewrite_ops(ops: Iterable[Operation], patterns: Patterns, *, folding: bool = True) -> bool:
    """Rewrite starting from `ops` alone; what they touch follows.  Whether anything changed."""
    rewriter = Rewriter(folding)
    for op in ops:
        rewriter.push(op)
    return rewriter.run(patterns)
