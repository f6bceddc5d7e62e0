"""Every opcode that the interpreter evaluates, and the rule that makes its kernel.  A new op is one row."""

from __future__ import annotations

from warpsmith.hlo.evaluator.control import CONTROL
from warpsmith.hlo.evaluator.convolution import CONVOLUTION
from warpsmith.hlo.evaluator.custom_calls import CUSTOM_CALL
from warpsmith.hlo.evaluator.devices import DEVICES
from warpsmith.hlo.evaluator.dot import DOT
from warpsmith.hlo.evaluator.elementwise import ELEMENTWISE, elementwise_rule
from warpsmith.hlo.evaluator.indexed import INDEXED
from warpsmith.hlo.evaluator.linear_algebra import LINEAR_ALGEBRA
from warpsmith.hlo.evaluator.movement import MOVEMENT
from warpsmith.hlo.evaluator.normalisation import NORMALISATION
from warpsmith.hlo.evaluator.random_bits import RANDOM
from warpsmith.hlo.evaluator.ranking import RANKING
from warpsmith.hlo.evaluator.reduce import REDUCE
from warpsmith.hlo.evaluator.scatter import SCATTER
from warpsmith.hlo.evaluator.sort import SORT
from warpsmith.hlo.evaluator.spectral import SPECTRAL
from warpsmith.hlo.evaluator.values import Rule
from warpsmith.hlo.evaluator.window import WINDOW
from warpsmith.hlo.evaluator.window_scatter import WINDOW_SCATTER

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
