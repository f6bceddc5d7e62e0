"""Buffers in C++: elements, 128-bit moves, shared and private arrays, atomics."""

from __future__ import annotations

from warpsmith.backends.cuda_cpp.integer_signs import signed, unsigned
from warpsmith.backends.cuda_cpp.types import BOOL, CType, Expr, Level, assignment, atom, call
from warpsmith.backends.cuda_cpp.writer import Handler, Statement, Writer, place
from warpsmith.errors import LoweringError
from warpsmith.ir.core.attributes import IntegerAttr, SymbolRefAttr
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import F32, I8, MemRefType, Type, VectorType, bit_width, element_type
from warpsmith.ir.text.format_kinds import ATOMIC_KINDS

__all__ = ["EXPRESSIONS", "STATEMENTS", "element", "is_aligned", "pointer"]

_MOVES = {2: "uint16_t", 4: "unsigned", 8: "uint2", 16: "uint4"}
_FLOAT_MOVES = {8: "float2", 16: "float4"}
_ATOMICS = {
    **dict.fromkeys(("addf", "addi"), "atomicAdd"),
    **dict.fromkeys(("maxs", "maxu"), "atomicMax"),
    **dict.fromkeys(("mins", "minu"), "atomicMin"),
    "andi": "atomicAnd",
    "ori": "atomicOr",
    "xori": "atomicXor",
}
_BYTE_ATOMICS = {"andi": "atomic_and_byte", "ori": "atomic_or_byte"}


def is_variable(base: Value) -> bool:
    """A buffer of one element that is a variable in C++."""
    op = base.defining_op
    return op is not None and "tile.variable" in op.attributes


def first_access(base: Value) -> Operation | None:
    """The store that gives a variable its first value, in its own block: there it is declared."""
    made = base.defining_op
    if not is_variable(base) or made is None:
        return None
    op = made.next
    while op is not None and op not in base.users:
        if op.regions and any(op.is_ancestor_of(user) for user in base.users):
            return None
        op = op.next
    return op if op is not None and op.name == "memref.store" and op.operands[1] is base else None


def element(w: Writer, base: Value, index: Value) -> Expr:
    """`buffer[index]`, or the variable."""
    type = w.memory_type(base)
    name = w.value(base).text
    return atom(name if is_variable(base) else f"{name}[{w.value(index).text}]", type)


def pointer(w: Writer, base: Value, index: Value) -> str:
    """`&buffer[index]`."""
    at_zero = w.value(index).literal == 0 and not is_variable(base)
    return w.value(base).text if at_zero else "&" + element(w, base, index).text


# --------------------------------------------------------------------------------------------------- loads and stores
def _load(w: Writer, op: Operation) -> Expr:
    return element(w, *op.operands)


def _store(w: Writer, op: Operation) -> None:
    value, base, index = op.operands
    target = element(w, base, index).text
    type = w.memory_type(base)
    text = w.converted(w.value(value), value.type, type)
    w.line(f"{type.name} {target} = {text};" if first_access(base) is op else assignment(target, text))


def _vector_bytes(type: VectorType) -> int:
    return type.elements * max(8, bit_width(type.element)) // 8


def is_aligned(op: Operation, type: Type) -> bool:
    """Whether an access of a vector says that it may be one instruction."""
    if not isinstance(type, VectorType):
        return False
    found = op.attributes.get("alignment")
    size = _vector_bytes(type)
    return isinstance(found, IntegerAttr) and found.value >= size and size & (size - 1) == 0


def _is_move(load: Operation) -> bool:
    """A vector that is stored as it was loaded: any type of that size moves it."""
    value = load.result
    user = next(iter(value.users), None)
    return (
        value.has_one_use
        and user is not None
        and user.name == "vector.store"
        and user.operands[0] is value
        and isinstance(value.type, VectorType)
        and is_aligned(load, value.type)
        and is_aligned(user, value.type)
        and _vector_bytes(value.type) in _MOVES
    )


def _access(w: Writer, base: Value, index: Value, type: VectorType, *, move: bool, const: bool) -> str:
    """The vector in memory, as an lvalue."""
    if move:
        size = _vector_bytes(type)
        name = _FLOAT_MOVES.get(size, _MOVES[size]) if type.element is F32 else _MOVES[size]
    else:
        name = w.type(type).name
    qualifier = "const " if const and _is_read_only(base) else ""
    return f"*reinterpret_cast<{qualifier}{name}*>({pointer(w, base, index)})"


def _is_read_only(base: Value) -> bool:
    type = base.type
    return isinstance(type, MemRefType) and type.space == 0 and not is_written(base)


def is_written(base: Value) -> bool:
    """Whether an op of the function may write the buffer."""
    return any(
        user.name not in ("memref.load", "vector.load", "nvgpu.ldmatrix")
        and not (user.name == "nvgpu.device_async_copy" and user.operands[0] is not base)
        for user in base.users
    )


