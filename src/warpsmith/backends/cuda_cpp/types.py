"""C++ types of IR types, and typed pieces of C++ text.

In: IR types.  Out: `CType`, `Expr`, and how expressions are put together with no parentheses that aren't needed.

IR integers have no sign; a C++ expression has one.  Sums wrap in IR, so integer data is unsigned in C++ unless it comes
from an op that is signed.  An integer of fewer than 32 bits is computed in a wider one: `exact` says whether the upper
bits are right as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from warpsmith.errors import LoweringError
from warpsmith.ir.core.types import BF16, F16, F32, F64, FloatType, IndexType, IntegerType, Type, VectorType

__all__ = [
    "BOOL",
    "INT",
    "INT64",
    "UNSIGNED",
    "UNSIGNED64",
    "CType",
    "Expr",
    "Level",
    "assignment",
    "atom",
    "binary",
    "c_type",
    "call",
    "cast",
    "conditional",
    "exact",
    "integer_type",
    "parenthesised",
    "prefix",
    "width_of",
]


@dataclass(frozen=True, slots=True)
class CType:
    """A C++ type: its name, its bits, and for integers whether it has a sign."""

    name: str
    bits: int
    is_integer: bool = False
    signed: bool = False


BOOL = CType("bool", 1, True)
INT, UNSIGNED = CType("int", 32, True, True), CType("unsigned", 32, True)
INT64, UNSIGNED64 = CType("int64_t", 64, True, True), CType("uint64_t", 64, True)
FLOATS: dict[Type, CType] = {
    F64: CType("double", 64),
    F32: CType("float", 32),
    F16: CType("__half", 16),
    BF16: CType("__nv_bfloat16", 16),
}
_INTEGERS = {
    (8, True): CType("int8_t", 8, True, True),
    (8, False): CType("uint8_t", 8, True),
    (16, True): CType("int16_t", 16, True, True),
    (16, False): CType("uint16_t", 16, True),
    (32, True): INT,
    (32, False): UNSIGNED,
    (64, True): INT64,
    (64, False): UNSIGNED64,
}


def integer_type(bits: int, signed: bool) -> CType:
    """The smallest C++ integer that holds `bits`; a bool for one."""
    if bits == 1:
        return BOOL
    return _INTEGERS[max(8, 1 << (bits - 1).bit_length()), signed]


def c_type(type: Type, index: CType, *, signed: bool = False) -> CType:
    """The C++ type of values of an IR type.  Floats of 8 and 4 bits are their codes.  LoweringError for other types."""
    match type:
        case IndexType():
            return index
        case IntegerType():
            return integer_type(type.width, signed)
        case FloatType():
            return FLOATS.get(type) or integer_type(type.width, False)
        case VectorType() if type.rank == 1:
            element = c_type(type.element, index, signed=signed)
            return CType(f"Vec<{element.name}, {type.elements}>", element.bits * type.elements)
        case _:
            raise LoweringError(f"type {type} has no C++ form")


def width_of(type: Type, index: CType) -> int:
    """Bits of an integer type in the IR."""
    return index.bits if isinstance(type, IndexType) else type.width if isinstance(type, IntegerType) else 0


# ------------------------------------------------------------------------------------------------------- expressions
class Level:
    """How tightly an expression binds; higher is tighter."""

    CONDITIONAL, OR, AND, BIT_OR, BIT_XOR, BIT_AND, EQUAL, LESS, SHIFT, SUM, PRODUCT, PREFIX, ATOM = range(13)


_LEVELS: dict[str, int] = {
    "||": Level.OR,
    "&&": Level.AND,
    "|": Level.BIT_OR,
    "^": Level.BIT_XOR,
    "&": Level.BIT_AND,
    **dict.fromkeys(("==", "!="), Level.EQUAL),
    **dict.fromkeys(("<", "<=", ">", ">="), Level.LESS),
    **dict.fromkeys(("<<", ">>"), Level.SHIFT),
    **dict.fromkeys(("+", "-"), Level.SUM),
    **dict.fromkeys(("*", "/", "%"), Level.PRODUCT),
}
_ASSOCIATIVE = frozenset(("+", "*", "&", "|", "^", "&&", "||"))
# Where compilers ask for parentheses although the grammar doesn't.
_UNCLEAR: dict[str, frozenset[str]] = {
    "||": frozenset(("&&",)),
    **dict.fromkeys(("<<", ">>"), frozenset(("+", "-"))),
    **dict.fromkeys(
        ("&", "|", "^"), frozenset(("+", "-", "<<", ">>", "&", "|", "^", "==", "!=", "<", "<=", ">", ">="))
    ),
}


@dataclass(frozen=True, slots=True)
class Expr:
    """C++ text, its outermost operator and how tightly that binds.

    `exact`: the value is right in all bits of `type`, not only in the low ones.  `literal`: the integer it stands for.
    """

    text: str
    level: int
    type: CType
    op: str = ""
    exact: bool = True
    literal: int | None = None

    def of_type(self, type: CType, *, exact: bool = True) -> Expr:
        """The same text as an expression of another type; `exact` says whether its value is exactly the op's."""
        return replace(self, type=type, exact=exact)


