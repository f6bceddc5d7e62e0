"""The nodes of index expressions, and the table that makes equal ones one object.

In: operands in canonical form (`expr` sees to that).  Out: nodes.  Nodes are immutable and interned in a table of weak
references: an expression lives as long as somebody holds it, and two alike are identical.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, TypeVar

from warpsmith.errors import IndexingError

__all__ = [
    "BUILDERS",
    "MAX_DEPTH",
    "Add",
    "Binary",
    "CeilDiv",
    "Const",
    "Expr",
    "FloorDiv",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "OrderKey",
    "Var",
    "const",
    "dim",
    "make_binary",
    "make_sum",
    "pending",
    "split_coefficient",
    "symbol",
    "terms_of",
]

MAX_DEPTH: Final = 250  # a deeper expression is refused: comparing two of them would exhaust the C stack
_KEPT_CONSTANTS: Final = 4096  # constants that stay alive though nobody holds them

OrderKey = tuple[Any, ...]


BUILDERS: Final[dict[type[Expr], Callable[..., Expr]]] = {}
"""The constructor of each operator.  `expr`, which writes them in terms of the nodes, puts them here."""


class Expr:
    """An interned, immutable expression.  Operators build new ones; `is` compares them."""

    __slots__ = ("__weakref__", "depth", "dim_mask", "order", "symbol_mask")

    rank: ClassVar[int]
    order: OrderKey
    depth: int
    dim_mask: int
    symbol_mask: int

    @property
    def children(self) -> tuple[Expr, ...]:
        """The expressions that it is made of."""
        return ()

    @property
    def dims(self) -> tuple[int, ...]:
        """The ids of the dimensions that occur, ascending."""
        return tuple(_bits(self.dim_mask))

    @property
    def symbols(self) -> tuple[int, ...]:
        """The ids of the symbols that occur, ascending."""
        return tuple(_bits(self.symbol_mask))

    @property
    def is_constant(self) -> bool:
        """No variable occurs."""
        return not (self.dim_mask or self.symbol_mask)

    def __add__(self, other: Expr | int) -> Expr:
        return BUILDERS[Add](self, other)

    def __radd__(self, other: int) -> Expr:
        return BUILDERS[Add](self, other)

    def __sub__(self, other: Expr | int) -> Expr:
        return BUILDERS[Add](self, -other)

    def __rsub__(self, other: int) -> Expr:
        return BUILDERS[Add](-self, other)

    def __mul__(self, other: Expr | int) -> Expr:
        return BUILDERS[Mul](self, other)

    def __rmul__(self, other: int) -> Expr:
        return BUILDERS[Mul](self, other)

    def __neg__(self) -> Expr:
        return BUILDERS[Mul](self, -1)

    def __floordiv__(self, other: Expr | int) -> Expr:
        return BUILDERS[FloorDiv](self, other)

    def __mod__(self, other: Expr | int) -> Expr:
        return BUILDERS[Mod](self, other)

    def __str__(self) -> str:
        from warpsmith.indexing.expr_printer import print_expr  # the printer reads this module

        return print_expr(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"


class Const(Expr):
    """An integer."""

    __slots__ = ("value",)
    rank = 8
    value: int

    def __reduce__(self) -> tuple[Callable[[int], Expr], tuple[int]]:
        return const, (self.value,)


class Var(Expr):
    """A dimension or a symbol, by its number.  Symbols sort after dimensions."""

    __slots__ = ("id", "is_symbol")
    rank = 7
    id: int
    is_symbol: bool

    def __reduce__(self) -> tuple[Callable[[int], Expr], tuple[int]]:
        return (symbol if self.is_symbol else dim), (self.id,)


class Add(Expr):
    """A sum of two or more terms, none of them a sum."""

    __slots__ = ("terms",)
    rank = 0
    terms: tuple[Expr, ...]

    def __getattr__(self, name: str) -> OrderKey:
        # Few sums are ever compared, and long ones cost: the key is made on first use.
        if name != "order":
            raise AttributeError(name)
        # A longer sum sorts first, as it would if sums were nested pairs (a + b) + c.
        self.order = (Add.rank, -len(self.terms), *[term.order for term in self.terms])
        return self.order

    @property
    def children(self) -> tuple[Expr, ...]:
        """The terms."""
        return self.terms

    def __reduce__(self) -> tuple[Callable[..., Expr], tuple[Expr, ...]]:
        return BUILDERS[Add], self.terms


class Binary(Expr):
    """An operator with two operands."""

    __slots__ = ("lhs", "rhs")
    lhs: Expr
    rhs: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        """Both sides."""
        return self.lhs, self.rhs

    def __reduce__(self) -> tuple[Callable[[Expr, Expr], Expr], tuple[Expr, Expr]]:
        return BUILDERS[type(self)], (self.lhs, self.rhs)


class Mul(Binary):
    """A product; a constant factor is on the right."""

    __slots__ = ()
    rank = 1


class Mod(Binary):
    """Remainder of floor division: in [0, rhs - 1] for a positive rhs."""

    __slots__ = ()
    rank = 2


class FloorDiv(Binary):
    """Quotient rounded towards minus infinity."""

    __slots__ = ()
    rank = 3


class CeilDiv(Binary):
    """Quotient rounded towards plus infinity; only with a divisor that isn't constant."""

    __slots__ = ()
    rank = 4


