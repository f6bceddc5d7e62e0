"""Loops, branches and calls.

What a loop carries is a variable.  A value that is used once more, to start an inner loop, stays in its variable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from warpsmith.backends.cuda_cpp.conversions import choose
from warpsmith.backends.cuda_cpp.hints import is_generic
from warpsmith.backends.cuda_cpp.memory import exchange
from warpsmith.backends.cuda_cpp.types import Expr, assignment, atom, prefix
from warpsmith.backends.cuda_cpp.writer import Statement, Writer, initial, place
from warpsmith.errors import LoweringError
from warpsmith.ir.core.attributes import SymbolRefAttr
from warpsmith.ir.core.ssa import Block, Operation, OpResult, Trait, Value
from warpsmith.ir.core.types import VectorType
from warpsmith.ir.dialects.arith import constant_int

__all__ = ["STATEMENTS", "UNROLL"]

UNROLL = "tile.unroll"
_LONGEST_CONDITIONAL = 90


# --------------------------------------------------------------------------------------------------------------- loops
def _for(w: Writer, op: Operation) -> None:
    lower, upper, step, *inits = op.operands
    body = op.body
    limit = w.value(upper)
    limit_text = limit.text if limit.literal is not None else w.named_operand(upper)
    start = w.value(lower).text
    stride = w.value(step)
    for init, argument, result in zip(inits, body.args[1:], op.results, strict=True):
        _carry(w, op, init, argument, result)
    hint = body.args[0].name
    with w.nested():
        name = w.scope.new("k" if hint == "vector_index" else hint if not is_generic(hint) else "i")
        header = f"for ({w.index.name} {name} = {start}; {name} < {limit_text}; "
        header += f"++{name}) {{" if stride.literal == 1 else f"{name} += {stride.text}) {{"
        w.bind(body.args[0], atom(name, w.index))
        if UNROLL in op.attributes:
            w.line("#pragma unroll", out=1)
        w.line(header, out=1)
        w.block(body)
        _assign(w, [w.value(r).text for r in op.results], body.terminator.operands)
    w.line("}")


def _carry(w: Writer, loop: Operation, init: Value, argument: Value, result: OpResult) -> None:
    """The variable that a loop carries: that of its initial value if nothing else needs it."""
    start = w.value(init)
    if start.text in w.mutable and init.has_one_use:
        w.bind(argument, start)
        w.bind(result, start)
        return
    type = w.variable_type(argument)
    hint = argument.name if not is_generic(argument.name) else _destination(w, result) or w.hint(result)
    name = w.name(argument, hint)
    if _is_overwritten(loop, argument):
        w.line(f"{type.name} {name};")
    else:
        w.line(f"{type.name} {name} = {initial(w.converted(start, init.type, type), type.name)};")
    w.named(argument, name, type, const=False)
    w.named(result, name, type, const=False)


def _destination(w: Writer, value: Value) -> str:
    """The buffer that a vector is stored to."""
    for user in value.users:
        if user.name == "vector.store" and user.operands[0] is value:
            return w.value(user.operands[1]).text + "_vec"
    return ""


def _is_overwritten(loop: Operation, argument: Value) -> bool:
    """Whether each lane of a vector is written, by the iteration of its number, and none is read before."""
    if not isinstance(argument.type, VectorType) or not argument.has_one_use:
        return False
    user = next(iter(argument.users))
    lower, upper, step = (constant_int(v) for v in loop.operands[:3])
    return (
        user.name == "vector.insert"
        and user.block is loop.body
        and user.operands[1] is argument
        and user.operands[2:] == [loop.body.args[0]]
        and (lower, upper, step) == (0, argument.type.elements, 1)
    )


def _assign(w: Writer, names: Sequence[str], values: Sequence[Value]) -> None:
    """Assign all at once: what reads a variable that is assigned before it is kept first."""
    exprs = [w.value(v) for v in values]
    for i, expr in enumerate(exprs):
        words = set(re.findall(r"\w+", expr.text))
        if any(earlier in words and exprs[j].text != earlier for j, earlier in enumerate(names[:i])):
            exprs[i] = w.declare(values[i], expr, hint=f"next_{names[i]}")
    for name, value, expr in zip(names, values, exprs, strict=True):
        if expr.text != name:
            w.line(assignment(name, w.converted(expr, value.type)))


def _while(w: Writer, op: Operation) -> None:
    before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
    for init, argument in zip(op.operands, before.args, strict=True):
        type = w.variable_type(argument)
        name = w.name(argument, argument.name or "state")
        w.line(f"{type.name} {name} = {w.converted(w.value(init), init.type, type)};")
        w.named(argument, name, type, const=False)
    if _is_retry(op):
        _retry(w, op)
        return
    results = [_declared(w, r) for r in op.results]
    w.line("while (true) {")
    with w.nested():
        w.block(before)
        condition, *passed = before.terminator.operands
        _assign(w, results, passed)
        for argument, name, value in zip(after.args, results, passed, strict=True):
            w.named(argument, name, w.variable_type(value), const=False)
        w.line(f"if ({prefix('!', w.value(condition), w.value(condition).type).text}) break;")
        w.block(after)
        _assign(w, [w.value(a).text for a in before.args], after.terminator.operands)
    w.line("}")


def _declared(w: Writer, value: Value) -> str:
    """A variable without a value yet."""
    type = w.variable_type(value)
    name = w.name(value)
    w.line(f"{type.name} {name};")
    w.named(value, name, type, const=False)
    return name


def _is_retry(op: Operation) -> bool:
    """A loop of compare-and-exchange: again with what was seen, until nobody has come in between."""
    before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
    again, *passed = before.terminator.operands
    negation = again.defining_op
    if negation is None or negation.name != "arith.xori" or len(passed) != 1:
        return False
    swap = negation.operands[0].defining_op
    return (
        swap is not None
        and swap.name == "xla_gpu.compare_exchange"
        and swap.operands[2] is before.args[0]
        and passed[0] is swap.results[0]
        and not op.results[0].users
        and after.first is after.terminator
        and after.terminator.operands == list(after.args)
    )


def _retry(w: Writer, op: Operation) -> None:
    before = op.regions[0].blocks[0]
    negation = before.terminator.operands[0].defining_op
    assert negation is not None
    swap = negation.operands[0].defining_op
    assert swap is not None
    old = w.value(before.args[0]).text
    lines = len(w.lines)
    with w.nested():
        w.line("do {", out=1)
        for inner in before:
            if inner is swap:
                break
            w.visit(inner)
        done = exchange(w, swap, old)
    if len(w.lines) == lines + 1:
        w.lines.pop()
        w.line(f"while (!{done.text}) {{}}")
    else:
        w.line(f"}} while (!{done.text});")


# ------------------------------------------------------------------------------------------------------------ branches
def _if(w: Writer, op: Operation) -> None:
    if op in w.plan.conditional and _as_conditional(w, op):
        return
    then, otherwise = (region.blocks[0] if region.blocks else None for region in op.regions)
    assert then is not None
    condition = w.value(op.operands[0])
    names: list[str] = []
    left: list[int] = []  # results that the else branch has to assign
    for i in range(len(op.results)):
        name, is_done = _result(w, op, i, otherwise)
        names.append(name)
        if not is_done:
            left.append(i)
    if _has_nothing(then) and otherwise is not None and not _has_nothing(otherwise) and not op.results:
        then, otherwise, condition = otherwise, None, prefix("!", condition, condition.type)
    w.line(f"if ({condition.text}) {{")
    with w.nested():
        w.block(then)
        _assign(w, names, then.terminator.operands)
    if otherwise is not None:
        mark = len(w.lines)
        with w.nested():
            w.line("} else {", out=1)
            w.block(otherwise)
            _assign(w, [names[i] for i in left], [otherwise.terminator.operands[i] for i in left])
        if len(w.lines) == mark + 1:
            w.lines.pop()
    w.line("}")


def _as_conditional(w: Writer, op: Operation) -> bool:
    """`c ? a : b`, if that isn't too long."""
    values: list[Expr] = []
    for region in op.regions:
        block = region.blocks[0]
        w.block(block)
        values.append(w.value(block.terminator.operands[0]))
    expr = choose(w, w.value(op.operands[0]), values[0], values[1], op.result)
    nested = op.parent in w.plan.conditional
    if len(expr.text) > _LONGEST_CONDITIONAL and not nested:
        w.plan.conditional.discard(op)
        return False
    w.settle(op, expr)
    return True