def atom(text: str, type: CType) -> Expr:
    """A name, a call, an element: nothing binds tighter."""
    return Expr(text, Level.ATOM, type)


def call(function: str, arguments: tuple[Expr, ...], type: CType) -> Expr:
    """`function(arguments)` of a result type."""
    return atom(f"{function}({', '.join(a.text for a in arguments)})", type)


def cast(type: CType, value: Expr) -> Expr:
    """A conversion, written as a call of the type; none when it has that type."""
    if value.type == type and value.exact and value.literal is None:
        return value
    return call(type.name, (value,), type)


def parenthesised(value: Expr, level: int) -> str:
    """The text of an operand that has to bind at least as tightly as `level`."""
    return value.text if value.level >= level else f"({value.text})"


def prefix(op: str, value: Expr, type: CType, *, exact: bool = True) -> Expr:
    """`op value`, in parentheses where C++ needs them (`-(-x)`)."""
    text = parenthesised(value, Level.PREFIX)
    if op == value.op == "!":
        return Expr(text[1:], Level.PREFIX, type, "", exact)
    if text.startswith("-") and op == "-":
        text = f"({text})"
    return Expr(op + text, Level.PREFIX, type, op, exact)


def binary(op: str, lhs: Expr, rhs: Expr, type: CType, *, exact: bool = True) -> Expr:
    """`lhs op rhs`.  Integer sums and products of sums and products need no parentheses on the right; floats do."""
    level = _LEVELS[op]
    chains = op in _ASSOCIATIVE and rhs.op == op and type.is_integer
    left = _operand(op, lhs, level)
    right = _operand(op, rhs, level if chains else level + 1)
    return Expr(f"{left} {op} {right}", level, type, op, exact)


def _operand(op: str, value: Expr, level: int) -> str:
    if value.op != op and value.op in _UNCLEAR.get(op, ()) and value.level < Level.PREFIX:
        return f"({value.text})"
    return parenthesised(value, level)


def conditional(condition: Expr, yes: Expr, no: Expr, type: CType, *, exact: bool = True) -> Expr:
    """`condition ? yes : no`."""
    parts = (
        parenthesised(condition, Level.OR),
        parenthesised(yes, Level.OR),
        parenthesised(no, Level.CONDITIONAL),
    )
    return Expr(f"{parts[0]} ? {parts[1]} : {parts[2]}", Level.CONDITIONAL, type, "?", exact)


def assignment(target: str, value: str) -> str:
    """`target = value;`, or `target += rest;` where the value begins with the target."""
    for op in ("+", "-", "*", "/"):
        rest = value.removeprefix(f"{target} {op} ")
        if rest != value and _is_operand(rest, op):
            return f"{target} {op}= {rest};"
    return f"{target} = {value};"


def _is_operand(rest: str, op: str) -> bool:
    """Whether what follows the first operator is its whole right operand: `a + b * c`, not `a + b - c`."""
    depth = 0
    for i, c in enumerate(rest):
        depth += (c in "([{") - (c in ")]}")
        ends = c == " " and (op in "*/" or rest[i + 1] not in "*/%") and rest[i - 1] not in "*/%"
        if depth == 0 and ends:
            return False
    return True


def exact(value: Expr, width: int) -> Expr:
    """The value with all bits of its type right; without a sign where bits had to be cut."""
    if value.exact or width == 1:
        return value
    if width in (8, 16):
        return cast(integer_type(width, False), value)
    masked = binary("&", value, Expr(str((1 << width) - 1), Level.ATOM, INT), INT)
    return masked.of_type(integer_type(width, False))
