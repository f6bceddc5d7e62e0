"""Values as Python expressions.

In: SSA values.  Out: text with as few parentheses as Python's precedence allows.  A value that is used once, by an op
that comes before anything could change it, is written where it is used; others get a name and a line of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsmith.indexing import Add, Binary, Const, Expr, FloorDiv, Mod, Mul, Var
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.effects import is_pure
from warpsmith.ir.core.ssa import Operation, OpResult, Trait, Value
from warpsmith.ir.core.types import I1, VectorType
from warpsmith.ir.dialects import gpu

__all__ = ["Names", "Printer", "value_text"]

_ATOM, _UNARY, _PRODUCT, _SUM, _SHIFT, _AND, _XOR, _OR, _COMPARE, _NOT, _LOWEST = range(11)

_INFIX: dict[str, tuple[str, int]] = {
    **dict.fromkeys(("arith.addi", "arith.addf"), ("+", _SUM)),
    **dict.fromkeys(("arith.subi", "arith.subf"), ("-", _SUM)),
    **dict.fromkeys(("arith.muli", "arith.mulf"), ("*", _PRODUCT)),
    "arith.divf": ("/", _PRODUCT),
    **dict.fromkeys(("arith.divui", "arith.floordivsi"), ("//", _PRODUCT)),
    "arith.remui": ("%", _PRODUCT),
    **dict.fromkeys(("arith.shrui", "arith.shrsi"), (">>", _SHIFT)),
    "arith.shli": ("<<", _SHIFT),
    "arith.andi": ("&", _AND),
    "arith.xori": ("^", _XOR),
    "arith.ori": ("|", _OR),
}
_CALLS: dict[str, str] = {
    **dict.fromkeys(("arith.maximumf", "arith.maxsi", "arith.maxui", "arith.maxnumf"), "T.max"),
    **dict.fromkeys(("arith.minimumf", "arith.minsi", "arith.minui", "arith.minnumf"), "T.min"),
    "arith.divsi": "T.truncdiv",
    "arith.remsi": "T.truncmod",
    "math.powf": "T.pow",
    "math.absf": "T.abs",
    "math.absi": "T.abs",
    "math.roundeven": "T.round",
}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FLOAT_COMPARISONS = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
_NAMES = {
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
    "bf16": "bfloat16",
    "i1": "bool",
    "index": "int32",
    **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)},
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
}
_CASTS = frozenset(
    f"arith.{n}" for n in ("extf", "truncf", "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui")
)
_IDS = frozenset(("gpu.thread_id", "gpu.block_id", "tile.scope_id"))
_INVISIBLE = frozenset(("arith.index_cast", "arith.index_castui"))


_OF_UNSIGNED = frozenset(("arith.divui", "arith.remui", "arith.shrui"))


def dtype_name(type: object, *, is_unsigned: bool = False) -> str:
    """An IR element type as the kernel language calls it; IR doesn't tell integers without a sign from others."""
    found = _NAMES.get(str(type), str(type))
    return f"u{found}" if is_unsigned and found.startswith("int") else found


class Names:
    """A name for each value, the hint where it is free."""

    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()

    def of(self, value: Value, default: str = "v") -> str:
        """The value's name."""
        found = self.names.get(value)
        if found is None:
            stem = value.name or default
            found, number = stem, 0
            while found in self.taken:
                number += 1
                found = f"{stem}_{number}"
            self.names[value] = found
            self.taken.add(found)
        return found


