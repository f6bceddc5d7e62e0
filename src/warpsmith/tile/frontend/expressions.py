"""Expressions of the kernel language: a walk over Python's syntax tree that makes ops for what runs on the device.

In: an expression's tree, the names in reach.  Out: a value of `frontend/values.py`, or a Python object.  What depends
on no device value is computed now, by Python's rules.  `and`, `or` and `x if c else y` evaluate their right sides only
where they are wanted: a select where that can't be told, a branch where it can (a load may be out of bounds).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpsmith.errors import InvalidTileProgram, TileSyntaxError, WarpsmithError, did_you_mean
from warpsmith.ir.core.effects import is_pure, is_speculatable
from warpsmith.ir.core.ssa import Block
from warpsmith.ir.dialects import scf
from warpsmith.tile.frontend import numbers, subscripts
from warpsmith.tile.frontend.arguments import check_arguments
from warpsmith.tile.frontend.dots import attribute
from warpsmith.tile.frontend.names import Names, found
from warpsmith.tile.frontend.objects import is_meta, member
from warpsmith.tile.frontend.operators import (
    BINARY,
    COMPARE,
    INSTEAD,
    PAIRING,
    PYTHON_BINARY,
    PYTHON_COMPARE,
    keyword,
)
from warpsmith.tile.frontend.scalars import Operand
from warpsmith.tile.frontend.state import KernelState
from warpsmith.tile.frontend.values import Buffer, Inline, Loop, Picks, Region, Scalar, Variable, items, on_device

__all__ = ["Expressions"]


class Expressions:
    """Evaluates expressions of one kernel; `statements.Statements` adds statements."""

    def __init__(self, state: KernelState, names: Names) -> None:
        self.state = state
        self.names = names

    def inline(self, macro: Inline, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Expand a macro at this place."""
        raise TileSyntaxError("a macro can't be called here")

    # -- entry points
    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression; its errors carry its place."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise TileSyntaxError(f"the kernel language has no {keyword(node)}", span=self.state.source.span(node))
        with self.state.reading(node):
            return handler(self, node)

    def operand(self, node: ast.expr) -> Operand:
        """An expression as a scalar or a Python number."""
        with self.state.reading(node):
            return self.number(self.evaluate(node))

    def number(self, value: Any) -> Operand:
        """A value as a scalar or a Python number."""
        return numbers.number(self.state, value)

    # -- kinds of expression
    def constant(self, node: ast.Constant) -> Any:
        """A literal of Python."""
        return node.value

    def name(self, node: ast.Name) -> Any:
        """What a name means; TileSyntaxError if nothing."""
        value = self.names.get(node.id)
        if not found(value):
            raise TileSyntaxError(f"name '{node.id}' isn't defined", help=did_you_mean(node.id, self.names.all()))
        return self.state.read(value) if isinstance(value, Variable) else value

    def sequence(self, node: ast.Tuple | ast.List) -> Any:
        """A tuple or a list, stars spread out."""
        values: list[Any] = []
        for each in node.elts:
            if isinstance(each, ast.Starred):
                values.extend(self.evaluate(each.value))
            else:
                values.append(self.evaluate(each))
        return tuple(values) if isinstance(node, ast.Tuple) else values

    def dictionary(self, node: ast.Dict) -> Any:
        """A dictionary that is known while the kernel is read."""
        keys = [self.evaluate(key) if key is not None else None for key in node.keys]
        return dict(zip(keys, map(self.evaluate, node.values), strict=True))

    def slice(self, node: ast.Slice) -> slice:
        """`start:stop:step`, each part a number or a device value."""
        parts = [None if part is None else self.evaluate(part) for part in (node.lower, node.upper, node.step)]
        return slice(*parts)

    def attribute(self, node: ast.Attribute) -> Any:
        """`owner.name`: of a buffer, of a device value, or of a Python object."""
        owner = self.evaluate(node.value)
        if isinstance(owner, Buffer):
            return attribute(self.state, owner, node.attr)
        if isinstance(owner, (Scalar, Region)) and node.attr == "dtype":
            return str(owner.type if isinstance(owner, Scalar) else owner.buffer.type)
        try:
            return member(owner, node.attr)
        except AttributeError as error:
            shown = ast.unparse(node.value)
            public = [name for name in dir(owner) if not name.startswith("_")]
            raise TileSyntaxError(f"{shown} has no '{node.attr}'", help=did_you_mean(node.attr, public)) from error

    def subscript(self, node: ast.Subscript) -> Any:
        """`owner[index]`: a region of a buffer, or an item of a Python object."""
        owner, index = self.evaluate(node.value), self.evaluate(node.slice)
        if isinstance(owner, (Buffer, Region)):
            return subscripts.region(self.state, owner, index)
        if isinstance(owner, Picks):
            return owner.take(index)
        if on_device(index):
            raise InvalidTileProgram(
                f"{ast.unparse(node.value)} is Python's: its index must be known while the kernel is read",
                help="put the values into a buffer, or choose by T.if_then_else",
            )
        return self.python(lambda: owner[index])

    def binary(self, node: ast.BinOp) -> Any:
        """Arithmetic: Python's on what is known, an op of IR where a side is a device value."""
        lhs, rhs = self.evaluate(node.left), self.evaluate(node.right)
        name = BINARY.get(type(node.op))
        if name is not None and numbers.is_number(lhs) and numbers.is_number(rhs):
            return self.state.scalars.binary(name, self.number(lhs), self.number(rhs))
        function = PYTHON_BINARY.get(type(node.op))
        if function is None or on_device(lhs) or on_device(rhs):
            is_tile = isinstance(lhs, (Buffer, Region)) or isinstance(rhs, (Buffer, Region))
            help = "primitives compute on tiles: Tx.warp.add(dst, a, b)" if is_tile else None
            raise InvalidTileProgram("this operator has no meaning for these values", help=help)
        return self.python(lambda: function(lhs, rhs))

    def unary(self, node: ast.UnaryOp) -> Any:
        """`-x`, `+x`, `~x` or `not x`."""
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            if not numbers.is_number(value):
                return not value
            operand = self.number(value)
            return (not operand) if not isinstance(operand, Scalar) else self._not(operand)
        operand = self.number(value)
        if isinstance(node.op, ast.USub):
            return self.state.scalars.negate(operand)
        return self.state.scalars.invert(operand) if isinstance(node.op, ast.Invert) else operand

    def _not(self, operand: Scalar) -> Operand:
        return self.state.scalars.invert(self.state.scalars.condition(operand))

    def compare(self, node: ast.Compare) -> Any:
        """A comparison, also a chain of them."""
        left = self.evaluate(node.left)
        result: Any = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node)
            result = self._both(result, self._compared(op, left, right))
            left = right
        return result

    def _compared(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        name = COMPARE.get(type(op))
        if name is not None and numbers.is_number(left) and numbers.is_number(right):
            return self.state.scalars.binary(name, self.number(left), self.number(right))
        if on_device(left) or on_device(right):
            if isinstance(op, (ast.Is, ast.IsNot)):
                return (left is right) is isinstance(op, ast.Is)
            listed = items(right)
            if (
                isinstance(op, (ast.In, ast.NotIn))
                and listed is not None
                and all(map(numbers.is_number, (left, *listed)))
            ):
                return self._is_among(left, listed, isinstance(op, ast.In))
            raise InvalidTileProgram("these can't be compared")
        function = PYTHON_COMPARE[type(op)]
        return self.python(lambda: function(left, right))

    def _is_among(self, value: Any, listed: Sequence[Any], expected: bool) -> Operand:
        """`value in (a, b)`, or `not in`."""
        binary, operand = self.state.scalars.binary, self.number(value)
        result: Operand = not expected
        for each in listed:
            compared = binary("eq" if expected else "ne", operand, self.number(each))
            result = binary("or" if expected else "and", result, compared)
        return result

    def _both(self, left: Any, right: Any) -> Any:
        if not isinstance(left, Scalar):
            return right if left else left
        if not isinstance(right, Scalar):
            return left if right else right
        return self.state.scalars.binary("and", left, right)

    def boolean(self, node: ast.BoolOp) -> Any:
        """`and` and `or`; device values are all evaluated, as neither has effects."""
        is_and = isinstance(node.op, ast.And)
        result = self.evaluate(node.values[0])
        for each in node.values[1:]:
            if not isinstance(result, (Scalar, Region)):
                if bool(result) != is_and:
                    return result
                result = self.evaluate(each)
                continue
            known = self.state.scalars.condition(self.number(result))
            if is_and:
                result = self.choose(known, lambda each=each: self._truth(each), lambda: False, is_condition=True)
            else:
                result = self.choose(known, lambda: True, lambda each=each: self._truth(each), is_condition=True)
        return result

    def _truth(self, node: ast.expr) -> Operand:
        operand = self.operand(node)
        return self.state.scalars.condition(operand) if isinstance(operand, Scalar) else bool(operand)

    def condition(self, node: ast.expr) -> Any:
        """What a branch asks: a scalar, or what Python knows.  InvalidTileProgram for a buffer."""
        test = self.evaluate(node)
        if isinstance(test, Buffer):
            with self.state.reading(node):
                raise InvalidTileProgram(
                    f"the buffer '{test.value.name}' where a condition is needed", help="compare one of its elements"
                )
        return test

    def conditional(self, node: ast.IfExp) -> Any:
        """`a if test else b`; by a device value it's a choice between both."""
        test = self.condition(node.test)
        if not isinstance(test, (Scalar, Region)):
            return self.evaluate(node.body if test else node.orelse)
        condition = self.state.scalars.condition(self.number(test))
        return self.choose(condition, lambda: self.operand(node.body), lambda: self.operand(node.orelse))

    def choose(
        self, condition: Scalar, yes: Callable[[], Operand], no: Callable[[], Operand], *, is_condition: bool = False
    ) -> Operand:
        """`yes` where the condition holds, else `no`: each is computed only where it is wanted, if that can be seen."""
        state = self.state
        blocks = Block(), Block()
        values: list[Operand] = []
        for block, side in zip(blocks, (yes, no), strict=True):
            with state.inside(block):
                values.append(side())
        if all(is_pure(op) and is_speculatable(op) for block in blocks for op in block):
            for block in blocks:
                for op in list(block):
                    op.unlink()
                    state.b.insert(op)
            return self._selected(condition, values, is_condition)
        scalars = state.scalars
        tried = Block()
        with state.inside(tried):  # only the type matters here
            probe = scalars.select(condition, *values)
            assert isinstance(probe, Scalar)
        for made in reversed(list(tried)):
            made.drop_references()
        type = probe.type
        op = scf.if_(state.b, condition.value, [type.ir])
        for region, block, value in zip(op.regions, blocks, values, strict=True):
            region.blocks.clear()
            region.add(block)
            with state.inside(block):
                scf.yield_(state.b, [scalars.cast(value, type).value])
        return Scalar(op.result, type)

    def _selected(self, condition: Scalar, values: Sequence[Operand], is_condition: bool) -> Operand:
        yes, no = values
        scalars = self.state.scalars
        if is_condition:  # and, or
            if no is False:
                return (
                    scalars.binary("and", condition, yes) if isinstance(yes, Scalar) else (condition if yes else False)
                )
            if yes is True:
                return scalars.binary("or", condition, no) if isinstance(no, Scalar) else (True if no else condition)
        return scalars.select(condition, yes, no)

    def joined(self, node: ast.JoinedStr) -> str:
        """An f-string of what is known while the kernel is read."""
        parts: list[str] = []
        for each in node.values:
            value = self.evaluate(each.value if isinstance(each, ast.FormattedValue) else each)
            if on_device(value):
                raise InvalidTileProgram("a device value has no text")
            parts.append(str(value))
        return "".join(parts)

    def call(self, node: ast.Call) -> Any:
        """A call: of the language, of a macro, or of a Python function on what is known."""
        function = self.evaluate(node.func)
        arguments: list[Any] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                arguments.extend(self.evaluate(each.value))
            else:
                arguments.append(self.evaluate(each))
        keywords: dict[str, Any] = {}
        for each in node.keywords:
            value = self.evaluate(each.value)
            keywords.update(value if each.arg is None else {each.arg: value})
        if isinstance(function, Inline):
            return self.inline(function, [*function.first, *arguments], keywords)
        device = [v for v in (*arguments, *keywords.values()) if on_device(v)]
        own = _BUILTINS.get(function) if (device and isinstance(function, type(len))) or function is range else None
        if own is not None:
            return own(self, *arguments, **keywords)
        if device and not _takes_device_values(function):
            raise TileSyntaxError(
                f"{ast.unparse(node.func)} is a Python function: it runs while the kernel is read, and can't take "
                "device values",
                help=INSTEAD.get(function, "make it a macro with @T.inline"),
            )
        if function in PAIRING:
            if any(isinstance(each, Loop) for each in arguments):
                raise TileSyntaxError(
                    f"{ast.unparse(node.func)} of a loop that the kernel makes",
                    help="loop over range, and count by its name",
                )
            return self.python(lambda: list(function(*arguments, **keywords)))
        if device or _takes_device_values(function):
            check_arguments(ast.unparse(node.func), function, arguments, keywords)
        return self.python(lambda: function(*arguments, **keywords))

    def python(self, function: Callable[[], Any]) -> Any:
        """What Python gives; its own errors become ours."""
        try:
            return function()
        except WarpsmithError:
            raise
        except (TypeError, ValueError, IndexError, KeyError, ZeroDivisionError, AttributeError) as error:
            raise TileSyntaxError(f"{type(error).__name__}: {error}") from error


def _takes_device_values(function: object) -> bool:
    """Whether a callable is the kernel language's, or only arranges what it is given."""
    return (
        any(function is each for each in PAIRING)
        or is_meta(function)
        or str(getattr(function, "__module__", "")).startswith("warpsmith.tile")
    )


def _fold(name: str) -> Callable[..., Any]:
    def fold(e: Expressions, *values: Any) -> Any:
        inner = items(values[0]) if len(values) == 1 else None
        numbers = [e.number(each) for each in (values if inner is None else inner)]
        result = numbers[0]
        for each in numbers[1:]:
            result = e.state.scalars.binary(name, result, each)
        return result

    return fold


def _absolute(e: Expressions, value: Any) -> Any:
    return e.state.scalars.function("abs", e.number(value))


def _range(e: Expressions, *values: Any) -> Any:
    from warpsmith.tile.frontend.namespaces.loops import serial

    return serial(*values)


_BUILTINS: dict[Any, Callable[..., Any]] = {
    max: _fold("max"),
    min: _fold("min"),
    abs: _absolute,
    range: _range,
}
_HANDLERS: dict[type[ast.expr], Callable[[Expressions, Any], Any]] = {
    ast.Constant: Expressions.constant,
    ast.Name: Expressions.name,
    ast.Tuple: Expressions.sequence,
    ast.List: Expressions.sequence,
    ast.Dict: Expressions.dictionary,
    ast.Slice: Expressions.slice,
    ast.Attribute: Expressions.attribute,
    ast.Subscript: Expressions.subscript,
    ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary,
    ast.Compare: Expressions.compare,
    ast.BoolOp: Expressions.boolean,
    ast.IfExp: Expressions.conditional,
    ast.Call: Expressions.call,
    ast.JoinedStr: Expressions.joined,
}
