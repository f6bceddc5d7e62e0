"""Statements of the kernel language: assignments, loops, branches, macros.

In: a function's tree.  Out: ops, at the kernel's place.  An `if` or a `for` whose terms Python knows is decided now;
the others become scf ops.  A name that is assigned once is an SSA value; another is a private variable
(`frontend/assignments.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from warpsmith.errors import InvalidTileProgram, TileSyntaxError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Block
from warpsmith.ir.core.ssa import Region as IrRegion
from warpsmith.ir.dialects import scf
from warpsmith.tile.frontend import subscripts
from warpsmith.tile.frontend.arguments import bind_arguments
from warpsmith.tile.frontend.assignments import stored_in, variables_of
from warpsmith.tile.frontend.expressions import Expressions
from warpsmith.tile.frontend.names import Names
from warpsmith.tile.frontend.namespaces import loops
from warpsmith.tile.frontend.operators import BINARY, keyword
from warpsmith.tile.frontend.source import Source
from warpsmith.tile.frontend.state import KernelState
from warpsmith.tile.frontend.values import Buffer, Inline, Loop, Region, Scalar, Variable, items
from warpsmith.tile.model.dtypes import INDEX, INT32, TileType

__all__ = ["Statements"]

_MOST_MACROS = 64  # how deep macros may call each other


class Statements(Expressions):
    """Walks one function's statements.  `loops` counts the loops around, for break and continue; `blocks` all
    blocks around, `inside` those that more of the function follows, for return."""

    def __init__(self, state: KernelState, names: Names, variables: frozenset[str], depth: int = 0) -> None:
        super().__init__(state, names)
        self.variables = variables
        self.depth = depth
        self.loops = 0
        self.blocks = 0
        self.inside = 0
        self.result: Any = None
        self.ended = False

    # -- blocks
    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Statements in order; none after one that returns."""
        for number, statement in enumerate(statements):
            if self.ended:
                return  # what stands after a return
            if isinstance(statement, ast.If) and _returns(statement):
                with self.state.reading(statement):
                    self._leave_function(statement, statements[number + 1 :])
                return
            self.statement(statement)

    def _leave_function(self, node: ast.If, rest: Sequence[ast.stmt]) -> None:
        """An `if` one of whose sides ends in return: the rest is the other side's."""
        sides = [[*side] if _ends(side) else [*side, *rest] for side in (node.body, node.orelse)]
        test = self.condition(node.test)
        if not isinstance(test, (Scalar, Region)):
            self.body(sides[0] if test else sides[1])
            return
        self.state.need_device("a branch")
        condition = self.state.scalars.condition(self.number(test))
        op = scf.if_(self.state.b, condition.value, with_else=True)
        for region, side in zip(op.regions, sides, strict=True):
            self.block(region.blocks[0], side, is_last=True)
            self.ended = False
        self.ended = True

    def block(
        self, block: Block, statements: Sequence[ast.stmt], names: Names | None = None, *, is_last: bool = False
    ) -> None:
        """Statements into a block of their own, which ends in scf.yield; `is_last` when nothing of the function
        follows it."""
        outer = self.names
        self.names = names if names is not None else Names(outer)
        self.blocks += 1
        self.inside += not is_last
        with self.state.inside(block):
            if self.names.own:  # a loop's variables
                self.settle(self.names, stored_in(statements))
            self.body(statements)
            scf.yield_(self.state.b)
        self.names = outer
        self.blocks -= 1
        self.inside -= not is_last

    def statement(self, node: ast.stmt) -> None:
        """One statement; TileSyntaxError, at its place, for one that the language lacks."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise TileSyntaxError(
                f"the kernel language has no '{keyword(node)}' statement", span=self.state.source.span(node)
            )
        with self.state.reading(node):
            handler(self, node)

    # -- assignments
    def expression(self, node: ast.Expr) -> None:
        """A call for its effect."""
        was_in_device = self.state.in_device
        self.evaluate(node.value)
        if self.state.in_device and not was_in_device:
            self.settle(self.names, self.variables)

    def settle(self, names: Names, assigned: Iterable[str]) -> None:
        """Scalars that have a value already and are assigned again become variables, which begin with that value."""
        for name in sorted(assigned):
            value = names.own.get(name)
            if isinstance(value, Scalar) and name in self.variables:
                variable = self.state.new_variable(name, INT32 if value.type is INDEX else value.type)
                self.state.write(variable, value)
                names.own[name] = variable

    def assign(self, node: ast.Assign) -> None:
        """`name = value` or `buffer[index] = value`; several targets take it from left to right."""
        value = self._named(node.targets[0], node.value)
        for target in node.targets:
            self.bind(target, value)

    def _named(self, target: ast.expr, source: ast.expr) -> Any:
        """The value of a right side; what it makes is called as the left side says, part by part."""
        parts = source.elts if isinstance(source, ast.Tuple) else []
        if isinstance(target, ast.Tuple) and len(target.elts) == len(parts) and _are_plain(parts):
            return tuple(self._named(each, part) for each, part in zip(target.elts, parts, strict=True))
        makes = isinstance(target, ast.Name) and isinstance(source, ast.Call)
        self.state.target = target.id if makes and isinstance(target, ast.Name) else ""
        value = self.evaluate(source)
        self.state.target = ""
        return value

    def annotated(self, node: ast.AnnAssign) -> None:
        """`name: type = value`: a variable of a device type."""
        if node.value is None or not isinstance(node.target, ast.Name):
            raise TileSyntaxError("a declaration gives its name a value", help="x: T.int32 = 0")
        kind = self.evaluate(node.annotation)
        is_let = getattr(kind, "is_let", False)
        if is_let and node.target.id in self.variables:
            raise TileSyntaxError(
                f"T.let binds '{node.target.id}' once, for the block it stands in",
                help="x: T.float32 = ... is a variable",
            )
        self.state.target = node.target.id
        value = self.evaluate(node.value)
        self.state.target = ""
        type = getattr(kind, "type", None)
        if isinstance(type, TileType):
            value = self.state.scalars.cast(self.number(value), type)
        self.bind(node.target, value, always_value=is_let)

    def bind(self, target: ast.expr, value: Any, *, always_value: bool = False) -> None:
        """Give a target its value."""
        if isinstance(target, ast.Name):
            self._bind_name(target.id, value, always_value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = items(value)
            if parts is None or len(parts) != len(target.elts):
                raise TileSyntaxError(f"{len(target.elts)} names for {'one value' if parts is None else len(parts)}")
            for each, item in zip(target.elts, parts, strict=True):
                self.bind(each, item)
        elif isinstance(target, ast.Subscript):
            owner = self.evaluate(target.value)
            if not isinstance(owner, (Buffer, Region)):
                raise TileSyntaxError("only elements of buffers are assigned to")
            element = subscripts.region(self.state, owner, self.evaluate(target.slice))
            subscripts.store(self.state, element, self.number(value))
        else:
            raise TileSyntaxError("this can't be assigned to")

    def _bind_name(self, name: str, value: Any, always_value: bool) -> None:
        if isinstance(value, Region) and not any(value.kept):
            value = subscripts.load(self.state, value)
        existing = self.names.get(name)
        if isinstance(existing, (Buffer, Region)) and self._is_of_outer_block(name):
            raise TileSyntaxError(
                f"'{name}' is a buffer of the block around: which memory a name stands for can't depend on what "
                "happens when the kernel runs",
                help="give this one a name of its own",
            )
        if isinstance(existing, Variable) and not always_value:
            scalar = self.state.scalars.scalar(self.number(value), existing.type)
            if scalar.type.is_float and not existing.type.is_float:
                raise InvalidTileProgram(
                    f"'{name}' is {existing.type}, by its first value, and this is {scalar.type}",
                    help=f"begin with a float, or convert: T.cast(x, '{existing.type}')",
                )
            self.state.write(existing, scalar)
            return
        is_number = isinstance(value, (Scalar, int, float)) and not always_value
        if is_number and name in self.variables and self.state.in_device:
            scalar = self.state.scalars.scalar(self.number(value))
            variable = self.state.new_variable(name, INT32 if scalar.type is INDEX else scalar.type)
            self.state.write(variable, scalar)
            self.names.function_level().own[name] = variable
            return
        if isinstance(value, Scalar) and not value.value.name:
            value.value.name = name
        self.names.own[name] = value

    def _is_of_outer_block(self, name: str) -> bool:
        """Whether a name belongs to a block of this function around the present one."""
        at = self.names
        while name not in at.own and at.captured is None and at.parent is not None:
            at = at.parent
        return at is not self.names and name in at.own

    def augmented(self, node: ast.AugAssign) -> None:
        """`target += value` and the like."""
        name = BINARY.get(type(node.op))
        if name is None:
            raise TileSyntaxError("the kernel language has no such assignment")
        right = self.operand(node.value)
        if isinstance(node.target, ast.Name):
            current = self.number(self.name(node.target))
            self._bind_name(node.target.id, self.state.scalars.binary(name, current, right), False)
            return
        if not isinstance(node.target, ast.Subscript):
            raise TileSyntaxError("this can't be assigned to")
        owner = self.evaluate(node.target.value)
        if not isinstance(owner, (Buffer, Region)):
            raise TileSyntaxError("only elements of buffers are assigned to")
        element = subscripts.region(self.state, owner, self.evaluate(node.target.slice))
        old = subscripts.load(self.state, element)
        subscripts.store(self.state, element, self.state.scalars.binary(name, old, right))

    # -- loops
    def for_(self, node: ast.For) -> None:
        """A loop: over a Python range or sequence it's repeated here, over one of the language it's a loop of IR."""
        if node.orelse:
            raise TileSyntaxError("a loop has no else here")
        over = self.evaluate(node.iter)
        if isinstance(over, range):
            over = loops.serial(over.start, over.stop, over.step)
        listed = items(over)
        if listed is not None:
            self._written_out(node, listed)
            return
        if not isinstance(over, Loop):
            raise TileSyntaxError(
                f"a loop can't run over {type(over).__name__}",
                help="range, T.serial, T.unroll, T.vectorized, T.grid; a tuple or a list, also in enumerate or zip",
            )
        self.state.need_device("a loop")
        targets = list(node.target.elts) if isinstance(node.target, ast.Tuple) else [node.target]
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        if len(names) != len(over.bounds) or len(names) != len(targets):
            raise TileSyntaxError(f"{len(targets)} loop variables for {len(over.bounds)} bounds")
        self._nest(over, names, node.body, Names(self.names))

    def _written_out(self, node: ast.For, over: Sequence[Any]) -> None:
        """The body once for each of some Python values."""
        around, self.loops = self.loops, 0  # break and continue here don't mean the loop around
        for item in over:
            self.bind(node.target, item)
            self.body(node.body)
        self.loops = around

    def _nest(self, over: Loop, names: Sequence[str], body: Sequence[ast.stmt], inner: Names) -> None:
        """A loop for the first bound, the rest inside it."""
        state = self.state
        start, stop, step = over.bounds[0]
        lower, upper, by = (state.scalars.index(each) for each in (start, stop, step))
        op = scf.for_(state.b, lower, upper, by, iv_name=names[0])
        op.attributes["tile.loop"] = at.string(over.kind)
        if over.kind in ("unroll", "vectorized"):
            op.attributes["tile.unroll"] = at.UNIT
        inner.own[names[0]] = Scalar(op.body.args[0], INDEX)
        rest = Loop(over.kind, over.bounds[1:])
        self.loops += 1
        if rest.bounds:
            with state.inside(op.body):
                self._nest(rest, names[1:], body, inner)
                scf.yield_(state.b)
        else:
            self.block(op.body, body, inner)
        self.loops -= 1

    def while_(self, node: ast.While) -> None:
        """A loop with a condition on device values."""
        if node.orelse:
            raise TileSyntaxError("a loop has no else here")
        self.state.need_device("a loop")
        before, after = Block(), Block()
        with self.state.inside(before):
            condition = self.state.scalars.condition(self.operand(node.test))
            self.state.b.create("scf.condition", (condition.value,))
        self.loops += 1
        self.block(after, node.body)
        self.loops -= 1
        self.state.b.create("scf.while", (), (), None, (IrRegion((before,)), IrRegion((after,))))

    def break_(self, node: ast.Break) -> None:
        """`break`, out of the loop of IR around it."""
        self._leave("break")

    def continue_(self, node: ast.Continue) -> None:
        """`continue`, with the loop of IR around it."""
        self._leave("continue")

    def _leave(self, name: str) -> None:
        if not self.loops:
            raise TileSyntaxError(
                f"{name} in a loop over Python values, which is written out while the kernel is read",
                help="use range(n)",
            )
        self.state.b.create(f"tile.{name}")

    # -- branches
    def if_(self, node: ast.If) -> None:
        """A branch: on what is known one side is read, on device values it's a branch of IR."""
        test = self.condition(node.test)
        if not isinstance(test, (Scalar, Region)):
            self.body(node.body if test else node.orelse)
            return
        self.state.need_device("a branch")
        condition = self.state.scalars.condition(self.number(test))
        op = scf.if_(self.state.b, condition.value, with_else=bool(node.orelse))
        self.block(op.regions[0].blocks[0], node.body)
        if node.orelse:
            self.block(op.regions[1].blocks[0], node.orelse)

    def assert_(self, node: ast.Assert) -> None:
        """An assertion about what is known while the kernel is read."""
        test = self.evaluate(node.test)
        if isinstance(test, Scalar):
            raise TileSyntaxError(
                "an assertion about a device value", help="assert what is known while the kernel is read"
            )
        if not test:
            raise InvalidTileProgram(
                f"assertion failed: {self.evaluate(node.msg) if node.msg else ast.unparse(node.test)}"
            )

    def pass_(self, node: ast.Pass) -> None:
        """Nothing."""

    # -- macros
    def define(self, node: ast.FunctionDef) -> None:
        """A macro inside a kernel, `@T.inline`."""
        decorators = [self.evaluate(each) for each in node.decorator_list]
        if not any(getattr(each, "is_inline_decorator", False) for each in decorators):
            raise TileSyntaxError("a function in a kernel is a macro", help="put @T.inline above it")
        self.names.own[node.name] = Inline(node, self.names, self.state.source.file)

    def return_(self, node: ast.Return) -> None:
        """The end of a macro, with its value, or of a kernel, without one."""
        if node.value is not None:
            if self.depth == 0:
                raise TileSyntaxError("a kernel returns nothing", help="write into a buffer")
            if self.blocks:
                raise TileSyntaxError(
                    "a macro returns a value at its end, not under a condition that is known when the kernel runs",
                    help="T.if_then_else(condition, a, b)",
                )
            self.result = self.evaluate(node.value)
        if self.inside:
            raise TileSyntaxError(
                "return in a loop, or in a branch that more of a block follows", help="put what follows under else"
            )
        self.ended = True

    def inline(self, macro: Inline, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """The macro's statements here, its names resolved where it was defined."""
        if self.depth >= _MOST_MACROS:
            raise TileSyntaxError(f"macro '{macro.node.name}' calls itself without end")
        names = Names(macro.names if isinstance(macro.names, Names) else Names(None, macro.names))
        names.captured = {}
        bind_arguments(self.evaluate, macro, names, arguments, keywords)
        outer = self.state.source
        self.state.source = Source(macro.file or outer.file, macro.node)
        inner = Statements(self.state, names, variables_of(macro.node), self.depth + 1)
        inner.settle(names, inner.variables)
        inner.body(macro.node.body)
        self.state.source = outer
        return inner.result


def _ends(statements: Sequence[ast.stmt]) -> bool:
    """Whether a run of statements ends by leaving the function."""
    return bool(statements) and isinstance(statements[-1], ast.Return)


def _returns(node: ast.If) -> bool:
    return _ends(node.body) or _ends(node.orelse)


_HANDLERS: dict[type[ast.stmt], Any] = {
    ast.Expr: Statements.expression,
    ast.Assign: Statements.assign,
    ast.AnnAssign: Statements.annotated,
    ast.AugAssign: Statements.augmented,
    ast.For: Statements.for_,
    ast.While: Statements.while_,
    ast.Break: Statements.break_,
    ast.Continue: Statements.continue_,
    ast.If: Statements.if_,
    ast.Assert: Statements.assert_,
    ast.Pass: Statements.pass_,
    ast.FunctionDef: Statements.define,
    ast.Return: Statements.return_,
}


def _are_plain(parts: Sequence[ast.expr]) -> bool:
    """Whether no part stands for several."""
    return not any(isinstance(part, ast.Starred) for part in parts)
