"""Pretty forms of scf and cf ops.  Spelling is MLIR's.

The rows of their dialect hold them.  `forms.py` says what such functions do.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.diagnostics import types_of
from warpsmith.ir.core.operands import SEGMENTS, operand_groups
from warpsmith.ir.core.ssa import Block, Operation, OpRow, Region, Value
from warpsmith.ir.core.types import Type
from warpsmith.ir.dialects.forms import (
    inits_text,
    join,
    read_inits,
    read_types,
    same_types,
    single_block,
    type_run,
)
from warpsmith.ir.text.parser import Parser
from warpsmith.ir.text.printer import Printer, Unprintable


def print_for(p: Printer, op: Operation) -> None:
    """` %i = %lower to %upper step %step iter_args(%a = %init) -> (T) {`."""
    lower, upper, step, *inits = op.operands if len(op.operands) >= 3 else _bad()
    block = single_block(op.regions[0])
    same_types(block.args[1:], inits)
    same_types(op.results, inits)
    if not block.args or any(v.type is not block.args[0].type for v in (lower, upper, step)):
        raise Unprintable
    restore = p.names.nested()
    names = p.names
    unsigned = " unsigned" if op.attributes.get("unsignedCmp") is at.UNIT else ""
    p.write(f"{unsigned} {names[block.args[0]]} = {names[lower]} to {names[upper]} step {names[step]} ")
    if inits:
        p.write(f"iter_args{inits_text(p, block.args[1:], inits)} -> ({join(types_of(inits))}) ")
    if block.args[0].type is not ty.INDEX:
        p.write(f" : {block.args[0].type} ")
    p.region(op.regions[0], hide="" if inits else "scf.yield", scoped=True)
    restore()
    p.attributes(op, ("unsignedCmp",) if unsigned else ())


def _bad() -> list[Value]:
    raise Unprintable


def parse_for(p: Parser, row: OpRow) -> Operation:
    """`scf.for %i = %lower to %upper step %step iter_args(...) -> (...) {...}`, after the op's name."""
    unsigned = p.accept("unsigned")
    iv = p.operand()
    p.expect("=", "and the bounds")
    lower = p.operand()
    p.expect("to", "and the upper bound")
    upper = p.operand()
    p.expect("step", "and the step")
    step = p.operand()
    args: list[int] = []
    inits: list[int] = []
    types: list[Type] = []
    if p.accept("iter_args"):
        args, inits = read_inits(p)
        p.expect("->", "and the types")
        types = p.type_list()
    type = p.type() if p.accept(":") else ty.INDEX
    operands = [p.resolve(v, type) for v in (lower, upper, step)] + p.resolve_all(inits, types, "start values")
    region = p.region([(iv, type), *zip(args, types, strict=True)], implicit="" if inits else "scf.yield", block=True)
    attributes = p.optional_dict()
    if unsigned:
        attributes["unsignedCmp"] = at.UNIT
    return Operation(row, operands, types, attributes, [region])


def print_if(p: Printer, op: Operation) -> None:
    """` %c -> (T) {...} else {...}`."""
    if len(op.operands) != 1 or len(op.regions) != 2 or op.operands[0].type is not ty.I1:
        raise Unprintable
    then, otherwise = op.regions
    if single_block(then).args or (otherwise.blocks and single_block(otherwise).args):
        raise Unprintable
    p.write(f" {p.names[op.operands[0]]} ")
    if op.results:
        p.write(f"-> ({join(types_of(op.results))}) ")
    hide = "" if op.results else "scf.yield"
    p.region(then, hide=hide)
    if otherwise.blocks:
        p.write(" else ")
        p.region(otherwise, hide=hide)
    p.attributes(op)


def parse_if(p: Parser, row: OpRow) -> Operation:
    """`scf.if %condition -> (...) {...} else {...}`, after the op's name."""
    condition = p.resolve(p.operand(), ty.I1)
    types = p.type_list() if p.accept("->") else []
    implicit = "" if types else "scf.yield"
    then = p.region(implicit=implicit, block=True)
    otherwise = p.region(implicit=implicit, block=True) if p.accept("else") else Region()
    return Operation(row, [condition], types, p.optional_dict(), [then, otherwise])


def print_while(p: Printer, op: Operation) -> None:
    """` (%a = %x) : (T) -> U {...} do {^bb0(%b: U): ...} attributes {...}`."""
    if len(op.regions) != 2:
        raise Unprintable
    before, after = op.regions
    block = single_block(before)
    same_types(block.args, op.operands)
    restore = p.names.nested()
    if op.operands:
        p.write(f" {inits_text(p, block.args, op.operands)}")
    type = ty.function(types_of(op.operands), types_of(op.results))
    p.write(f" : {type} ")
    p.region(before, scoped=True)
    restore()
    p.write(" do ")
    p.region(after, arguments=True)
    p.attributes(op, (), "attributes ")


def parse_while(p: Parser, row: OpRow) -> Operation:
    """`scf.while (%arg = %init) : (...) -> (...) {...} do {...}`, after the op's name."""
    args, inits = read_inits(p) if p.tokens[p.i] == "(" else ([], [])
    p.expect(":", "and the types")
    type = p.function_type()
    operands = p.resolve_all(inits, type.inputs, "start values")
    before = p.region(list(zip(args, type.inputs, strict=True)), block=True)
    p.expect("do", "and the body")
    after = p.region()
    attributes = p.attribute_dict() if p.accept("attributes") else {}
    return Operation(row, operands, type.results, attributes, [before, after])