def _vector_load(w: Writer, op: Operation) -> Expr:
    base, index = op.operands
    type = op.result.type
    if not isinstance(type, VectorType):
        return element(w, base, index)
    move = _is_move(op) and w.is_folded(op)
    c = CType("", bit_width(type)) if move else w.type(type)  # what moves it is no type of the IR's
    if is_aligned(op, type):
        text = _access(w, base, index, type, move=move, const=True)
        return Expr(text, Level.PREFIX, c, "*")
    w.unit.need("load_vec")
    return atom(f"load_vec<{c.name}>({pointer(w, base, index)})", c)


def _vector_store(w: Writer, op: Operation) -> None:
    value, base, index = op.operands
    type = value.type
    if not isinstance(type, VectorType):
        _store(w, op)
        return
    fill = w.fills.get(value)
    if fill is not None:
        fill(pointer(w, base, index))
        return
    source = value.defining_op
    move = source is not None and source.name == "vector.load" and _is_move(source) and w.is_folded(source)
    if is_aligned(op, type):
        text = w.value(value).text
        w.line(f"{_access(w, base, index, type, move=move, const=False)} = {text};")
        return
    w.unit.need("store_vec")
    w.line(f"store_vec({pointer(w, base, index)}, {w.value(value).text});")


# --------------------------------------------------------------------------------------------------------------- arrays
def _global(w: Writer, op: Operation) -> None:
    """The name was chosen when the function, or the file, was opened."""
    symbol = op.attributes["name"]
    assert isinstance(symbol, SymbolRefAttr)
    w.bind(op.result, atom(w.unit.names[symbol.name], w.memory_type(op.result)))


def _alloca(w: Writer, op: Operation) -> None:
    type = op.result.type
    assert isinstance(type, MemRefType)
    if op.operands:
        raise LoweringError(f"{op.name} of a size that isn't constant has no C++ form{place(op)}")
    c = w.memory_type(op.result)
    name = w.name(op.result)
    w.bind(op.result, atom(name, c))
    alignment = op.attributes.get("alignment")
    if is_variable(op.result):
        w.mutable.add(name)
        if first_access(op.result) is None:
            w.line(f"{c.name} {name};")
        return
    aligned = isinstance(alignment, IntegerAttr) and alignment.value > max(1, c.bits // 8)
    prefix = f"alignas({alignment.value}) " if aligned and isinstance(alignment, IntegerAttr) else ""
    w.line(f"{prefix}{c.name} {name}[{type.elements}];")


# -------------------------------------------------------------------------------------------------------------- atomics
def _atomic(w: Writer, op: Operation) -> None:
    value, base, index = op.operands
    kind = ATOMIC_KINDS[op.int_attr("kind")]
    type = element_type(base.type)
    width = bit_width(type)
    text = w.value(value)
    target = pointer(w, base, index)
    if type is I8:
        if kind not in _BYTE_ATOMICS:
            raise LoweringError(f"{op.name} {kind} of {type} has no C++ form{place(op)}")
        function = _BYTE_ATOMICS[kind]
        w.unit.need(function)
        arguments = f"{target}, {unsigned(text, 8).text}"
    elif kind not in _ATOMICS:
        raise LoweringError(f"{op.name} {kind} has no C++ form{place(op)}")
    else:
        function = _ATOMICS[kind]
        c = w.memory_type(base)
        if c.is_integer:
            text = signed(text, width, w) if c.signed else unsigned(text, width)
        if width == 64 and c.is_integer:
            name = "long long" if c.signed and function in ("atomicMax", "atomicMin") else "unsigned long long"
            target = f"reinterpret_cast<{name}*>({target})"
        elif c.signed and function == "atomicAdd":
            pass
        arguments = f"{target}, {text.text}"
    if op.result.users:
        w.declare(op.result, atom(f"{function}({arguments})", w.memory_type(base)), hint="old")
    else:
        w.line(f"{function}({arguments});")


def exchange(w: Writer, op: Operation, expected: str) -> Expr:
    """Whether the exchange took place; `expected` then holds what was there."""
    base, index, _, new = op.operands
    w.unit.need("compare_exchange")
    c = w.memory_type(base)
    desired = w.value(new)
    if c.is_integer or desired.text.startswith("-"):
        desired = atom(w.converted(desired, new.type, c), desired.type)
    return call("compare_exchange", (atom(pointer(w, base, index), c), atom(expected, c), desired), BOOL)


def _compare_exchange(w: Writer, op: Operation) -> None:
    """Outside of a loop that tries again: `seen` and `done` are variables."""
    type = w.memory_type(op.operands[0])
    name = w.name(op.results[0], "seen")
    w.line(f"{type.name} {name} = {w.value(op.operands[2]).text};")
    w.named(op.results[0], name, type, const=False)
    done = exchange(w, op, name)
    w.declare(op.results[1], done, hint="done")


EXPRESSIONS: dict[str, Handler] = {
    "memref.load": _load,
    "vector.load": _vector_load,
}
STATEMENTS: dict[str, Statement] = {
    "memref.store": _store,
    "vector.store": _vector_store,
    "memref.get_global": _global,
    "memref.alloca": _alloca,
    "memref.atomic_rmw": _atomic,
    "xla_gpu.compare_exchange": _compare_exchange,
}
