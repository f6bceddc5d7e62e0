"""The reference interpreter: what an HLO module means, in numpy, written apart from every lowering.

`evaluate(module, *arrays)` gives the outputs; `evaluate_with_bounds` also how far a correct kernel may be from them.
`table.RULES` lists the ops: a new one is a row there.
"""

from __future__ import annotations

from warpsmith.hlo.evaluator.bounds.error_bound import evaluate_with_bounds, within_bounds
from warpsmith.hlo.evaluator.bounds.estimate import estimate_errors, evaluate_with_limits
from warpsmith.hlo.evaluator.interpreter import Trace, evaluate, evaluate_computation
from warpsmith.hlo.evaluator.values import Value

__all__ = [
    "Trace",
    "Value",
    "estimate_errors",
    "evaluate",
    "evaluate_computation",
    "evaluate_with_bounds",
    "evaluate_with_limits",
    "within_bounds",
]
