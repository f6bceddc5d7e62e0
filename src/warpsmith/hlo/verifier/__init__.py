"""Checking that HLO means something: one rule an opcode, in a table; each rule also infers the result's shape.

In: a module, a computation or an instruction.  Out: nothing, or InvalidHlo at the first instruction that breaks a
rule, with the rule's name, what was expected, and the next step.  Sizes and element types are compared everywhere;
layouts where an op only passes data on.  Follows XLA's operation semantics and its verifier, except that operands
of one op always have one float precision.  `statements` lists the rules in words.
"""

from __future__ import annotations

import math

from warpsmith.errors import InvalidHlo, UnknownOpcode, did_you_mean, require
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.opcodes import OPCODES, lookup
from warpsmith.hlo.shapes import AnyShape
from warpsmith.hlo.traversal import callees_first
from warpsmith.hlo.verifier.calls import CALLS
from warpsmith.hlo.verifier.collectives import DEVICES, asynchronous
from warpsmith.hlo.verifier.common import Rule, brief, compatible, fail
from warpsmith.hlo.verifier.elementwise import ELEMENTWISE
from warpsmith.hlo.verifier.header import verify_header
from warpsmith.hlo.verifier.indexed import INDEXED
from warpsmith.hlo.verifier.layouts import verify_layouts
from warpsmith.hlo.verifier.linear import LINEAR
from warpsmith.hlo.verifier.movement import MOVEMENT
from warpsmith.hlo.verifier.reductions import REDUCTIONS
from warpsmith.hlo.verifier.statements import STATEMENTS

__all__ = [
    "RULES",
    "STATED",
    "STATEMENTS",
    "infer_shape",
    "verify_computation",
    "verify_instruction",
    "verify_module",
]


RULES: dict[str, Rule] = {
    **ELEMENTWISE,
    **MOVEMENT,
    **REDUCTIONS,
    **INDEXED,
    **LINEAR,
    **CALLS,
    **DEVICES,
}
"""The rule of each opcode."""

STATED: frozenset[str] = frozenset(
    {
        *("parameter", "constant", "iota", "broadcast", "reshape", "dynamic-reshape", "bitcast", "bitcast-convert"),
        *("convert", "stochastic-convert", "dot", "scaled-dot", "ragged-dot", "convolution", "rng"),
        *("rng-bit-generator", "fusion", "call", "conditional", "custom-call", "infeed", "recv", "all-gather"),
        *("all-gather-start", "reduce-scatter", "all-to-all", "collective-permute-start", "async-start", "scan"),
    }
)
"""Ops whose result's shape isn't a function of their operands and attributes alone: it must be stated."""


MOST_NESTED = 128
"""How deep computations may call one another: running them takes a few frames of Python's stack each."""


def verify_module(module: HloModule) -> None:
    """Check the header and every instruction; InvalidHlo for the first thing that breaks a rule.

    UsageError for what is no module.
    """
    require(module, HloModule, "a module is wanted", help="make one of HLO text: warpsmith.parse_hlo(text)")
    known = set(module.computations)
    names: set[str] = set()
    for computation in module.computations:
        if computation.name in names:
            raise _module_error("module.names", f"two computations are called '{computation.name}'", computation)
        names.add(computation.name)
    depth: dict[HloComputation, int] = {}
    for computation in callees_first(module.computations):
        if computation not in known:
            raise _module_error(
                "module.callees", f"'{computation.name}' is called but isn't in module '{module.name}'", computation
            )
        called = (callee for each in computation.instructions for callee in each.called_computations)
        depth[computation] = 1 + max((depth[callee] for callee in called), default=0)
        if depth[computation] > MOST_NESTED:
            raise _module_error(
                "module.nesting", f"'{computation.name}' leads through more than {MOST_NESTED} calls", computation
            )
    for computation in module.computations:
        verify_computation(computation)
        for instruction in computation.instructions:
            if instruction.attributes and module.entry in instruction.called_computations:
                raise fail(instruction, "module.entry", f"the entry '{module.entry.name}' is called")
    verify_layouts(module)
    verify_header(module)


def _module_error(rule: str, cause: str, computation: HloComputation) -> InvalidHlo:
    return InvalidHlo(cause, span=computation.span, help=STATEMENTS[rule], rule=rule)


def verify_computation(computation: HloComputation) -> None:
    """Check every instruction of one computation."""
    names: set[str] = set()
    for instruction in computation.instructions:
        if instruction.name in names:
            raise fail(
                instruction,
                "module.names",
                f"'{computation.name}' has two instructions called '{instruction.name}'",
            )
        names.add(instruction.name)
        verify_instruction(instruction)


def verify_instruction(instruction: HloInstruction) -> None:
    """Check one instruction against its operands and the computations that it calls.

    InvalidHlo for a broken rule, UnknownOpcode, BadAttribute for an attribute of the wrong kind.
    """
    shape = instruction.shape
    for leaf in shape.leaves():
        if math.prod(max(dim, 1) for dim in leaf.dims) * max(leaf.dtype.bits, 8) >= 1 << 66:
            raise fail(instruction, "result.bytes", f"no memory could hold {brief(leaf)}")
    expected = infer_shape(instruction)
    if expected is shape:
        return
    if not compatible(expected, shape):
        raise fail(
            instruction,
            "result.shape",
            f"{instruction.opcode} makes {brief(expected)} here, not {brief(shape)}",
            help=f"write {brief(expected)}",
        )


def infer_shape(instruction: HloInstruction) -> AnyShape:
    """The shape that the result of `instruction` has, from its operands and attributes, which are checked.

    For an op in `STATED`, what they leave open is taken from `instruction.shape`.  Raises as `verify_instruction`.
    """
    row = lookup(instruction.opcode)
    if row is None:
        raise UnknownOpcode(
            f"unknown opcode '{instruction.opcode}' (in '{instruction.name}')",
            span=instruction.span,
            help=did_you_mean(instruction.opcode, OPCODES),
        )
    count = len(instruction.operands)
    if not row.takes(count):
        raise fail(instruction, "opcode.operands", f"{instruction.opcode} takes {row.operand_words}, {count} are given")
    for name in row.required:
        if name not in instruction.attributes:
            raise fail(instruction, "opcode.attributes", f"{instruction.opcode} needs the attribute '{name}'")
    return RULES.get(instruction.opcode, asynchronous)(instruction)
