"""Whether a scatter can be updated in place, each element in one step.

In: an analysis whose root is a scatter.  Out: why not, if not.  Reference: section 5.5.1.
"""

from __future__ import annotations

from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.combiners import combiner_opcode
from warpsmith.fusion.reasons import Reason, reason
from warpsmith.fusion.scatters import Scatter

__all__ = ["Scatter", "refusal"]


def refusal(analysis: FusionAnalysis) -> Reason | None:
    """Why the emitter can't take the scatter; None when it can."""
    scatter = Scatter(analysis.roots[0])
    name = scatter.instruction.name
    if any(each.opcode != "parameter" for each in scatter.operands):
        return reason(f"an operand of '{name}' is computed inside the fusion, and updates go into its buffer")
    users = [user for each in scatter.operands for user in analysis.body.users(each)]
    if len(set(scatter.operands)) < scatter.count or len(users) > scatter.count:
        return reason(f"an operand of '{name}' is read elsewhere in the fusion, while it is updated")
    if not scatter.needs_step:
        return None
    if scatter.count > 1 and scatter.is_unique:
        return reason(f"'{name}' updates elements narrower than a byte in several operands: one step can't do that")
    if scatter.count > 1:
        return reason(f"'{name}' combines several operands at once, and its indices may repeat: one step can't do that")
    if scatter.operands[0].array_shape.dtype.is_complex and combiner_opcode(scatter.computation) != "add":
        return reason(f"'{name}' combines complex numbers by more than an addition, and its indices may repeat")
    return None
