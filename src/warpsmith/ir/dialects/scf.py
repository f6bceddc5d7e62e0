"""The scf and cf dialects: structured loops and branches, and the plain control-flow graph below them."""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Operation, OpRow, Region, Trait, Value
from warpsmith.ir.core.types import I32, INDEX, Type

ROWS = [
    OpRow(
        "scf.for",
        ("lowerBound", "upperBound", "step", "initArgs*"),
        ("results*",),
        regions=1,
        traits=Trait.RECURSIVE | Trait.LOOP,
        syntax="scf_for",
    ),
    OpRow("scf.if", ("condition",), ("results*",), regions=2, traits=Trait.RECURSIVE, syntax="scf_if"),
    OpRow("scf.while", ("inits*",), ("results*",), regions=2, traits=Trait.RECURSIVE | Trait.LOOP, syntax="scf_while"),
    OpRow("scf.condition", ("condition", "args*"), (), traits=Trait.TERMINATOR, syntax="scf_condition"),
    OpRow("scf.yield", ("results*",), (), traits=Trait.TERMINATOR, syntax="yield"),
    OpRow(
        "scf.index_switch",
        ("arg",),
        ("results*",),
        attributes=("cases",),
        regions=-1,
        traits=Trait.RECURSIVE,
        syntax="scf_index_switch",
    ),
    OpRow("cf.br", ("destOperands*",), (), successors=1, traits=Trait.TERMINATOR, syntax="cf_br"),
    OpRow(
        "cf.cond_br",
        ("condition", "trueDestOperands*", "falseDestOperands*"),
        (),
        optional=("operandSegmentSizes", "branch_weights"),
        successors=2,
        traits=Trait.TERMINATOR,
        syntax="cf_cond_br",
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
