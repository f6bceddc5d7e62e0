"""A module as one text of CUDA C++: comment, headers, helper functions, tables, functions."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from warpsmith.backends.cuda_cpp import control, conversions, floats, functions, integers, memory, vectors, warps
from warpsmith.backends.cuda_cpp.helpers import preamble
from warpsmith.backends.cuda_cpp.literals import raw_literal
from warpsmith.backends.cuda_cpp.memory import is_written
from warpsmith.backends.cuda_cpp.names import LIBRARY, Scope, identifier
from warpsmith.backends.cuda_cpp.pipeline import DIMS
from warpsmith.backends.cuda_cpp.plan import plan
from warpsmith.backends.cuda_cpp.types import CType
from warpsmith.backends.cuda_cpp.writer import Handler, Statement, Unit, Writer
from warpsmith.ir.core.attributes import (
    Attribute,
    DenseArrayAttr,
    DenseAttr,
    FloatAttr,
    IntegerAttr,
    SymbolRefAttr,
    TypeAttr,
    scalar_attr,
)
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import BF16, F16, MemRefType
from warpsmith.ir.dialects import func

__all__ = ["cuda_source"]

_PARTS = (integers, floats, conversions, functions, memory, vectors, warps)
_EXPRESSIONS: dict[str, Handler] = {name: handler for part in _PARTS for name, handler in part.EXPRESSIONS.items()}
_STATEMENTS: dict[str, Statement] = {
    name: handler for part in (integers, memory, vectors, warps, control) for name, handler in part.STATEMENTS.items()
}
STATIC_SHARED = 48 * 1024  # bytes that a kernel can declare, and have without asking for more
_WIDTH = 110
_PER_LINE = 12


def cuda_source(*modules: Operation) -> str:
    """The CUDA C++ of modules, as one file.  LoweringError for an op or a type that has no C++ form.

    Kernels are called as their functions are (`main`, which C++ keeps for itself, is `kernel`); parameters by the hints
    of the functions' arguments.
    """
    helpers: dict[str, None] = {}
    file = Scope(taken=LIBRARY)
    parts = [_module(module, file, helpers) for module in modules]
    whole = "\n\n".join(parts)
    top = [_comment(whole), preamble(helpers, whole), whole]
    return "\n\n".join(part.rstrip("\n") for part in top if part) + "\n"


def _module(module: Operation, file: Scope, helpers: dict[str, None]) -> str:
    """A module's tables and functions."""
    unit = Unit(helpers)
    globals_ = {op.str_attr("sym_name"): op for op in module.body if op.name == "memref.global"}
    functions_ = list(func.functions(module))
    for op in functions_:
        name = op.str_attr("sym_name")
        unit.names[name] = file.new("kernel" if name == "main" else name)
    tables = [_table(unit, file, name, op) for name, op in globals_.items() if _has_values(op)]
    parts = [_function(unit, file, op, globals_) for op in functions_]
    return "\n\n".join([*(["\n".join(tables)] if tables else []), *parts])


def _comment(text: str) -> str:
    """What the kernels' rounding takes for granted."""
    lines: list[str] = []
    if re.search(r"float|double|__half|__nv_bfloat16", text):
        lines.append("// Compile without --use_fast_math: division, sqrt and subnormal numbers are IEEE 754's.")
        if "mul_rn(" in text:
            lines.append(
                "// Products that a sum takes are written as __fmul_rn and the like, which -fmad doesn't fuse."
            )
    return "\n".join(lines)


def _launch(op: Operation, name: str) -> list[str]:
    """How a kernel is launched."""
    grid, block = (op.attributes.get(f"warpsmith.{each}") for each in ("grid", "block"))
    if not isinstance(grid, DenseArrayAttr) or not isinstance(block, DenseArrayAttr):
        return []
    dynamic = op.attributes.get("warpsmith.dynamic_shared")
    if not isinstance(dynamic, IntegerAttr):
        return [f"// {name}<<<{_dim3(grid)}, {_dim3(block)}>>>(...)"]
    lines = [f"// {name}<<<{_dim3(grid)}, {_dim3(block)}, {dynamic.value}>>>(...)"]
    if dynamic.value > STATIC_SHARED:
        attribute = "cudaFuncAttributeMaxDynamicSharedMemorySize"
        lines.insert(0, f"// cudaFuncSetAttribute({name}, {attribute}, {dynamic.value}) before the first launch")
    return lines


def _dim3(dims: DenseArrayAttr) -> str:
    values = list(dims.values)
    while len(values) > 1 and values[-1] == 1:
        values.pop()
    return str(values[0]) if len(values) == 1 else f"dim3({', '.join(map(str, values))})"


# --------------------------------------------------------------------------------------------------------------- tables
def _has_values(op: Operation) -> bool:
    """Whether it is a table; shared arrays start uninitialized."""
    return isinstance(op.attributes.get("initial_value"), DenseAttr)