def _has_nothing(block: Block) -> bool:
    return all(op.row.traits & (Trait.TERMINATOR | Trait.CONSTANT) for op in block)


def _result(w: Writer, op: Operation, i: int, otherwise: Block | None) -> tuple[str, bool]:
    """The variable of a result, and whether it starts as what an `else` without code would make it."""
    result = op.results[i]
    if otherwise is None or not _has_nothing(otherwise):
        return _declared(w, result), False
    value = otherwise.terminator.operands[i]
    start = w.value(value)
    if start.text in w.mutable and all(op.is_ancestor_of(user) for user in value.users):
        w.bind(result, start)
        return start.text, True
    type = w.variable_type(result)
    name = w.name(result)
    w.line(f"{type.name} {name} = {w.converted(start, value.type, type)};")
    w.named(result, name, type, const=False)
    return name, True


# --------------------------------------------------------------------------------------------------------------- calls
def _call(w: Writer, op: Operation) -> None:
    callee = op.attributes["callee"]
    assert isinstance(callee, SymbolRefAttr)
    text = f"{w.unit.names[callee.name]}({', '.join(w.value(v).text for v in op.operands)})"
    if not op.results:
        w.line(f"{text};")
    elif len(op.results) == 1:
        w.declare(op.result, atom(text, w.type(op.result.type)))
    else:
        names = [w.name(r) for r in op.results]
        w.line(f"const auto [{', '.join(names)}] = {text};")
        for result, name in zip(op.results, names, strict=True):
            w.named(result, name, w.type(result.type))


def _return(w: Writer, op: Operation) -> None:
    raise LoweringError(f"{op.name} in the middle of a function{place(op)}")


STATEMENTS: dict[str, Statement] = {
    "scf.for": _for,
    "scf.while": _while,
    "scf.if": _if,
    "func.call": _call,
    "func.return": _return,
}
