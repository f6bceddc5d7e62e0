"""library-calls: elementary functions of f64 become calls of a library, lane by lane.

    %y = math.exp %x : vector<2xf64>
      ->  %a = vector.extract %x[0] ; %u = llvm.call @exp(%a) ; ... ; %y = vector.from_elements %u, %v

On a CPU the library is the platform's libm, which the process has loaded; on a GPU it is libdevice (`__nv_exp`), which
`backends/nvptx/libdevice.py` links.  Our own expansions (`expand-math`) are for f32 and narrower, and done by now.  The
call keeps the op's name in `warpsmith.library`.
"""

from __future__ import annotations

from warpsmith.errors import LoweringError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import F64, VectorType, element_type
from warpsmith.ir.dialects import func, vector
from warpsmith.numerics.functions import table
from warpsmith.passes.support.capabilities import capabilities
from warpsmith.passes.support.symbols import declare

CONTRACT = "each function within its ulp bound (numerics/bounds.py); all else bit-exact"

FUNCTIONS: dict[str, str] = {f"math.{row.name}": row.c_name for row in table.FUNCTIONS.values() if row.library}
"""What each op is called in C's libm; libdevice puts `__nv_` before it."""


def run(module: Operation, *, target: str = "") -> None:
    """Rewrite all functions for `target` ("cpu", "sm_90"...); by default the entry function's own."""
    can = capabilities(module, target)
    prefix = can.library
    declared: dict[str, int] = {}
    for function in func.functions(module):
        for op in list(function.walk()):
            name = FUNCTIONS.get(op.name)
            if name is not None and element_type(op.result.type) is F64:
                if prefix is None:
                    raise LoweringError(
                        f"{op.name} of f64 has no form on {can.target}: there is no library of functions for it",
                        help="compute it in f32, or compile for a target of NVIDIA's or the CPU",
                    )
                declared[prefix + name] = len(op.operands)
                _rewrite(op, prefix + name)
    for callee, operands in declared.items():
        declare(module, callee, F64, [F64] * operands)


def _rewrite(op: Operation, callee: str) -> None:
    b = Builder.before(op)
    attributes: dict[str, at.Attribute] = {"callee": at.symbol(callee), "warpsmith.library": at.string(op.name)}

    def call(operands: list[Value]) -> Value:
        return b.op1("llvm.call", operands, F64, attributes)

    type = op.result.type
    if not isinstance(type, VectorType):
        result = call(op.operands)
    else:
        lanes = [call([vector.extract(b, v, i) for v in op.operands]) for i in range(type.elements)]
        result = b.op1("vector.from_elements", lanes, type)
    result.name = op.result.name
    op.replace_by((result,))
