"""The pretty form of each op: a table from the `syntax` key of an op row to how it is written and read.

In: a row.  Out: its `Form`, or None where only the generic form exists.  Most forms are one line in the language of
`format.py`; the ones with regions, optional types or shorthands are functions (`syntax_at.py`, `syntax_llvm.py`).
Spelling is MLIR's, and the seed walk-through's for xla_gpu.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.operands import SEGMENTS
from warpsmith.ir.core.ssa import Operation, OpRow
from warpsmith.ir.text import syntax_control as control
from warpsmith.ir.text import syntax_func as func
from warpsmith.ir.text import syntax_llvm as llvm
from warpsmith.ir.text import syntax_vector as vectors
from warpsmith.ir.text import syntax_xla as xla
from warpsmith.ir.text.format import Form, Unprintable, described
from warpsmith.ir.text.format_kinds import parse_flags, print_flags

if TYPE_CHECKING:
    from warpsmith.ir.text.parser import Parser
    from warpsmith.ir.text.printer import Printer

__all__ = ["FORMS", "IMPLIED", "READ_AS", "SPELLED", "form_of"]

SPELLED = {"builtin.module": "module", "func.return": "return"}
"""Ops that print under a shorter name (a built-in's, or one of func's inside a function)."""

READ_AS = {
    "module": "builtin.module",
    "unrealized_conversion_cast": "builtin.unrealized_conversion_cast",
    "return": "func.return",
    "call": "func.call",
}
"""Names that the parser takes for others."""


def _no_bundles(op: Operation) -> dict[str, Attribute]:
    return {SEGMENTS: at.dense_array((len(op.operands), 0), ty.I32), "op_bundle_sizes": at.dense_array((), ty.I32)}


IMPLIED: dict[str, Callable[[Operation], dict[str, Attribute]]] = {"llvm.call": _no_bundles}
"""Attributes that the generic form must carry for MLIR's sake; ops here don't hold them, as nothing depends on them."""

_FLAG_NAMES = ("fastmath", "overflowFlags")
_HAS_FLAGS = frozenset(_FLAG_NAMES)


# ------------------------------------------------------------------------------------------------- arithmetic, by hand
def _print_flags(p: Printer, op: Operation) -> None:
    for name in _FLAG_NAMES:
        value = op.attributes.get(name)
        if value is not None:
            text = print_flags(value, op.row)
            if text is None or name not in op.row.optional:
                raise Unprintable
            p.write(text)
    p.attributes(op, _HAS_FLAGS)


def _read_flags(p: Parser, row: OpRow) -> dict[str, Attribute]:
    """Flags and braces after the operands."""
    found: dict[str, Attribute] = {}
    token = p.tokens[p.i]
    if token == ":":
        return found
    for name in row.optional:
        if name in _HAS_FLAGS:
            value = parse_flags(p, row, name)
            if value is not None:
                found[name] = value
    found.update(p.optional_dict())
    return found


def _print_same(p: Printer, op: Operation) -> None:
    """` %a, %b : T`."""
    operands = op.operands
    if not operands:
        raise Unprintable
    type = operands[0].type
    names = p.names
    for value in operands:
        if value.type is not type:
            raise Unprintable
    for result in op.results:
        if result.type is not type:
            raise Unprintable
    p.write(f" {', '.join([names[v] for v in operands])}")
    if op.attributes:
        _print_flags(p, op)
    p.write(f" : {type.text}")


def _parse_same(p: Parser, row: OpRow) -> Operation:
    start = p.i - 1
    refs = p.operand_list()
    if len(refs) != len(row.operands):
        raise p.error(f"{row.name} takes {len(row.operands)} operand(s), not {len(refs)}", start)
    attributes = _read_flags(p, row)
    p.expect(":", "and a type")
    type = p.type()
    resolve = p.resolve
    return Operation(row, [resolve(r, type) for r in refs], [type] * len(row.results), attributes)


def _print_cast(p: Printer, op: Operation) -> None:
    """` %a : T to U`."""
    if len(op.operands) != 1 or len(op.results) != 1:
        raise Unprintable
    value = op.operands[0]
    p.write(f" {p.names[value]}")
    if op.attributes:
        _print_flags(p, op)
    p.write(f" : {value.type.text} to {op.results[0].type.text}")


def _parse_cast(p: Parser, row: OpRow) -> Operation:
    ref = p.operand()
    attributes = _read_flags(p, row)
    p.expect(":", "and a type")
    source = p.type()
    p.expect("to", "and the type of the result")
    return Operation(row, [p.resolve(ref, source)], [p.type()], attributes)


def _print_constant(p: Printer, op: Operation) -> None:
    """` 1.000000e+00 : f32`, ` true`; other attributes in braces first."""
    value = op.attributes.get("value")
    if value is None or constant_type(value) is not op.results[0].type:
        raise Unprintable
    p.attributes(op, ("value",))
    p.write(f" {p.attribute(value)}")


def constant_type(value: Attribute) -> ty.Type | None:
    """The type of a constant's value."""
    type = getattr(value, "type", None)
    return type if isinstance(type, ty.Type) and not isinstance(value, at.TypeAttr) else None


