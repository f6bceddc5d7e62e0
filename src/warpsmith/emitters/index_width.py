"""Whether a kernel computes indices in 32 or 64 bits.

In: a fusion's analysis.  Out: 32 or 64.  Reference: section 3.5; the CPU always takes 64.
"""

from __future__ import annotations

from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.hlo.module import HloComputation, HloInstruction

__all__ = ["index_bits"]

_FIRST_INDEX_OPERAND = {"dynamic-slice": 1, "dynamic-update-slice": 2, "gather": 1}
MAX_32_BIT_ELEMENTS = 2**31 - 1


def index_bits(analysis: FusionAnalysis) -> int:
    """64 when an array has more than 2^31-1 elements or an index operand is a 64-bit integer, else 32."""
    if analysis.device.is_cpu:
        return 64
    seen: set[HloComputation] = {analysis.body}
    stack = [analysis.body]
    while stack:
        for instruction in stack.pop():
            if _needs_64(instruction):
                return 64
            for callee in instruction.called_computations:
                if callee not in seen:
                    seen.add(callee)
                    stack.append(callee)
    return 32


def _needs_64(instruction: HloInstruction) -> bool:
    if any(leaf.elements > MAX_32_BIT_ELEMENTS for leaf in instruction.shape.leaves()):
        return True
    return any(
        leaf.dtype.is_integer and leaf.dtype.bits == 64
        for operand in index_operands(instruction)
        for leaf in operand.shape.leaves()
    )


def index_operands(instruction: HloInstruction) -> tuple[HloInstruction, ...]:
    """The operands that say where an op reads or writes."""
    if instruction.opcode == "scatter":
        count = (len(instruction.operands) - 1) // 2
        return instruction.operands[count : count + 1]
    first = _FIRST_INDEX_OPERAND.get(instruction.opcode)
    return () if first is None else instruction.operands[first:]
