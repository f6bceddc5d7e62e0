"""What a target's processor has: the compute capability that a name stands for, and which op asks for more.

In: a target's name ("sm_90a", "cpu"), an op.  Out: a number, or LoweringError for an op whose instruction isn't there.
"""

from __future__ import annotations

from warpsmith.errors import LoweringError, Span
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.dialects.nvgpu import CAPABILITY

__all__ = ["check_capability", "compute_capability"]


def compute_capability(target: str) -> int:
    """Ten times the compute capability: 90 for "sm_90a"; 0 for a name without a number, such as "cpu"."""
    digits = target.removeprefix("sm_").rstrip("af")
    return int(digits) if digits.isdigit() else 0


def check_capability(op: Operation, target: str) -> None:
    """LoweringError where `op` is an instruction that `target` lacks."""
    needed, found = CAPABILITY.get(op.name, 0), compute_capability(target)
    if found >= needed:
        return
    has = f"the target {target} has {found / 10}" if found else f"the target {target or 'of this module'} is no GPU"
    location = op.location
    raise LoweringError(
        f"{op.name} needs compute capability {needed / 10}, but {has}",
        span=Span(location.file, location.line, location.column) if location.line else None,
        help=f"compile for sm_{needed} or newer, or choose a variant without this instruction",
    )