def _table(unit: Unit, file: Scope, symbol: str, op: Operation) -> str:
    """A constant array at file scope."""
    type, value = op.attributes["type"], op.attributes["initial_value"]
    assert isinstance(type, TypeAttr)
    assert isinstance(type.type, MemRefType)
    assert isinstance(value, DenseAttr)
    element = type.type.element
    name = unit.names[symbol] = file.new(symbol)
    writer = Writer(unit, op, plan(op, ()), {}, {})
    scalars = [scalar_attr(each, element) for each in value.array.reshape(-1)]
    c = writer.type(element)
    items = [_item(writer, each) for each in scalars]
    rows = [", ".join(items[i : i + _PER_LINE]) for i in range(0, len(items), _PER_LINE)]
    body = rows[0] if len(rows) == 1 else "\n  " + ",\n  ".join(rows) + "\n"
    return f"__device__ const {c.name} {name}[{len(items)}] = {{{body}}};"


def _item(writer: Writer, attribute: IntegerAttr | FloatAttr) -> str:
    if isinstance(attribute, FloatAttr) and attribute.type in (F16, BF16):
        return raw_literal(attribute)
    return writer.converted(writer.literal(attribute), attribute.type)


# ------------------------------------------------------------------------------------------------------------ functions
def _function(unit: Unit, file: Scope, op: Operation, globals_: dict[str, Operation]) -> str:
    writer = Writer(unit, op, plan(op, _EXPRESSIONS), _EXPRESSIONS, _STATEMENTS)
    writer.scope = Scope(file)
    is_kernel = "xla.entry" in op.attributes
    parameters = [
        _parameter(writer, a, attributes) for a, attributes in zip(op.body.args, func.arg_attributes(op), strict=True)
    ]
    if is_kernel:
        _shared(writer, op, globals_)
    writer.block(op.body)
    head = f'extern "C" __global__ void{_bounds(op)}' if is_kernel else f"__device__ {_result(writer, op)}"
    if not is_kernel:
        _return(writer, op.body.terminator)
    opening = f"{head} {unit.names[op.str_attr('sym_name')]}("
    line = opening + ", ".join(parameters) + ") {"
    if len(line) > _WIDTH:
        line = opening + "\n    " + ",\n    ".join(parameters) + ") {"
    return "\n".join([*_launch(op, unit.names[op.str_attr("sym_name")]), line, *writer.lines, "}"])


def _bounds(op: Operation) -> str:
    block, least = op.attributes.get("warpsmith.block"), op.attributes.get("warpsmith.min_blocks")
    if not isinstance(block, DenseArrayAttr):
        return ""
    blocks = f", {least.value}" if isinstance(least, IntegerAttr) else ""
    return f" __launch_bounds__({math.prod(block.values)}{blocks})"


def _result(writer: Writer, op: Operation) -> str:
    """The type that a device function returns; a struct of several."""
    types = [writer.type(t).name for t in func.function_type(op).results]
    if len(types) > 1:
        writer.unit.need("tuple")
        return f"cuda::std::tuple<{', '.join(types)}>"
    return types[0] if types else "void"


def _return(writer: Writer, op: Operation) -> None:
    values = [writer.converted(writer.value(v), v.type) for v in op.operands]
    if values:
        writer.line(f"return {values[0]};" if len(values) == 1 else f"return {{{', '.join(values)}}};")


def _parameter(writer: Writer, argument: Value, attributes: Mapping[str, Attribute]) -> str:
    type = argument.type
    if not isinstance(type, MemRefType):
        c = writer.variable_type(argument)
        name = writer.name(argument, argument.name)
        writer.named(argument, name, c)
        return f"{c.name} {name}"
    c: CType = writer.memory_type(argument)
    hint = argument.name or "buffer"
    if identifier(hint) == writer.unit.names[writer.function.str_attr("sym_name")]:
        hint = "output"  # a result that gave the kernel its name
    name = writer.name(argument, hint)
    writer.named(argument, name, c)
    const = "" if is_written(argument) else "const "
    restrict = " __restrict__" if "llvm.noalias" in attributes else ""
    return f"{const}{c.name}*{restrict} {name}"


def _shared(writer: Writer, op: Operation, globals_: dict[str, Operation]) -> None:
    """Shared arrays, in the order in which they are first used."""
    for inner in op.walk():
        if inner.name != "memref.get_global":
            continue
        symbol = inner.attributes["name"]
        assert isinstance(symbol, SymbolRefAttr)
        if symbol.name in writer.unit.names:
            continue
        found = globals_[symbol.name]
        type = inner.result.type
        assert isinstance(type, MemRefType)
        hint = "tile" if inner.result.name in ("", "shmem") else inner.result.name
        name = writer.unit.names[symbol.name] = writer.scope.new(hint)
        dims = found.attributes.get(DIMS)
        size = str(type.elements)
        if isinstance(dims, DenseArrayAttr) and math.prod(dims.values) == type.elements and type.elements:
            size = " * ".join(str(d) for d in dims.values if d != 1) or "1"
        alignment = found.attributes.get("alignment")
        aligned = f"alignas({alignment.value}) " if isinstance(alignment, IntegerAttr) else ""
        c = writer.memory_type(inner.result).name
        if "tile.dynamic" in found.attributes:
            aligned = f"__align__({alignment.value}) " if isinstance(alignment, IntegerAttr) else ""
            writer.line(f"extern __shared__ {aligned}{c} {name}[];")
        else:
            writer.line(f"__shared__ {aligned}{c} {name}[{size}];")