class Printer:
    """Expression text for the values of one kernel."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.kept: set[Value] = set()  # values with a line of their own

    # -- folding
    def folds(self, op: Operation) -> bool:
        """Whether the op's only result is written where it is used."""
        if len(op.results) != 1 or op.regions or op.name in _IDS:
            return False
        value = op.results[0]
        if op.row.has(Trait.CONSTANT) or op.name == "tile.region":
            return True
        if op.name in _INVISIBLE or (not value.users and is_pure(op)):
            return True
        if not value.has_one_use:
            return False
        user = next(iter(value.users))
        if is_pure(op):
            return user.block is op.block or not _in_loop_below(user, op)
        place = self._printed_at(user) if _is_load(op) else None
        return place is not None and place.block is op.block and not _changed_between(op, place)

    def _printed_at(self, op: Operation) -> Operation | None:
        """The op in whose line an op is written; None where it is written in several."""
        while self.folds(op) and op.results[0] not in self.kept:
            if not op.results[0].has_one_use:
                return None
            op = next(iter(op.results[0].users))
        return op

    # -- text
    def text(self, value: Value, level: int = _LOWEST) -> str:
        """A value, in parentheses where its surroundings bind tighter than `level`."""
        found, own = self._leveled(value)
        return f"({found})" if own > level else found

    def _leveled(self, value: Value) -> tuple[str, int]:
        """A value's text, and how tightly it binds."""
        op = value.defining_op
        if op is None or value in self.kept or not isinstance(value, OpResult) or not self.folds(op):
            return self.names.of(value), _ATOM
        return self.operation(op)

    def operation(self, op: Operation) -> tuple[str, int]:
        """The text of an op's result, and how tightly it binds."""
        name = op.name
        if op.row.has(Trait.CONSTANT):
            return self._constant(op), _ATOM
        if name in _INFIX:
            sign, level = _INFIX[name]
            if name == "arith.xori" and str(op.result.type) == "i1":
                return f"not {self.text(op.operands[0], _NOT)}", _NOT
            left, right = self.text(op.operands[0], level), self.text(op.operands[1], level - 1)
            if all(_is_constant(v) for v in op.operands):  # Python would compute with its own numbers
                left = f"T.{dtype_name(op.result.type, is_unsigned=name in _OF_UNSIGNED)}({left})"
            return f"{left} {sign} {right}", level
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, op)
        if name in _CASTS:
            is_unsigned = name == "arith.fptoui" or (name == "arith.extui" and op.operands[0].type is not I1)
            return (
                f'T.cast({self.text(op.operands[0])}, "{dtype_name(op.result.type, is_unsigned=is_unsigned)}")',
                _ATOM,
            )
        if name in _INVISIBLE:
            return self._leveled(op.operands[0])
        if name in _CALLS or name.startswith("math."):
            function = _CALLS.get(name, f"T.{name.removeprefix('math.')}")
            return f"{function}({', '.join(self.text(v) for v in op.operands)})", _ATOM
        return f"T.{name.replace('.', '_')}({', '.join(self.text(v) for v in op.operands)})", _ATOM

    @staticmethod
    def _constant(op: Operation) -> str:
        value = op.attributes["value"]
        if isinstance(value, at.IntegerAttr):
            return str(bool(value.value)) if value.type is I1 else str(value.value)
        if isinstance(value, at.FloatAttr):
            number = value.value
            if number in (float("inf"), float("-inf")):
                return f'{"-" if number < 0 else ""}T.infinity("{dtype_name(value.type)}")'
            return str(value.scalar) if abs(number) < float("inf") else f'T.nan("{dtype_name(value.type)}")'
        return "..."

    def expr(self, expr: Expr, values: Sequence[Value], level: int = _LOWEST) -> str:
        """An indexing expression over values."""
        own = _ATOM
        match expr:
            case Const():
                text = str(expr.value)
            case Var():
                return self.text(values[expr.id], level)
            case Add():
                own = _SUM
                text = " + ".join(self.expr(each, values, _SUM) for each in expr.terms).replace("+ -", "- ")
            case Mul() | FloorDiv() | Mod():
                own = _PRODUCT
                sign = {Mul: "*", FloorDiv: "//", Mod: "%"}[type(expr)]
                text = f"{self.expr(expr.lhs, values, _PRODUCT)} {sign} {self.expr(expr.rhs, values, _UNARY)}"
            case Binary():
                function = type(expr).__name__.lower()
                text = f"T.{function}({self.expr(expr.lhs, values)}, {self.expr(expr.rhs, values)})"
            case _:
                text = str(expr)
        return f"({text})" if own > level else text

    def element(self, memory: Value, indices: Sequence[Value], lanes: int = 1) -> str:
        """`A[i, j]`, or `A[i:][:4]`, four elements from i on."""
        if _is_variable(memory):
            return self.names.of(memory)
        if lanes == 1:
            return f"{self.names.of(memory)}[{', '.join(self.text(v) for v in indices)}]"
        start = self.text(indices[0])
        if start.isdigit():
            return f"{self.names.of(memory)}[{start}:{int(start) + lanes}]"
        return f"{self.names.of(memory)}[{start} :][:{lanes}]"

    def pointer(self, memory: Value, index: Value) -> str:
        """`A[i:]`, the memory from element i on."""
        return f"{self.names.of(memory)}[{self.text(index)} :]"

    def matrix(self, name: str, op: Operation) -> str:
        """`T.ptx.ldmatrix.x4.trans`."""
        transposed = ".trans" if op.int_attr("transpose") else ""
        return f"T.ptx.{name}.x{op.int_attr('num_tiles')}{transposed}"