def _parse_constant(p: Parser, row: OpRow) -> Operation:
    attributes = p.optional_dict()
    index = p.i
    value = p.attribute()
    type = constant_type(value)
    if type is None:
        raise p.error("a constant that is no number", index, "a constant is an integer, a float, or dense<...>")
    attributes["value"] = value
    return Operation(row, (), [type], attributes)


def _print_select(p: Printer, op: Operation) -> None:
    """` %c, %a, %b : T`; with a vector condition both types are written."""
    if len(op.operands) != 3 or op.operands[1].type is not op.results[0].type:
        raise Unprintable
    p.write(f" {p.operands(op.operands)}")
    _print_flags(p, op)
    condition = op.operands[0].type
    p.write(f" : {op.results[0].type}" if condition is ty.I1 else f" : {condition}, {op.results[0].type}")


def _parse_select(p: Parser, row: OpRow) -> Operation:
    start = p.i - 1
    refs = p.operand_list()
    attributes = _read_flags(p, row)
    p.expect(":", "and a type")
    type = p.type()
    condition: ty.Type = ty.I1
    if p.accept(","):
        condition, type = type, p.type()
    if len(refs) != 3:
        raise p.error(f"{row.name} takes 3 operands, not {len(refs)}", start)
    return Operation(row, p.resolve_all(refs, [condition, type, type]), [type], attributes)


_INTRINSIC = described("($*){} : %fn")


def _print_intrinsic(p: Printer, op: Operation) -> None:
    if "is_zero_poison" in op.attributes:  # MLIR has no pretty form for these
        raise Unprintable
    _INTRINSIC.print(p, op)


