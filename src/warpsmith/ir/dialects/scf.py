"""The scf and cf dialects: structured loops and branches, and the plain control-flow graph below them."""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.diagnostics import entry, ints, invalid, need, need_index, need_types, need_yield, types_of
from warpsmith.ir.core.operands import operand_groups
from warpsmith.ir.core.ssa import Block, Operation, OpRow, Region, Trait, Value
from warpsmith.ir.core.types import I32, INDEX, Type
from warpsmith.ir.dialects import forms, scf_forms
from warpsmith.ir.text.format import Form


# --------------------------------------------------------------------------------------------------------------- rules
def _for(op: Operation) -> None:
    lower, upper, step = op.operands[:3]
    need(op, lower, lower.type is ty.INDEX or isinstance(lower.type, ty.IntegerType), "an index or integer")
    need_types(op, types_of([upper, step]), [lower.type] * 2, "the upper bound and the step")
    inits = types_of(op.operands[3:])
    need_types(op, types_of(op.results), inits, "the results")
    need_types(op, types_of(entry(op, op.regions[0]).args), [lower.type, *inits], "the arguments of the body")
    need_yield(op, op.regions[0], "scf.yield", inits)


def _if(op: Operation) -> None:
    need(op, op.operands[0], op.operands[0].type is ty.I1, "an i1")
    results = types_of(op.results)
    then, otherwise = op.regions
    if results and not otherwise.blocks:
        raise invalid(op, "results without an else", "an else gives the results when the condition is false")
    for region in (then, otherwise) if otherwise.blocks else (then,):
        if entry(op, region).args:
            raise invalid(op, "a block with arguments", "the blocks of scf.if take none")
        need_yield(op, region, "scf.yield", results)


def _while(op: Operation) -> None:
    before, after = (entry(op, r) for r in op.regions)
    need_types(op, types_of(before.args), types_of(op.operands), "the arguments of the first region")
    last = before.last
    if last is None or last.row.name != "scf.condition":
        raise invalid(op, "a first region that doesn't end in scf.condition")
    need_types(last, types_of(last.operands[1:]), types_of(op.results), "the values passed on")
    need_types(op, types_of(after.args), types_of(op.results), "the arguments of the second region")
    need_yield(op, op.regions[1], "scf.yield", types_of(op.operands))


def _condition(op: Operation) -> None:
    need(op, op.operands[0], op.operands[0].type is ty.I1, "an i1")


def _index_switch(op: Operation) -> None:
    need_index(op, op.operands)
    cases = ints(op, "cases")
    if len(op.regions) != len(cases) + 1:
        raise invalid(op, f"{len(op.regions)} regions for {len(cases)} cases", "one for the default, then one a case")
    if len(set(cases)) != len(cases):
        raise invalid(op, "a case twice")
    for region in op.regions:
        need_yield(op, region, "scf.yield", types_of(op.results))


def branch_rule(op: Operation) -> None:
    """A branch gives each block the values that it takes."""
    groups = operand_groups(op)
    if len(groups) == 3:
        need(op, groups[0][0], groups[0][0].type is ty.I1, "an i1")
    for values, target in zip(groups[-len(op.successors) :], op.successors, strict=True):
        need_types(op, types_of(values), types_of(target.args), "the values for a block")


# ---------------------------------------------------------------------------------------------------------------- rows
ROWS = [
    OpRow(
        "scf.for",
        ("lowerBound", "upperBound", "step", "initArgs*"),
        ("results*",),
        regions=1,
        traits=Trait.RECURSIVE | Trait.LOOP,
        verify=_for,
        form=Form(scf_forms.print_for, scf_forms.parse_for),
    ),
    OpRow(
        "scf.if",
        ("condition",),
        ("results*",),
        regions=2,
        traits=Trait.RECURSIVE,
        verify=_if,
        form=Form(scf_forms.print_if, scf_forms.parse_if),
    ),
    OpRow(
        "scf.while",
        ("inits*",),
        ("results*",),
        regions=2,
        traits=Trait.RECURSIVE | Trait.LOOP | Trait.GUARDED,
        verify=_while,
        form=Form(scf_forms.print_while, scf_forms.parse_while),
    ),
    OpRow(
        "scf.condition",
        ("condition", "args*"),
        (),
        traits=Trait.TERMINATOR,
        verify=_condition,
        form=Form(scf_forms.print_condition, scf_forms.parse_condition),
    ),
    OpRow("scf.yield", ("results*",), (), traits=Trait.TERMINATOR, form=forms.YIELD),
    OpRow(
        "scf.index_switch",
        ("arg",),
        ("results*",),
        attributes=("cases",),
        regions=-1,
        traits=Trait.RECURSIVE,
        verify=_index_switch,
        form=Form(scf_forms.print_index_switch, scf_forms.parse_index_switch),
    ),
    OpRow(
        "cf.br",
        ("destOperands*",),
        (),
        successors=1,
        traits=Trait.TERMINATOR,
        verify=branch_rule,
        form=Form(scf_forms.print_br, scf_forms.parse_br),
    ),
    OpRow(
        "cf.cond_br",
        ("condition", "trueDestOperands*", "falseDestOperands*"),
        (),
        optional=("operandSegmentSizes", "branch_weights"),
        successors=2,
        traits=Trait.TERMINATOR,
        verify=branch_rule,
        form=Form(scf_forms.print_cond_br, scf_forms.parse_cond_br),
    ),
]


def for_(
    b: Builder,
    lower: Value,
    upper: Value,
    step: Value,
    inits: Sequence[Value] = (),
    iv_name: str = "i",
    iter_names: Sequence[str] = (),
) -> Operation:
    """An scf.for with an empty body block: arguments are the induction variable and one per init."""
    names = [iv_name, *(iter_names or ["iter"] * len(inits))]
    block = Block([INDEX, *(v.type for v in inits)], names)
    return b.create("scf.for", [lower, upper, step, *inits], [v.type for v in inits], None, (Region((block,)),))


def if_(b: Builder, condition: Value, results: Sequence[Type] = (), *, with_else: bool | None = None) -> Operation:
    """An scf.if with empty blocks; an else block exists when there are results or it is asked for."""
    then = Region((Block(),))
    otherwise = Region((Block(),)) if (with_else if with_else is not None else bool(results)) else Region()
    return b.create("scf.if", (condition,), results, None, (then, otherwise))


def yield_(b: Builder, values: Sequence[Value] = ()) -> Operation:
    """`scf.yield`: what a region hands to the op around it."""
    return b.create("scf.yield", values)


def br(b: Builder, target: Block, operands: Sequence[Value] = ()) -> Operation:
    """`cf.br`: go to a block, with values for its arguments."""
    return b.create("cf.br", operands, (), None, (), (target,))


def cond_br(
    b: Builder,
    condition: Value,
    true: Block,
    true_operands: Sequence[Value],
    false: Block,
    false_operands: Sequence[Value],
) -> Operation:
    """`cf.cond_br`: go to one of two blocks, each with values for its arguments."""
    sizes = at.dense_array((1, len(true_operands), len(false_operands)), I32)
    return b.create(
        "cf.cond_br",
        (condition, *true_operands, *false_operands),
        (),
        {"operandSegmentSizes": sizes},
        (),
        (true, false),
    )
