"""expand-approximate: in the numerics mode `xla`, a GPU's approximate instructions, as XLA:GPU uses them.

    %q = arith.divf %a, %b : f32    ->   %q = llvm.call @llvm.nvvm.div.full(%a, %b)
    %y = math.exp %x fastmath<afn>  ->   %t = arith.mulf %x, %c1.44 ; %y = llvm.call @llvm.nvvm.ex2.approx.f(%t)

f32 division and square root, what `expand-float-ops` widened among them; `exp` and `log` where the emitter allowed it
(f16 and bf16).  A reciprocal is left as a division with the flag `afn`, which the backend makes `rcp.approx`.  Nothing
happens on a CPU, or in the mode `strict`.  `numerics/modes.py` has the rows.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import F32
from warpsmith.ir.dialects import arith, func
from warpsmith.passes.support.capabilities import capabilities
from warpsmith.passes.support.symbols import declare

CONTRACT = "f32 division, sqrt and rsqrt, and exp and log of 16-bit floats, within 2 ulp of f32; all else bit-exact"

_LOG2_E = 1.4426950408889634
_LN2 = 0.6931471805599453
_AFN = "#arith.fastmath<afn>"
# Callee and the op whose function it computes (approximately): the simulator computes that.
_DIVIDE = ("llvm.nvvm.div.full", "arith.divf")
_SQRT = ("llvm.nvvm.sqrt.approx.f", "math.sqrt")
_RSQRT = ("llvm.nvvm.rsqrt.approx.f", "math.rsqrt")
_EXP2 = ("llvm.nvvm.ex2.approx.f", "math.exp2")
_LOG2 = ("llvm.nvvm.lg2.approx.f", "math.log2")


def is_wanted(module: Operation) -> bool:
    """Whether the module is in the mode `xla`, for a processor with such instructions."""
    functions = list(func.functions(module))
    numerics = func.entry(module).attributes.get("warpsmith.numerics") if functions else None
    return numerics == at.string("xla") and capabilities(module).has_approximations


def run(module: Operation) -> None:
    """Rewrite all functions of a GPU's module whose entry function says `warpsmith.numerics = "xla"`."""
    if not is_wanted(module):
        return
    for function in func.functions(module):
        for op in list(function.walk()):
            rewrite = _TABLE.get(op.name)
            if rewrite is not None and op.result.type is F32:
                rewrite(module, op)


def full_division(module: Operation, b: Builder, x: Value, y: Value) -> Value:
    """x / y by `div.full.f32`, within 2 ulp."""
    return _call(module, b, _DIVIDE, x, y)


def _call(module: Operation, b: Builder, function: tuple[str, str], *operands: Value) -> Value:
    callee, meaning = function
    if all(each.attributes.get("sym_name") != at.string(callee) for each in module.body):
        declare(module, callee, F32, [F32] * len(operands))
    attributes: dict[str, at.Attribute] = {"callee": at.symbol(callee), "warpsmith.library": at.string(meaning)}
    return b.op1("llvm.call", operands, F32, attributes)


def _replace(op: Operation, value: Value) -> None:
    value.name = op.result.name
    op.replace_by((value,))


def _divide(module: Operation, op: Operation) -> None:
    constant = arith.constant_value(op.operands[0])
    if isinstance(constant, at.FloatAttr) and constant.value == 1.0:
        op.attributes["fastmath"] = at.opaque(_AFN)
        return
    _replace(op, full_division(module, Builder.before(op), *op.operands))


def _root(function: tuple[str, str]) -> Callable[[Operation, Operation], None]:
    return lambda module, op: _replace(op, _call(module, Builder.before(op), function, *op.operands))


def _is_loose(op: Operation) -> bool:
    return op.attributes.get("fastmath") == at.opaque(_AFN)


def _exp(module: Operation, op: Operation) -> None:
    if _is_loose(op):
        b = Builder.before(op)
        scaled = arith.binary(b, "mulf", op.operands[0], arith.constant(b, _LOG2_E, F32))
        _replace(op, _call(module, b, _EXP2, scaled))


def _log(module: Operation, op: Operation) -> None:
    if _is_loose(op):
        b = Builder.before(op)
        logarithm = _call(module, b, _LOG2, op.operands[0])
        _replace(op, arith.binary(b, "mulf", logarithm, arith.constant(b, _LN2, F32)))


_TABLE: dict[str, Callable[[Operation, Operation], None]] = {
    "arith.divf": _divide,
    "math.sqrt": _root(_SQRT),
    "math.rsqrt": _root(_RSQRT),
    "math.exp": _exp,
    "math.log": _log,
}
