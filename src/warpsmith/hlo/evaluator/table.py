"""Every opcode that the interpreter evaluates, and the rule that makes its kernel.  A new op is one row."""

from __future__ import annotations

from warpsmith.hlo.evaluator.control import CONTROL
from warpsmith.hlo.evaluator.convolution import CONVOLUTION
from warpsmith.hlo.evaluator.dot import DOT
from warpsmith.hlo.evaluator.elementwise import ELEMENTWISE, elementwise_rule
from warpsmith.hlo.evaluator.indexed import INDEXED
from warpsmith.hlo.evaluator.movement import MOVEMENT
from warpsmith.hlo.evaluator.reduce import REDUCE
from warpsmith.hlo.evaluator.scatter import SCATTER
from warpsmith.hlo.evaluator.sort import SORT
from warpsmith.hlo.evaluator.values import Rule
from warpsmith.hlo.evaluator.window import WINDOW

__all__ = ["RULES"]

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
}