# -------------------------------------------------------------------------------------------------------- the table
FORMS: dict[str, Form] = {
    # builtin, func
    "module": Form(func.print_module, func.parse_module),
    "conversion_cast": Form(func.print_conversion_cast, func.parse_conversion_cast),
    "func": Form(func.print_func, func.parse_func),
    "return": Form(func.print_yield, func.parse_yield),
    "yield": Form(func.print_yield, func.parse_yield),
    "call": described(" <sym:callee>($*){} : %fn"),
    # arith, math
    "same": Form(_print_same, _parse_same),
    "cast": Form(_print_cast, _parse_cast),
    "constant": Form(_print_constant, _parse_constant),
    "cmpi": described(" <cmpi:predicate>, $lhs, $rhs{} : type(lhs)", "rhs=lhs result=mask(lhs)"),
    "cmpf": described(" <cmpf:predicate>, $lhs, $rhs<flags:fastmath?>{} : type(lhs)", "rhs=lhs result=mask(lhs)"),
    "select": Form(_print_select, _parse_select),
    # scf, cf
    "scf_for": Form(control.print_for, control.parse_for),
    "scf_if": Form(control.print_if, control.parse_if),
    "scf_while": Form(control.print_while, control.parse_while),
    "scf_condition": Form(control.print_condition, control.parse_condition),
    "scf_index_switch": Form(control.print_index_switch, control.parse_index_switch),
    "cf_br": Form(control.print_br, control.parse_br),
    "cf_cond_br": Form(control.print_cond_br, control.parse_cond_br),
    # tensor, memref
    "tensor_extract": described(" $tensor[$indices*]{} : type(tensor)", "indices=index result=elem(tensor)"),
    "tensor_insert": described(
        " $scalar into $dest[$indices*]{} : type(dest)", "scalar=elem(dest) indices=index result=dest"
    ),
    "from_elements": described(" $0*{} : type(r0)", "0=elem(r0)"),
    "memref_load": described(" $memref[$indices*]{} : type(memref)", "indices=index result=elem(memref)"),
    "memref_store": described(" $value, $memref[$indices*]{} : type(memref)", "value=elem(memref) indices=index"),
    "memref_atomic_rmw": described(
        " <atomic_kind:kind> $value, $memref[$indices*]{} : (type(value), type(memref)) -> type(r0)", "indices=index"
    ),
    "memref_alloc": described("($dynamicSizes*){} : type(r0)", "dynamicSizes=index"),
    "memref_get_global": described(" <sym:name>{} : type(r0)"),
    "memref_global": Form(func.print_memref_global, func.parse_memref_global),
    # vector
    "transfer_read": Form(vectors.print_transfer, vectors.parse_transfer_read),
    "transfer_write": Form(vectors.print_transfer, vectors.parse_transfer_write),
    "vector_extract": Form(vectors.print_extract, vectors.parse_extract),
    "vector_insert": Form(vectors.print_insert, vectors.parse_insert),
    "vector_load": described(" $base[$indices*]{} : type(base), type(r0)", "indices=index"),
    "vector_store": described(" $valueToStore, $base[$indices*]{} : type(base), type(valueToStore)", "indices=index"),
    "vector_maskedload": described(
        " $base[$indices*], $mask, $pass_thru{} : type(base), type(mask), type(pass_thru) into type(r0)",
        "indices=index",
    ),
    "vector_maskedstore": described(
        " $base[$indices*], $mask, $valueToStore{} : type(base), type(mask), type(valueToStore)", "indices=index"
    ),
    "vector_gather": described(
        " $base[$offsets*] [$indices], $mask, $pass_thru{}"
        " : type(base), type(indices), type(mask), type(pass_thru) into type(r0)",
        "offsets=index",
    ),
    "vector_broadcast": Form(_print_cast, _parse_cast),
    "vector_step": described("{} : type(r0)"),
    "vector_shuffle": Form(vectors.print_shuffle, vectors.parse_shuffle),
    "vector_create_mask": described(" $0*{} : type(r0)", "0=index"),
    "vector_strided_slice": Form(vectors.print_strided_slice, vectors.parse_strided_slice),
    # gpu, xla_gpu
    "nullary": Form(func.print_nullary, func.parse_nullary),
    "gpu_id": described("  <gpu_dim:dimension><bound:upper_bound?>{}", "r0=index"),
    "gpu_shuffle": described(
        " <gpu_shuffle:mode> $value, $offset, $width{} : type(value)", "offset=i32 width=i32 r0=value r1=i1"
    ),
    "workgroup_id": described("  <word:dimension>{}", "r0=index"),
    "xla_loop": Form(xla.print_xla_loop, xla.parse_xla_loop),
    "apply_indexing": Form(xla.print_apply_indexing, xla.parse_apply_indexing),
    "atomic_rmw": Form(xla.print_atomic_rmw, xla.parse_atomic_rmw),
    "compare_exchange": described(
        " $memref[$indices*], $expected, $new{} : type(memref)",
        "indices=index expected=elem(memref) new=elem(memref) r0=elem(memref) r1=i1",
    ),
    "allocate_shared": described("{} : type(r0)"),
    "sync_threads": Form(func.print_yield, func.parse_sync),
    "predicated_insert": described(
        " $value into $dest[$indices*] if $condition{} : type(dest)",
        "value=elem(dest) indices=index condition=i1 r0=dest",
    ),
    "predicated_extract": described(
        " $source[$indices*] if $condition else $fallback{} : type(source)",
        "indices=index condition=i1 fallback=elem(source) r0=fallback",
    ),
    "shuffle_reduce": Form(xla.print_shuffle_reduce, xla.parse_shuffle_reduce),
    # xla_cpu
    "prefetch": described(" $base[$index]{} : type(base)", "index=index"),
    "compress": described(" $value, $mask{} : type(value)", "mask=mask(value) r0=value"),
    "lookup": described(" $table[$value]{} : type(table), type(value) -> type(r0)"),
    # llvm, nvvm
    "llvm_func": Form(llvm.print_func, llvm.parse_func),
    "llvm_call": described(" <sym:callee>($*){} : %fn"),
    "llvm_constant": described("(<attr:value>){} : type(r0)"),
    "llvm_nullary": described("{} : type(r0)"),
    "llvm_addressof": described(" <sym:global_name>{} : type(r0)"),
    "llvm_global": Form(llvm.print_global, llvm.parse_global),
    "llvm_alloca": described(" $arraySize x <type:elem_type>{} : (type(arraySize)) -> type(r0)"),
    "llvm_gep": Form(llvm.print_gep, llvm.parse_gep),
    "llvm_load": described(" $addr<unit:invariant?>{} : type(addr) -> type(r0)"),
    "llvm_store": described(" $value, $addr{} : type(value), type(addr)"),
    "llvm_atomicrmw": described(
        " <atomic_op:bin_op> $ptr, $val <ordering:ordering>{} : type(ptr), type(val)", "res=val"
    ),
    "llvm_cmpxchg": Form(llvm.print_cmpxchg, llvm.parse_cmpxchg),
    "llvm_extractelement": described(" $vector[$position : type(position)]{} : type(vector)", "res=elem(vector)"),
    "llvm_insertelement": described(
        " $value, $vector[$position : type(position)]{} : type(vector)", "value=elem(vector) res=vector"
    ),
    "llvm_shufflevector": Form(llvm.print_shufflevector, llvm.parse_shufflevector),
    "llvm_extractvalue": Form(llvm.print_extractvalue, llvm.parse_extractvalue),
    "llvm_insertvalue": Form(llvm.print_insertvalue, llvm.parse_insertvalue),
    "llvm_icmp": described(" <icmp:predicate> $lhs, $rhs{} : type(lhs)", "rhs=lhs res=mask(lhs)"),
    "llvm_fcmp": described(" <fcmp:predicate> $lhs, $rhs{} : type(lhs)", "rhs=lhs res=mask(lhs)"),
    "llvm_select": described(
        " $condition, $trueValue, $falseValue{} : type(condition), type(trueValue)",
        "falseValue=trueValue res=trueValue",
    ),
    "llvm_intr": Form(_print_intrinsic, _INTRINSIC.parse),
    "llvm_masked": described(" $*{} : %fn"),
    "llvm_masked_store": described(" $value, $addr, $mask{} : type(value), type(mask) into type(addr)"),
    "nvvm_shfl": described(
        " <shfl_kind:kind> $thread_mask, $val, $offset, $mask_and_clamp{} : type(val) -> type(res)",
        "thread_mask=i32 offset=i32 mask_and_clamp=i32",
    ),
}


def form_of(row: OpRow) -> Form | None:
    """The pretty form of a row's ops; None where only the generic one exists."""
    return FORMS[row.syntax] if row.syntax is not None and row.syntax in FORMS else None
