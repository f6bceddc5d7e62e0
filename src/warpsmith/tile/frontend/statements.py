"""Statements of the kernel language: assignments, loops, branches, macros.

In: a function's tree.  Out: ops, at the kernel's place.  An `if` or a `for` whose terms Python knows is decided now;
the others become scf ops.  A name that is assigned once is an SSA value; another is a private variable
(`frontend/assignments.py`).  Reference: tile.md 2.4.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from warpsmith.errors import InvalidTileProgram, TileSyntaxError
from warpsmith.ir import attributes as at
from warpsmith.ir.core import Block
from warpsmith.ir.core import Region as IrRegion
from warpsmith.ir.dialects import scf
from warpsmith.tile.dtypes import INDEX, INT32, TileType
from warpsmith.tile.frontend import subscripts
from warpsmith.tile.frontend.assignments import variables_of
from warpsmith.tile.frontend.expressions import Expressions, Names
from warpsmith.tile.frontend.source import Source
from warpsmith.tile.frontend.state import KernelState
from warpsmith.tile.frontend.values import Buffer, Inline, Loop, Region, Scalar, Variable, items

__all__ = ["Statements"]

_MOST_MACROS = 64  # how deep macros may call each other

_AUGMENTED: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}


class Statements(Expressions):
    """Walks one function's statements.  `loops` counts the loops around, for break and continue."""

    def __init__(self, state: KernelState, names: Names, variables: frozenset[str], depth: int = 0) -> None:
        super().__init__(state, names)
        self.variables = variables
        self.depth = depth
        self.loops = 0
        self.result: Any = None
        self.ended = False

    # -- blocks
    def body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def block(self, block: Block, statements: Sequence[ast.stmt], names: Names | None = None) -> None:
        """Statements into a block of their own, which ends in scf.yield."""
        outer = self.names
        self.names = names if names is not None else Names(outer)
        with self.state.inside(block):
            self.body(statements)
            scf.yield_(self.state.b)
        self.names = outer

    def statement(self, node: ast.stmt) -> None:
        if self.ended:
            raise TileSyntaxError("a statement after return", span=self.state.source.span(node))
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise TileSyntaxError(
                f"the kernel language has no {type(node).__name__} statement", span=self.state.source.span(node)
            )
        with self.state.reading(node):
            handler(self, node)

    # -- assignments
    def expression(self, node: ast.Expr) -> None:
        self.evaluate(node.value)

    def assign(self, node: ast.Assign) -> None:
        first = node.targets[0]
        self.state.target = first.id if isinstance(first, ast.Name) else ""
        value = self.evaluate(node.value)
        self.state.target = ""
        for target in node.targets:
            self.bind(target, value)

    def annotated(self, node: ast.AnnAssign) -> None:
        if node.value is None or not isinstance(node.target, ast.Name):
            raise TileSyntaxError("a declaration gives its name a value", help="x: T.int32 = 0")
        kind = self.evaluate(node.annotation)
        self.state.target = node.target.id
        value = self.evaluate(node.value)
        self.state.target = ""
        type = getattr(kind, "type", None)
        if isinstance(type, TileType):
            value = self.state.scalars.cast(self.number(value), type)
        self.bind(node.target, value, always_value=getattr(kind, "is_let", False))

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
        if isinstance(existing, Variable) and not always_value:
            self.state.write(existing, self.state.scalars.scalar(self.number(value), existing.type))
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

    def augmented(self, node: ast.AugAssign) -> None:
        name = _AUGMENTED.get(type(node.op))
        if name is None:
            raise TileSyntaxError("the kernel language has no such assignment")
        right = self.operand(node.value)
        if isinstance(node.target, ast.Name):
            existing = self.names.get(node.target.id)
            current = self.number(self.state.read(existing) if isinstance(existing, Variable) else existing)
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
        if node.orelse:
            raise TileSyntaxError("a loop has no else here")
        over = self.evaluate(node.iter)
        if isinstance(over, range):
            over = Loop("serial", ((over.start, over.stop, over.step),))
        listed = items(over)
        if listed is not None:
            for item in listed:
                self.bind(node.target, item)
                self.body(node.body)
            return
        if not isinstance(over, Loop):
            raise TileSyntaxError(
                f"a loop can't run over {type(over).__name__}", help="range, T.serial, T.unroll, T.vectorized, T.grid"
            )
        self.state.need_device("a loop")
        targets = list(node.target.elts) if isinstance(node.target, ast.Tuple) else [node.target]
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        if len(names) != len(over.bounds) or len(names) != len(targets):
            raise TileSyntaxError(f"{len(targets)} loop variables for {len(over.bounds)} bounds")
        self._nest(over, names, node.body, Names(self.names))

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
        self._leave("break")

    def continue_(self, node: ast.Continue) -> None:
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
        test = self.evaluate(node.test)
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
        decorators = [self.evaluate(each) for each in node.decorator_list]
        if not any(getattr(each, "is_inline_decorator", False) for each in decorators):
            raise TileSyntaxError("a function in a kernel is a macro", help="put @T.inline above it")
        self.names.own[node.name] = Inline(node, self.names, self.state.source.file)

    def return_(self, node: ast.Return) -> None:
        if node.value is not None:
            if self.depth == 0:
                raise TileSyntaxError("a kernel returns nothing", help="write into a buffer")
            self.result = self.evaluate(node.value)
        self.ended = True

    def inline(self, macro: Inline, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """The macro's statements here, its names resolved where it was defined."""
        if self.depth >= _MOST_MACROS:
            raise TileSyntaxError(f"macro '{macro.node.name}' calls itself without end")
        names = Names(macro.names if isinstance(macro.names, Names) else Names(None, macro.names))
        names.captured = {}
        _bind_arguments(self, macro, names, arguments, keywords)
        outer = self.state.source
        self.state.source = Source(macro.file or outer.file, macro.node)
        inner = Statements(self.state, names, variables_of(macro.node), self.depth + 1)
        inner.body(macro.node.body)
        self.state.source = outer
        return inner.result


def _bind_arguments(
    at_call: Statements, macro: Inline, names: Names, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> None:
    parameters = [each.arg for each in macro.node.args.args]
    if len(arguments) > len(parameters):
        raise TileSyntaxError(f"macro '{macro.node.name}' takes {len(parameters)} arguments, not {len(arguments)}")
    names.own.update(zip(parameters, arguments, strict=False))
    for key, value in keywords.items():
        if key not in parameters:
            raise TileSyntaxError(f"macro '{macro.node.name}' has no parameter '{key}'")
        names.own[key] = value
    defaults = macro.node.args.defaults
    for name, node in zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True):
        if name not in names.own:
            names.own[name] = at_call.evaluate(node)
    missing = [name for name in parameters if name not in names.own]
    if missing:
        raise TileSyntaxError(f"macro '{macro.node.name}' lacks a value for {', '.join(missing)}")


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