def print_condition(p: Printer, op: Operation) -> None:
    """`(%c) %a, %b : T, U`."""
    if not op.operands or op.operands[0].type is not ty.I1:
        raise Unprintable
    p.write(f"({p.names[op.operands[0]]})")
    p.attributes(op)
    rest = op.operands[1:]
    if rest:
        p.write(f" {p.operands(rest)} : {join(types_of(rest))}")


def parse_condition(p: Parser, row: OpRow) -> Operation:
    """`scf.condition(%condition) %values : types`, after the op's name."""
    p.expect("(", "and the condition")
    condition = p.resolve(p.operand(), ty.I1)
    p.expect(")", "after the condition")
    attributes = p.optional_dict()
    refs = p.operand_list()
    return Operation(row, [condition, *(p.resolve_all(refs, read_types(p)) if refs else ())], (), attributes)


def print_index_switch(p: Printer, op: Operation) -> None:
    """` %i -> T`, then `case 2 {...}` and `default {...}` on lines of their own.  The default is the first region."""
    cases = op.attributes.get("cases")
    if len(op.operands) != 1 or not isinstance(cases, at.DenseArrayAttr) or len(op.regions) != len(cases.values) + 1:
        raise Unprintable
    for region in op.regions:
        single_block(region)
    p.write(f" {p.names[op.operands[0]]}")
    p.attributes(op, ("cases",))
    if op.results:
        p.write(f" -> {join(types_of(op.results))}")
    hide = "" if op.results else "scf.yield"
    for value, region in zip(cases.values, op.regions[1:], strict=True):
        p.write(f"\n{p.indent}case {value} ")
        p.region(region, hide=hide)
    p.write(f"\n{p.indent}default ")
    p.region(op.regions[0], hide=hide)


def parse_index_switch(p: Parser, row: OpRow) -> Operation:
    """`scf.index_switch %value -> types case 1 {...} default {...}`, after the op's name."""
    argument = p.resolve(p.operand(), ty.INDEX)
    attributes = p.optional_dict()
    types = type_run(p) if p.accept("->") else []
    implicit = "" if types else "scf.yield"
    values: list[int] = []
    regions: list[Region] = []
    while p.accept("case"):
        values.append(p.integer("a case"))
        regions.append(p.region(implicit=implicit, block=True))
    p.expect("default", "after the cases")
    regions.insert(0, p.region(implicit=implicit, block=True))
    attributes["cases"] = at.dense_array(values)
    return Operation(row, [argument], types, attributes, regions)


# --------------------------------------------------------------- branches
def _branch(p: Printer, target: Block, values: Sequence[Value]) -> str:
    name = p.block_name(target)
    return f"{name}({p.operands(values)} : {join(types_of(values))})" if values else name


def _read_branch(p: Parser) -> tuple[Block, list[Value]]:
    target = p.successor()
    if not p.accept("("):
        return target, []
    refs = p.operand_list()
    values = p.resolve_all(refs, read_types(p)) if refs else []
    p.expect(")", "after the values for the block")
    return target, values


def print_br(p: Printer, op: Operation) -> None:
    """` ^bb1(%a : T)`."""
    if len(op.successors) != 1:
        raise Unprintable
    p.write(f" {_branch(p, op.successors[0], op.operands)}")
    p.attributes(op)


def parse_br(p: Parser, row: OpRow) -> Operation:
    """`cf.br ^block(%values : types)`, after the op's name."""
    target, values = _read_branch(p)
    return Operation(row, values, (), p.optional_dict(), (), [target])


def print_cond_br(p: Printer, op: Operation) -> None:
    """` %c weights([1, 2]), ^bb1(%a : T), ^bb2`."""
    condition, true, false = operand_groups(op)
    if len(op.successors) != 2 or condition[0].type is not ty.I1:
        raise Unprintable
    weights = op.attributes.get("branch_weights")
    shown = isinstance(weights, at.DenseArrayAttr) and weights.element is ty.I32
    p.write(f" {p.names[condition[0]]}")
    if isinstance(weights, at.DenseArrayAttr) and shown:
        p.write(f" weights([{', '.join(map(str, weights.values))}])")
    p.write(f", {_branch(p, op.successors[0], true)}, {_branch(p, op.successors[1], false)}")
    p.attributes(op, (SEGMENTS, "branch_weights") if shown else (SEGMENTS,))


def parse_cond_br(p: Parser, row: OpRow) -> Operation:
    """`cf.cond_br %condition, ^a(...), ^b(...)`, after the op's name."""
    condition = p.resolve(p.operand(), ty.I1)
    weights: at.DenseArrayAttr | None = None
    if p.accept("weights"):
        p.expect("(")
        p.expect("[")
        weights = at.dense_array(p.comma_separated("]", p.integer), ty.I32)
        p.expect(")")
    p.expect(",", "and the two blocks")
    true, true_values = _read_branch(p)
    p.expect(",", "and the second block")
    false, false_values = _read_branch(p)
    attributes = p.optional_dict()
    attributes[SEGMENTS] = at.dense_array((1, len(true_values), len(false_values)), ty.I32)
    if weights is not None:
        attributes["branch_weights"] = weights
    return Operation(row, [condition, *true_values, *false_values], (), attributes, (), [true, false])
