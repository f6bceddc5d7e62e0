"""Whether a kernel computes indices in 32 or 64 bits.

In: a fusion's analysis.  Out: 32 or 64, and why.  The CPU always takes 64.
"""

from __future__ import annotations

from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.hlo.module import HloComputation, HloInstruction

__all__ = ["index_bits", "index_reason"]

_FIRST_INDEX_OPERAND = {"dynamic-slice": 1, "dynamic-update-slice": 2, "gather": 1}
MAX_32_BIT_ELEMENTS = 2**31 - 1


def index_bits(analysis: FusionAnalysis) -> int:
    """64 when an array has more than 2^31-1 elements or an index operand is a 64-bit integer, else 32."""
    return 64 if analysis.device.is_cpu or _wide(analysis) is not None else 32


def index_reason(analysis: FusionAnalysis) -> str:
    """Why `index_bits` is what it is, in words."""
    if analysis.device.is_cpu:
        return "CPUs always take 64 bits"
    return _wide(analysis) or f"no array has more than {MAX_32_BIT_ELEMENTS} elements, no index operand has 64 bits"


def _wide(analysis: FusionAnalysis) -> str | None:
    """What asks for 64 bits."""
    seen: set[HloComputation] = {analysis.body}
    stack = [analysis.body]
    while stack:
        for instruction in stack.pop():
            reason = _needs_64(instruction)
            if reason is not None:
                return reason
            for callee in instruction.called_computations:
                if callee not in seen:
                    seen.add(callee)
                    stack.append(callee)
    return None


def _needs_64(instruction: HloInstruction) -> str | None:
    for leaf in instruction.shape.leaves():
        if leaf.elements > MAX_32_BIT_ELEMENTS:
            return f"'{instruction.name}' has {leaf.elements} elements, more than {MAX_32_BIT_ELEMENTS}"
    for operand in index_operands(instruction):
        if any(leaf.dtype.is_integer and leaf.dtype.bits == 64 for leaf in operand.shape.leaves()):
            return f"'{operand.name}', an index of '{instruction.name}', is {operand.shape}"
    return None


def index_operands(instruction: HloInstruction) -> tuple[HloInstruction, ...]:
    """The operands that say where an op reads or writes."""
    if instruction.opcode == "scatter":
        count = (len(instruction.operands) - 1) // 2
        return instruction.operands[count : count + 1]
    first = _FIRST_INDEX_OPERAND.get(instruction.opcode)
    return () if first is None else instruction.operands[first:]