def value_text(value: Value) -> str:
    """A value for a message: what its author called it, else how it is computed."""
    op = value.defining_op
    if op is None or (value.name and not op.row.has(Trait.CONSTANT)):
        return value.name or "?"
    text, _ = _Unnamed(Names()).operation(op)
    return text if len(text) <= _LONGEST else "..."


_LONGEST = 40


class _Unnamed(Printer):
    """Values without a name are written out however often they are used."""

    def folds(self, op: Operation) -> bool:
        return len(op.results) == 1 and not op.regions and (op.row.has(Trait.CONSTANT) or not op.results[0].name)


def _is_constant(value: Value) -> bool:
    op = value.defining_op
    return op is not None and op.row.has(Trait.CONSTANT)


def _is_variable(memory: Value) -> bool:
    op = memory.defining_op
    return op is not None and "tile.variable" in op.attributes


def _is_load(op: Operation) -> bool:
    return op.name in ("memref.load", "vector.load", "tile.load")


def _changed_between(op: Operation, user: Operation) -> bool:
    at_op = op.next
    while at_op is not None and at_op is not user:
        if not is_pure(at_op) and not _is_load(at_op):
            return True
        at_op = at_op.next
    return at_op is None


def _in_loop_below(user: Operation, op: Operation) -> bool:
    """Whether the user is in a loop that the op is outside of."""
    at_op: Operation | None = user.parent
    while at_op is not None and at_op is not op.parent:
        if at_op.row.has(Trait.LOOP):
            return True
        at_op = at_op.parent
    return False


def _load_text(p: Printer, op: Operation) -> tuple[str, int]:
    type = op.result.type
    lanes = type.elements if isinstance(type, VectorType) else 1
    return p.element(op.operands[0], op.operands[1:], lanes), _ATOM


def _cmpi(p: Printer, op: Operation) -> tuple[str, int]:
    sign = _COMPARISONS[op.int_attr("predicate")]
    return f"{p.text(op.operands[0], _OR)} {sign} {p.text(op.operands[1], _OR)}", _COMPARE


def _cmpf(p: Printer, op: Operation) -> tuple[str, int]:
    sign = _FLOAT_COMPARISONS.get(op.int_attr("predicate"), "<?>")
    return f"{p.text(op.operands[0], _OR)} {sign} {p.text(op.operands[1], _OR)}", _COMPARE


def _select(p: Printer, op: Operation) -> tuple[str, int]:
    return f"T.if_then_else({', '.join(p.text(v) for v in op.operands)})", _ATOM


def _negf(p: Printer, op: Operation) -> tuple[str, int]:
    return f"-{p.text(op.operands[0], _UNARY)}", _UNARY


def _indexing(p: Printer, op: Operation) -> tuple[str, int]:
    expr = gpu.map_of(op).results[0]
    level = _SUM if isinstance(expr, Add) else _PRODUCT if isinstance(expr, Binary) else _ATOM
    return p.expr(expr, op.operands), level


def _shuffle(p: Printer, op: Operation) -> tuple[str, int]:
    kind = gpu.shuffle_mode(op)
    name = "T.tvm_warp_shuffle" + ("" if kind == "idx" else f"_{kind}")
    return f"{name}(0xFFFFFFFF, {p.text(op.operands[0])}, {p.text(op.operands[1])}, 32, 32)", _ATOM


def _elect(_: Printer, op: Operation) -> tuple[str, int]:
    return "T.cuda.elect_sync()", _ATOM


def _load_matrix(p: Printer, op: Operation) -> tuple[str, int]:
    return f"{p.matrix('ldmatrix', op)}({p.pointer(*op.operands)})", _ATOM


def _multiply(p: Printer, op: Operation) -> tuple[str, int]:
    return f"T.ptx.mma.m16n8k16({', '.join(p.text(v) for v in op.operands)})", _ATOM


def _bitcast(p: Printer, op: Operation) -> tuple[str, int]:
    return f'T.reinterpret("{dtype_name(op.result.type)}", {p.text(op.operands[0])})', _ATOM


_SPECIAL: dict[str, Callable[[Printer, Operation], tuple[str, int]]] = {
    "memref.load": _load_text,
    "vector.load": _load_text,
    "tile.load": _load_text,
    "arith.cmpi": _cmpi,
    "arith.cmpf": _cmpf,
    "arith.select": _select,
    "arith.negf": _negf,
    "arith.bitcast": _bitcast,
    "xla_gpu.apply_indexing": _indexing,
    "gpu.shuffle": _shuffle,
    "nvvm.elect.sync": _elect,
    "nvgpu.ldmatrix": _load_matrix,
    "nvgpu.mma.sync": _multiply,
}