class Max(Binary):
    """The greater of two."""

    __slots__ = ()
    rank = 5


class Min(Binary):
    """The lesser of two."""

    __slots__ = ()
    rank = 6


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


# --- reading ---


def terms_of(expr: Expr) -> tuple[Expr, ...]:
    """The terms of a sum; the expression itself when it isn't one."""
    return expr.terms if type(expr) is Add else (expr,)


def split_coefficient(expr: Expr) -> tuple[Expr, int]:
    """`(base, coefficient)` with `base * coefficient == expr`."""
    if type(expr) is Mul and type(expr.rhs) is Const:
        return expr.lhs, expr.rhs.value
    return expr, 1


def pending(roots: Iterable[Expr], done: Mapping[Expr, object]) -> list[Expr]:
    """The nodes below `roots` that aren't in `done`, each once, operands before their users."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False) for root in roots]
    while stack:
        node, entered = stack.pop()
        if entered:
            order.append(node)
        elif node not in seen and node not in done:
            seen.add(node)
            children = node.children
            if children:
                stack.append((node, True))
                stack.extend((child, False) for child in children)
            else:
                order.append(node)
    return order


# --- interning ------------------------------------------------------------------------------------------------

_TableKey = tuple[Any, ...]
_BinaryT = TypeVar("_BinaryT", bound=Binary)


class _KeyedRef(weakref.ref[Expr]):
    """A weak reference that knows its entry in the table."""

    __slots__ = ("key",)
    key: _TableKey


_table: dict[_TableKey, _KeyedRef] = {}
# Re-entrant: dropping the last reference to a node inside `_publish` runs `_forget` on the same thread.
_lock = threading.RLock()


def _forget(ref: weakref.ref[Expr]) -> None:
    assert isinstance(ref, _KeyedRef)
    with _lock:
        if _table.get(ref.key) is ref:
            del _table[ref.key]


def _find(key: _TableKey) -> Expr | None:
    ref = _table.get(key)
    return None if ref is None else ref()


def _publish(key: _TableKey, node: Expr) -> Expr:
    """Puts a new node in the table, unless another thread was first."""
    with _lock:
        known = _find(key)
        if known is not None:
            return known
        ref = _KeyedRef(node, _forget)
        ref.key = key
        _table[key] = ref
    return node


def make_binary(kind: type[_BinaryT], lhs: Expr, rhs: Expr) -> Expr:
    """The one node of a kind with these sides, simplified no further."""
    key = (kind, lhs, rhs)
    known = _find(key)
    if known is not None:
        return known
    node = kind()
    node.lhs, node.rhs = lhs, rhs
    node.order = (kind.rank, lhs.order, rhs.order)
    node.dim_mask = lhs.dim_mask | rhs.dim_mask
    node.symbol_mask = lhs.symbol_mask | rhs.symbol_mask
    node.depth = _checked_depth(max(lhs.depth, rhs.depth) + 1)
    return _publish(key, node)


def make_sum(terms: tuple[Expr, ...], masks: tuple[int, int, int] | None = None) -> Expr:
    """A sum of sorted terms; `masks` are its dimensions, symbols and depth, for a caller who knows them."""
    key = (Add, terms)
    known = _find(key)
    if known is not None:
        return known
    if masks is None:
        dim_mask = symbol_mask = depth = 0
        for term in terms:
            dim_mask |= term.dim_mask
            symbol_mask |= term.symbol_mask
            depth = max(depth, term.depth)
        masks = dim_mask, symbol_mask, depth + 1
    node = Add()
    node.terms = terms
    node.dim_mask, node.symbol_mask, node.depth = masks
    _checked_depth(node.depth)
    return _publish(key, node)


def _checked_depth(depth: int) -> int:
    if depth > MAX_DEPTH:
        raise IndexingError(f"an index expression is nested more than {MAX_DEPTH} levels deep")
    return depth


_recent_constants: dict[int, Const] = {}


def const(value: int) -> Const:
    """The expression for an integer."""
    recent = _recent_constants.get(value)
    if recent is not None:
        return recent
    node = Const()
    node.value = value = int(value)
    node.order = (Const.rank, value)
    node.depth = node.dim_mask = node.symbol_mask = 0
    published = _publish((Const, value), node)
    assert isinstance(published, Const)
    if len(_recent_constants) >= _KEPT_CONSTANTS:
        _recent_constants.clear()
    _recent_constants[value] = published
    return published


def _variable(is_symbol: bool, index: int) -> Var:
    key = (Var, is_symbol, index)
    node = _find(key)
    if node is None:
        new = Var()
        new.is_symbol, new.id = is_symbol, index
        new.order = (Var.rank, is_symbol, index)
        new.depth = 0
        new.dim_mask = 0 if is_symbol else 1 << index
        new.symbol_mask = 1 << index if is_symbol else 0
        node = _publish(key, new)
    assert isinstance(node, Var)
    return node


def dim(index: int) -> Var:
    """Dimension number `index`."""
    return _variable(False, index)


def symbol(index: int) -> Var:
    """Symbol number `index`."""
    return _variable(True, index)


# The variables that all maps are made of stay alive.
_PINNED: Final = ([dim(i) for i in range(16)], [symbol(i) for i in range(8)])
