"""lower-atomics: read-modify-write regions become atomic instructions, or loops of compare-and-exchange.

    xla_gpu.atomic_rmw %m[%i] {           ->   %0 = memref.atomic_rmw addf %x, %m[%i]
    ^bb0(%old: f32):
      %new = arith.addf %old, %x               or, for a body without an instruction:
      xla_gpu.yield %new                       %r = scf.while (%old = memref.load %m[%i]) {
    }                                            %new = ... ; %seen, %done = xla_gpu.compare_exchange %m[%i], %old, %new
                                                 scf.condition(not %done) %seen } do { yield }

An atomic addition that takes subnormal numbers for zeros (`numerics/modes.py` lists them) is for the numerics mode
`xla`; in the mode `strict` it is a loop.

A body that doesn't look at the old value is a plain store: elements of whole bytes never tear.  Which instructions an
architecture has, and how smaller elements are exchanged within a word, is LLVM's to know: it makes the same loops where
it must.  The old value decides whether another thread came in between, bit for bit.
"""

from __future__ import annotations

from warpsmith.errors import PassFailed
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Operation, Region, Value
from warpsmith.ir.core.types import I1, MemRefType, Type, bit_width
from warpsmith.ir.dialects import arith, func, memory, scf
from warpsmith.passes.support.capabilities import capabilities

CONTRACT = "bit-exact"
ILLEGAL_AFTER = ("xla_gpu.atomic_rmw",)

_FLOATS = {"arith.addf": "addf"}
_INTEGERS = {
    "arith.addi": "addi",
    "arith.andi": "andi",
    "arith.ori": "ori",
    "arith.xori": "xori",
    "arith.maxsi": "maxs",
    "arith.maxui": "maxu",
    "arith.minsi": "mins",
    "arith.minui": "minu",
}
_NATIVE_FLOATS = frozenset(("f16", "bf16", "f32", "f64"))
_WORDS = frozenset((32, 64))
_SHARED = 3


def run(module: Operation) -> None:
    """Rewrite every xla_gpu.atomic_rmw on a buffer; PassFailed for one on a tensor (lower-tensors comes first)."""
    found = [op for op in module.walk() if op.name == "xla_gpu.atomic_rmw"]
    if not found:
        return
    keeps = func.entry(module).attributes.get("warpsmith.numerics") != at.string("xla")
    avoided = capabilities(module).flushing_atomics if keeps else frozenset[tuple[str, str]]()
    for op in found:
        _lower(op, avoided)


def _lower(op: Operation, avoided: frozenset[tuple[str, str]]) -> None:
    base, *indices = op.operands
    if not isinstance(base.type, MemRefType) or len(indices) != 1:
        raise PassFailed(f"{op.name} on {base.type}", help="run flatten-tensors and lower-tensors first")
    b = Builder.before(op)
    kind, value = _instruction(op.body, base.type.element)
    memory_name = "shared" if base.type.space == _SHARED else "global"
    flushes = kind == "addf" and (base.type.element.text, memory_name) in avoided
    if value is None or flushes:
        _loop(b, op, base, indices[0])
    elif kind == "store":
        memory.store(b, value, base, indices[0])
    else:
        memory.atomic_rmw(b, kind, value, base, indices[0])
    op.replace_by((base,) * len(op.results))


def _instruction(body: Block, type: Type) -> tuple[str, Value | None]:
    """The one instruction that does what the body does, and its operand; None without one."""
    old, new = body.args[0], body.terminator.operands[0]
    if new.parent_block is not body:
        return "store", new
    first = body.first
    if first is None or first.next is not body.last or new is not first.results[0] or len(first.operands) != 2:
        return "", None
    if type.text in _NATIVE_FLOATS:
        kind = _FLOATS.get(first.name)
    else:
        kind = _INTEGERS.get(first.name) if bit_width(type) in _WORDS else None
    others = [value for value in first.operands if value is not old]
    if kind is None or len(others) != 1 or others[0].parent_block is body:
        return "", None
    return kind, others[0]


def _loop(b: Builder, op: Operation, base: Value, index: Value) -> None:
    """Try with the value that was seen last until nobody has come in between."""
    body = op.body
    first = memory.load(b, base, index)
    before, after = Block((first.type,), ("old",)), Block((first.type,), ("seen",))
    loop = b.create("scf.while", (first,), (first.type,), None, (Region((before,)), Region((after,))))
    terminator = body.terminator
    new = terminator.operands[0]
    terminator.erase()
    body.args[0].replace_by(before.args[0])
    for inner in body:
        inner.unlink()
        before.append(inner)
    inside = Builder.at_end(before, op.location)
    operands = (base, index, before.args[0], new if new is not body.args[0] else before.args[0])
    exchange = inside.create("xla_gpu.compare_exchange", operands, (first.type, I1))
    seen, done = exchange.results
    again = arith.binary(inside, "xori", done, inside.op1("arith.constant", (), I1, {"value": at.boolean(True)}))
    inside.create("scf.condition", (again, seen))
    scf.yield_(Builder.at_end(after, op.location), after.args)
    assert loop.results
