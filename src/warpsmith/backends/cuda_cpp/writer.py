"""Writing one function: scopes, names, and which expression each value is.

In: a function's ops, in order.  Out: lines of C++.  Handlers of ops are in tables: those in `EXPRESSIONS` give an
expression, which the writer folds into its user or gives a name; those in `STATEMENTS` write lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from warpsmith.backends.cuda_cpp.contraction import feeds_sum
from warpsmith.backends.cuda_cpp.hints import index_hint, is_generic
from warpsmith.backends.cuda_cpp.literals import float_literal, integer_literal, integer_value
from warpsmith.backends.cuda_cpp.names import Scope
from warpsmith.backends.cuda_cpp.plan import Plan, accumulation, is_accumulated
from warpsmith.backends.cuda_cpp.ranges import Ranges
from warpsmith.backends.cuda_cpp.signs import is_signed, memory_is_signed
from warpsmith.backends.cuda_cpp.types import INT, INT64, CType, Expr, assignment, atom, c_type, cast, exact, width_of
from warpsmith.errors import LoweringError
from warpsmith.ir.core.attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr, StringAttr, scalar_attr
from warpsmith.ir.core.ssa import Block, Operation, Trait, Value
from warpsmith.ir.core.types import I1, IndexType, MemRefType, Type, VectorType, element_type

__all__ = ["Handler", "Statement", "Unit", "Writer", "initial", "place"]

Handler = Callable[["Writer", Operation], Expr]
Statement = Callable[["Writer", Operation], None]

_INDENT = "  "
_LONGEST = 76  # longer expressions get a name, if they can
_LONGEST_STORED = 90
_SHORTEST = 16
_STORES = frozenset(("memref.store", "vector.insert"))


@dataclass(slots=True)
class Unit:
    """What the functions of a module share: the helper functions and headers that they need, in order of first use, and
    the names of functions and arrays by their symbols.
    """

    helpers: dict[str, None] = field(default_factory=dict[str, None])
    names: dict[str, str] = field(default_factory=dict[str, str])

    def need(self, helper: str) -> None:
        """Have a helper function written above the kernel."""
        self.helpers[helper] = None


class Writer:
    """Writes the body of one function.

    `index`: the C++ type of index.  `mutable`: the names of variables that are assigned again.  `fills`: the values of
    ops that write them where they are stored, given a pointer to that place.
    """

    def __init__(
        self,
        unit: Unit,
        function: Operation,
        plan: Plan,
        expressions: Mapping[str, Handler],
        statements: Mapping[str, Statement],
    ) -> None:
        self.unit = unit
        self.function = function
        self.plan = plan
        self.expressions = expressions
        self.statements = statements
        bits = function.attributes.get("warpsmith.index_bits")
        self.index = INT if isinstance(bits, IntegerAttr) and bits.value == 32 else INT64
        self.lines: list[str] = []
        self.scope = Scope()
        self.mutable: set[str] = set()
        self.fills: dict[Value, Callable[[str], None]] = {}
        self.ranges = Ranges()
        self._depth = 1
        self._values: dict[Value, Expr] = {}
        self._comments: list[str] = []
        self._commented: dict[Operation, str] = {}
        self._originals: dict[Operation, Operation] = {}

    # -- lines
    def line(self, text: str, *, out: int = 0) -> None:
        """One line at the current depth, or `out` levels out of it, after the comments that wait for it."""
        indent = _INDENT * (self._depth - out)
        self.lines += [f"{indent}// {comment}" for comment in self._comments]
        self._comments.clear()
        self.lines.append(text if text.startswith("#") else indent + text)

    @contextmanager
    def nested(self) -> Generator[None]:
        """Lines and names of an inner block."""
        outer, self.scope = self.scope, Scope(self.scope)
        self._depth += 1
        yield
        self._depth -= 1
        self.scope = outer

    # -- values
    def value(self, value: Value) -> Expr:
        """The expression of a value."""
        found = self._values.get(value)
        if found is None:
            op = value.defining_op
            if op is None or not op.row.has(Trait.CONSTANT):
                raise LoweringError(f"{op.name if op else 'a block argument'} has no C++ value{place(op)}")
            found = self._values[value] = self.expressions[op.name](self, op)
        return found

    def bind(self, value: Value, expr: Expr) -> None:
        """Say what stands for a value."""
        self._values[value] = expr

    def type(self, type: Type, *, signed: bool = False) -> CType:
        """The C++ type of a value's IR type."""
        element = element_type(type)
        if isinstance(type, VectorType):
            self.unit.need("Vec")
        if element.text in ("f16", "bf16"):
            self.unit.need(f"header {element.text}")
        return c_type(type, self.index, signed=signed)

    def variable_type(self, value: Value, expr: Expr | None = None) -> CType:
        """The type that a variable for `value` is declared with."""
        width = width_of(value.type, self.index)
        if width <= 1 or isinstance(value.type, IndexType):
            return self.type(value.type)
        if expr is not None and expr.literal is None:
            return self.type(value.type, signed=expr.type.signed and expr.exact)
        return self.type(value.type, signed=is_signed(value))

    def name(self, value: Value, hint: str = "") -> str:
        """A new name for a value: its own, else that of the HLO instruction or buffer it comes from."""
        return self.scope.new(hint or self.hint(value))

    def hint(self, value: Value) -> str:
        """A name to begin with for a value's variable."""
        if not is_generic(value.name):
            return value.name
        op = value.defining_op
        if op is not None and op.name in ("memref.load", "vector.load"):
            suffix = "_vec" if isinstance(value.type, VectorType) else "_value"
            return self.value(op.operands[0]).text + suffix
        if op is not None and op.name == "vector.extract":
            return self.value(op.operands[0]).text.removesuffix("_vec") + "_value"
        if isinstance(value.type, IndexType):
            return index_hint(value, lambda base: self.value(base).text)
        if op is not None and op.name == "scf.if" and op.body.terminator.operands[0].defining_op is not None:
            return self.hint(op.body.terminator.operands[0])
        if op is not None and op.location.names:
            return op.location.names[-1]
        return "flag" if value.type is I1 else "value"

    def declare(self, value: Value, expr: Expr, *, hint: str = "", const: bool = True) -> Expr:
        """A variable that holds `expr`."""
        type = self.variable_type(value, expr)
        name = self.name(value, hint)
        spelled = "auto" if expr.text.startswith(("*reinterpret_cast<", "load_vec<", "bit_cast<")) else type.name
        text = initial(self.converted(expr, value.type, type), spelled)
        self.line(f"{'const ' if const else ''}{spelled} {name} = {text};")
        return self.named(value, name, type, const=const)

    def named(self, value: Value, name: str, type: CType, *, const: bool = True) -> Expr:
        """Bind a value to a variable."""
        if not const:
            self.mutable.add(name)
        found = atom(name, type)
        self.bind(value, found)
        return found

    def converted(self, expr: Expr, type: Type, target: CType | None = None, *, narrow: bool = False) -> str:
        """Text to store `expr` as an IR type in a variable of type `target`: C++ cuts 8 and 16 bits by itself, not 4.

        `narrow`: in a list in braces, where C++ converts nothing.
        """
        width = width_of(type, self.index)
        if width > 1 and expr.literal is not None and not isinstance(type, IndexType):
            return integer_value(expr.literal, width, signed=target is not None and target.signed)
        if narrow and width:
            return cast(self.type(type), exact(expr, width)).text
        return exact(expr, width).text if width in (2, 4) else expr.text

    def named_operand(self, value: Value) -> str:
        """The name of the variable that holds a value; one is made where there is none."""
        found = self.value(value)
        if re.fullmatch(r"\w+", found.text) and found.literal is None:
            return found.text
        return self.declare(value, found).text

    # -- ops
    def block(self, block: Block) -> None:
        """All ops of a block but its terminator."""
        for op in block:
            comment = op.attributes.get("tile.comment")
            if isinstance(comment, StringAttr):
                self._commented[self._beginning(op)] = comment.value
        for op in block:
            if not op.row.traits & Trait.TERMINATOR:
                self.visit(op)

    def _beginning(self, op: Operation) -> Operation:
        """The first op of those just before this one that compute something for it alone."""
        found = {op}
        first = op
        while (before := first.prev) is not None and before.name in self.expressions:
            users = [user for result in before.results for user in result.users]
            alone = all(any(each is user or each.is_ancestor_of(user) for each in found) for user in users)
            if not alone or "tile.comment" in before.attributes or before.location.line != op.location.line:
                break
            found.add(before)
            first = before
        return first

    def visit(self, op: Operation) -> None:
        """Write the statements of one op."""
        if op in self._commented:
            self._comments.append(self._commented[op])
        if op.row.has(Trait.CONSTANT):
            return
        self._shorten(op)
        handler = self.expressions.get(op.name)
        if handler is None:
            statement = self.statements.get(op.name)
            if statement is None:
                raise LoweringError(f"{op.name} has no C++ form{place(op)}")
            statement(self, op)
            return
        result = op.results[0]
        if not result.users and op.name != "gpu.shuffle":
            return
        if self.is_lanewise(op):
            self._lanes(op, handler)
            return
        expr = handler(self, op)
        accumulated = accumulation(op)
        if accumulated is not None and self.value(accumulated).text in self.mutable:
            variable = self.value(accumulated)
            self.line(assignment(variable.text, expr.text))
            self.bind(result, variable)
            return
        self.settle(op, expr)

    def _shorten(self, op: Operation) -> None:
        """Give names to the longest operands of what would be a long expression."""
        if op.parent in self.plan.conditional:
            return
        found = [(len(self.value(v).text), v) for v in op.operands if v in self._values or _is_constant(v)]
        total = sum(length for length, _ in found)
        most = _LONGEST_STORED if op.name in _STORES else _LONGEST
        for length, value in sorted(found, key=lambda each: -each[0]):
            if total <= most or length < _SHORTEST:
                break
            if isinstance(value.type, (MemRefType, VectorType)):
                continue
            maker = value.defining_op
            if maker is None or maker not in self.plan.folded or maker.parent in self.plan.conditional:
                continue
            total -= length - len(self.declare(value, self._values[value]).text)

    def settle(self, op: Operation, expr: Expr) -> None:
        """Fold the result of an op into its user, or give it a name."""
        result = op.results[0]
        if op in self.plan.folded and (len(expr.text) <= self._longest(op) or self._has_to_fold(op)):
            self.bind(result, expr)
        elif re.fullmatch(r"\w+", expr.text) and expr.text not in self.mutable:
            self.bind(result, expr)  # another name for a constant
        else:
            self.declare(result, expr, const=not is_accumulated(result))

    def _longest(self, op: Operation) -> int:
        """A value that is only stored may fill the line."""
        user = next(iter(op.results[0].users))
        return _LONGEST_STORED if user.name in _STORES else _LONGEST

    def _has_to_fold(self, op: Operation) -> bool:
        """An arm of a conditional expression has no place for a statement; a move is one."""
        return op.parent in self.plan.conditional or op.name == "vector.load"

    def is_folded(self, op: Operation) -> bool:
        """Whether the op is written inside the statements of others."""
        return op in self.plan.folded

    def is_nonnegative(self, value: Value) -> bool:
        """Whether an integer is known not to be negative."""
        return self.ranges.is_nonnegative(value)

    def is_never_nan(self, value: Value) -> bool:
        """Whether a float is known not to be NaN."""
        op = value.defining_op
        return op is not None and op.row.has(Trait.CONSTANT)

    def feeds_sum(self, op: Operation) -> bool:
        """Whether the op's product goes into a sum, so that nvcc might fuse them."""
        return feeds_sum(self._originals.get(op, op))

    def memory_type(self, base: Value) -> CType:
        """The type of a buffer's elements."""
        assert isinstance(base.type, MemRefType)
        element = base.type.element
        return self.type(element, signed=memory_is_signed(base))

    # -- lanes
    def is_lanewise(self, op: Operation) -> bool:
        """Whether the op does the same to each lane of vectors."""
        return op.row.has(Trait.ELEMENTWISE) and any(isinstance(r.type, VectorType) for r in op.results)

    def _lanes(self, op: Operation, handler: Handler) -> None:
        """An op on vectors: a loop over their lanes."""
        result = op.result
        assert isinstance(result.type, VectorType)
        type = self.type(result.type)
        sources = [self._lane_source(v) for v in op.operands]
        name = self.name(result)
        self.line(f"{type.name} {name};")
        self.line("#pragma unroll")
        with_scope = Scope(self.scope)
        k = with_scope.new("k")
        scalars = [Value(element_type(v.type)) for v in op.operands]
        clone = Operation(op.row, scalars, [element_type(result.type)], op.attributes, (), (), op.location)
        self._originals[clone] = op
        for scalar, (text, splat) in zip(scalars, sources, strict=True):
            self.bind(scalar, splat or atom(f"{text}[{k}]", self.type(scalar.type)))
        lane = handler(self, clone)
        self.line(
            f"for (int {k} = 0; {k} < {result.type.elements}; ++{k}) {name}[{k}] = "
            f"{self.converted(lane, result.type.element)};"
        )
        self.named(result, name, type, const=False)

    def _lane_source(self, value: Value) -> tuple[str, Expr | None]:
        """A vector's name; the scalar of a splat."""
        op = value.defining_op
        if op is not None and op.row.has(Trait.CONSTANT):
            attribute = op.attributes["value"]
            if isinstance(attribute, DenseAttr) and attribute.splat is not None:
                return "", self.literal(attribute.splat)
        if not isinstance(value.type, VectorType):
            return "", self.value(value)
        return self.named_operand(value), None

    def literal(self, attribute: Attribute) -> Expr:
        """A constant's text."""
        if isinstance(attribute, FloatAttr):
            return float_literal(attribute)
        assert isinstance(attribute, IntegerAttr)
        return integer_literal(attribute.value, width_of(attribute.type, self.index))

    def vector_constant(self, attribute: DenseAttr) -> Expr:
        """A list of a vector's lanes; none for zeros."""
        type = self.type(attribute.type)
        if attribute.is_splat and not any(attribute.data):
            return atom(f"{type.name}{{}}", type)
        element = attribute.type.element
        scalars = [scalar_attr(each, element) for each in attribute.array]
        lanes = [self.converted(self.literal(each), element, narrow=True) for each in scalars]
        return atom(f"{type.name}{{{', '.join(lanes)}}}", type)


def _is_constant(value: Value) -> bool:
    op = value.defining_op
    return op is not None and op.row.has(Trait.CONSTANT)


def initial(text: str, type: str) -> str:
    """What a variable of a type starts as: a list in braces doesn't say the type once more."""
    return text.removeprefix(type) if text.startswith(f"{type}{{") else text


def place(op: Operation | None) -> str:
    """The instruction that an op came from, for the end of a message."""
    return f" (from {', '.join(op.location.names)})" if op is not None and op.location.names else ""
