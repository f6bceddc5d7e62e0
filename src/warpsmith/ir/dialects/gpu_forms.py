"""Pretty forms of xla_gpu ops.  Spelling is the seed walk-through's.

The rows of their dialect hold them.  `forms.py` says what such functions do.
"""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.diagnostics import types_of
from warpsmith.ir.core.operands import SEGMENTS, operand_groups
from warpsmith.ir.core.ssa import Operation, OpRow
from warpsmith.ir.dialects.forms import (
    inits_text,
    join,
    read_inits,
    same_types,
    single_block,
)
from warpsmith.ir.text.parser import Parser
from warpsmith.ir.text.printer import Printer, Unprintable


def _map(op: Operation) -> at.IndexingMapAttr:
    found = op.attributes.get("map")
    if not isinstance(found, at.IndexingMapAttr):
        raise Unprintable
    return found


def print_xla_loop(p: Printer, op: Operation) -> None:
    """` (%d0)[%s0] -> (%r0) in #map iter_args(%a = %init) -> (T) {`."""
    map = _map(op)
    dims, inits = operand_groups(op)
    block = single_block(op.regions[0])
    ivs, results = len(map.map.range_vars), len(map.map.results)
    args = block.args
    if len(args) != ivs + results + len(inits) or len(dims) != len(map.map.dim_vars):
        raise Unprintable
    same_types(args[ivs + results :], inits)
    same_types(op.results, inits)
    if any(v.type is not ty.INDEX for v in (*dims, *args[: ivs + results])):
        raise Unprintable
    restore = p.names.nested()
    p.write(f" ({p.operands(dims)})[{p.operands(args[:ivs])}] -> ({p.operands(args[ivs : ivs + results])})")
    p.write(f" in {p.attribute(map)}")
    p.write(f" iter_args{inits_text(p, args[ivs + results :], inits)} -> ({join(types_of(inits))}) ")
    p.region(op.regions[0], scoped=True)
    restore()
    p.attributes(op, ("map", SEGMENTS))


def parse_xla_loop(p: Parser, row: OpRow) -> Operation:
    """`xla_gpu.loop (%dims)[%i] -> (%results) in #map iter_args(...) {...}`, after the op's name."""
    start = p.i - 1
    dims: list[int] = p.comma_separated(")", p.operand) if p.accept("(") else []
    ivs: list[int] = p.comma_separated("]", p.operand) if p.accept("[") else []
    p.expect("->", "and the names of the map's results")
    p.expect("(")
    results = p.comma_separated(")", p.operand)
    p.expect("in", "and the map")
    map = p.attribute()
    if not isinstance(map, at.IndexingMapAttr):
        raise p.error("expected an indexing map after 'in'", p.i - 1)
    args, inits = read_inits(p) if p.accept("iter_args") else ([], [])
    types = p.type_list() if p.accept("->") else []
    for what, given, wanted in (
        ("dims", len(dims), len(map.map.dim_vars)),
        ("symbols", len(ivs), len(map.map.range_vars)),
        ("results", len(results), len(map.map.results)),
    ):
        if given != wanted:
            raise p.error(f"{given} {what}, but the map has {wanted}", start)
    operands = [p.resolve(d, ty.INDEX) for d in dims] + p.resolve_all(inits, types, "start values")
    arguments = [*((i, ty.INDEX) for i in (*ivs, *results)), *zip(args, types, strict=True)]
    region = p.region(arguments, implicit="" if inits else "xla_gpu.yield", block=True)
    attributes = p.optional_dict()
    attributes["map"] = map
    attributes[SEGMENTS] = at.dense_array((len(dims), len(inits)), ty.I32)
    return Operation(row, operands, types, attributes, [region])


def print_apply_indexing(p: Printer, op: Operation) -> None:
    """` #map(%d0, %d1)[%s0]`."""
    map = _map(op)
    dims = len(map.map.dim_vars)
    if len(op.operands) != dims + len(map.map.range_vars) or len(op.results) != len(map.map.results):
        raise Unprintable
    if any(v.type is not ty.INDEX for v in (*op.operands, *op.results)):
        raise Unprintable
    p.write(f" {p.attribute(map)}")
    if dims:
        p.write(f"({p.operands(op.operands[:dims])})")
    if op.operands[dims:]:
        p.write(f"[{p.operands(op.operands[dims:])}]")
    p.attributes(op, ("map",))


def parse_apply_indexing(p: Parser, row: OpRow) -> Operation:
    """`xla.apply_indexing #map(%dims)[%symbols]`, after the op's name."""
    index = p.i
    map = p.attribute()
    if not isinstance(map, at.IndexingMapAttr):
        raise p.error(f"expected an indexing map, found {p.shown(index)}", index)
    dims: list[int] = p.comma_separated(")", p.operand) if p.accept("(") else []
    symbols: list[int] = p.comma_separated("]", p.operand) if p.accept("[") else []
    wanted = (len(map.map.dim_vars), len(map.map.range_vars))
    if (len(dims), len(symbols)) != wanted:
        raise p.error(
            f"{len(dims)} dims and {len(symbols)} symbols, but the map has {wanted[0]} and {wanted[1]}", index
        )
    operands = [p.resolve(v, ty.INDEX) for v in (*dims, *symbols)]
    return Operation(row, operands, [ty.INDEX] * len(map.map.results), {**p.optional_dict(), "map": map})


def print_atomic_rmw(p: Printer, op: Operation) -> None:
    """` %t[%i] : tensor<4xf32> {^bb0(%current: f32): ...}`."""
    if not op.operands or len(op.results) != 1 or op.results[0].type is not op.operands[0].type:
        raise Unprintable
    p.write(f" {p.names[op.operands[0]]}[{p.operands(op.operands[1:])}] : {op.operands[0].type} ")
    p.region(op.regions[0], arguments=True)
    p.attributes(op)


def parse_atomic_rmw(p: Parser, row: OpRow) -> Operation:
    """`xla.atomic_rmw %dest[%i] : type {...}`, after the op's name."""
    dest = p.operand()
    p.expect("[", "and the indices")
    indices = p.operand_list()
    p.expect("]", "after the indices")
    p.expect(":", "and the type")
    type = p.type()
    operands = [p.resolve(dest, type), *(p.resolve(i, ty.INDEX) for i in indices)]
    region = p.region()
    return Operation(row, operands, [type], p.optional_dict(), [region])
