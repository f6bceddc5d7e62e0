"""Every opcode that the interpreter evaluates, and the rule that makes its kernel.  A new op is one row."""

from __future__ import annotations

from warpsmith.hlo.evaluator.ops.collectives import DEVICES
from warpsmith.hlo.evaluator.ops.control import CONTROL
from warpsmith.hlo.evaluator.ops.convolution import CONVOLUTION
from warpsmith.hlo.evaluator.ops.custom_calls import CUSTOM_CALL
from warpsmith.hlo.evaluator.ops.dot import DOT
from warpsmith.hlo.evaluator.ops.elementwise import ELEMENTWISE, elementwise_rule
from warpsmith.hlo.evaluator.ops.indexed import INDEXED
from warpsmith.hlo.evaluator.ops.linear_algebra import LINEAR_ALGEBRA
from warpsmith.hlo.evaluator.ops.movement import MOVEMENT
from warpsmith.hlo.evaluator.ops.normalisation import NORMALISATION
from warpsmith.hlo.evaluator.ops.random_bits import RANDOM
from warpsmith.hlo.evaluator.ops.ranking import RANKING
from warpsmith.hlo.evaluator.ops.reduce import REDUCE
from warpsmith.hlo.evaluator.ops.scatter import SCATTER
from warpsmith.hlo.evaluator.ops.sort import SORT
from warpsmith.hlo.evaluator.ops.spectral import SPECTRAL
from warpsmith.hlo.evaluator.ops.window import WINDOW
from warpsmith.hlo.evaluator.ops.window_scatter import WINDOW_SCATTER
from warpsmith.hlo.evaluator.values import Rule

__all__ = ["RULES", "rule_of"]

RULES: dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, elementwise_rule),
    **MOVEMENT,
    **INDEXED,
    **SCATTER,
    **REDUCE,
    **WINDOW,
    **DOT,
    **CONVOLUTION,
    **SORT,
    **CONTROL,
    **WINDOW_SCATTER,
    **SPECTRAL,
    **RANKING,
    **RANDOM,
    **NORMALISATION,
    **LINEAR_ALGEBRA,
    **DEVICES,
    **CUSTOM_CALL,
}

_ASYNCHRONOUS = ("-start", "-update", "-done")


def rule_of(opcode: str) -> Rule | None:
    """The rule of an op, or of the op that `opcode` starts, updates or ends asynchronously; None when there is none."""
    rule = RULES.get(opcode)
    if rule is not None:
        return rule
    for suffix in _ASYNCHRONOUS:
        if opcode.endswith(suffix) and opcode.removesuffix(suffix) in RULES:
            return RULES[f"async{suffix}"]
    return None
