"""lower-workgroups (CPU): the entry runs a range of work groups instead of one.

    func @main(%in, %out) { %w = workgroup_id x ; body }
      ->  func @main(%in, %out, %begin: index, %end: index) { scf.for %w = %begin to %end step 1 { body } }

One call then does all the work that a thread takes at once, whatever the kernel's arity.
"""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Operation, Trait
from warpsmith.ir.core.types import INDEX
from warpsmith.ir.dialects import arith, func, scf

CONTRACT = "bit-exact"
ILLEGAL_AFTER = ("xla_gpu.workgroup_id",)


def run(module: Operation) -> None:
    """Rewrite each function with `xla.entry`; it must be in the buffer form (no results)."""
    for op in func.functions(module):
        if "xla.entry" in op.attributes:
            _wrap(op)


def _wrap(function: Operation) -> None:
    body = function.body
    begin, end = body.add_arg(INDEX, "begin"), body.add_arg(INDEX, "end")
    type = func.function_type(function)
    func.set_function_type(function, [*type.inputs, INDEX, INDEX], ())
    if "arg_attrs" in function.attributes:
        func.set_arg_attributes(function, [*func.arg_attributes(function), {}, {}])
    ids = [op for op in function.walk() if op.name == "xla_gpu.workgroup_id"]
    extent = ids[0].attributes.get("xla.range") if ids else None
    last = body.terminator
    inner = [op for op in body if op is not last and not op.row.has(Trait.CONSTANT) and op.name != "memref.alloca"]
    b = Builder.before(last)
    loop = scf.for_(b, begin, end, arith.index(b, 1), iv_name="workgroup_id_x")
    target: Block = loop.body
    for op in inner:
        op.unlink()
        target.append(op)
    scf.yield_(Builder.at_end(target))
    if extent is not None:
        loop.attributes["xla.range"] = extent
    for op in ids:
        op.replace_by((target.args[0],))
    count = extent.items[1] if isinstance(extent, at.ArrayAttr) else None
    function.attributes["warpsmith.workgroups"] = at.integer_attr(
        count.value + 1 if isinstance(count, at.IntegerAttr) else 1, at.I64
    )
