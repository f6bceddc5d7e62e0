"""What the processor can do that a module, or a function, is for.

In: an op with `warpsmith.target`, or a module with such a function.  Out: `Capabilities`, which passes ask instead of
the target's name; LoweringError for an op whose instruction isn't there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from warpsmith.devices import device, device_names
from warpsmith.errors import LoweringError, Span
from warpsmith.ir.core.attributes import StringAttr
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import BF16, F16, Type
from warpsmith.ir.dialects.nvgpu import CAPABILITY
from warpsmith.ir.dialects.tile import PRIVATE
from warpsmith.numerics.modes import ATOMIC_ADDS

__all__ = ["Capabilities", "capabilities", "check_capability"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a processor can do; by default, what is assumed where a module names no target."""

    target: str = ""
    compute_capability: int = 0
    """NVIDIA's, times ten: 90 for sm_90.  0 for others."""
    warp_size: int = 32
    """How many threads run in step and can exchange registers."""
    has_grid: bool = True
    """A kernel is one thread of a grid; else it runs a range of work groups, whose indices it is given."""
    intrinsics: str = "nvvm"
    """Whose names the intrinsics of a kernel have: "nvvm" or "amdgcn"; "" where none is needed."""
    spaces: Mapping[int, int] = field(default_factory=lambda: {PRIVATE: 0})
    """Memory spaces that have another number in LLVM: to it NVIDIA's stack is generic, AMD's buffers are global."""
    has_approximations: bool = False
    """Division, roots, exp2 and log2 of f32 within 2 ulp, as instructions."""
    arithmetic: frozenset[Type] = frozenset()
    """The 16-bit floats that it adds, subtracts and multiplies itself."""
    converts_bf16: bool = False
    """It rounds to bf16 and widens bf16 by instructions as good as those on integers."""
    has_bf16: bool = True
    """A register may hold a bf16; else it is 16 bits."""
    has_sub_byte_vectors: bool = True
    """LLVM takes vectors of 4- and 2-bit integers; it fails an assertion where it doesn't."""
    packs_sub_byte: bool = False
    """Elements of 4 and 2 bits share bytes in memory."""
    assumes_alignment: bool = True
    """An access says how far its address is aligned, and may say that nobody writes what it reads."""
    flushing_atomics: frozenset[tuple[str, str]] = frozenset()
    """(element type, memory) of the atomic additions to which subnormal numbers are zeros."""
    calls_stop_vectors: bool = False
    """Loops become vectors of many lanes, unless they call functions."""
    library: str | None = ""
    """What stands before C's names of elementary functions of f64 in its library; None where there is none."""

    def has_instruction(self, name: str) -> bool:
        """Whether the op `name` is an instruction here."""
        return self.compute_capability >= CAPABILITY.get(name, 0)


_UNKNOWN = Capabilities()
_PLATFORMS: dict[str, Capabilities] = {
    "cpu": Capabilities(
        has_grid=False, intrinsics="", has_bf16=False, assumes_alignment=False, calls_stop_vectors=True
    ),
    "cuda": Capabilities(
        has_approximations=True,
        arithmetic=frozenset((F16,)),
        converts_bf16=True,
        packs_sub_byte=True,
        flushing_atomics=frozenset((row.dtype, row.memory) for row in ATOMIC_ADDS if row.flushes),
        library="__nv_",
    ),
    "rocm": Capabilities(
        intrinsics="amdgcn",
        spaces={0: 1},
        arithmetic=frozenset((F16,)),
        has_bf16=False,
        has_sub_byte_vectors=False,
        packs_sub_byte=True,
        library=None,
    ),
}
_COMPUTE_CAPABILITY = re.compile(r"sm_(\d+)[af]?")
_ARITHMETIC_ON_BF16 = 90  # the compute capability (times ten) from which on bf16 is added and multiplied


def capabilities(op: Operation, target: str = "") -> Capabilities:
    """What `target` can do; by default, the target of `op`, which is a function or a module."""
    name = target or _target(op)
    return _of(name) if name else _UNKNOWN


def _target(op: Operation) -> str:
    for each in (op, *op.body) if op.name == "builtin.module" else (op,):
        found = each.attributes.get("warpsmith.target")
        if isinstance(found, StringAttr):
            return found.value
    return ""


@cache
def _of(target: str) -> Capabilities:
    if target not in device_names() and (named := _COMPUTE_CAPABILITY.fullmatch(target)):
        compute, base = int(named[1]), _PLATFORMS["cuda"]  # a GPU without a file has what its generation has
    else:
        found = device(target)
        major, minor = found.compute_capability
        compute, base = 10 * major + minor, replace(_PLATFORMS[found.platform], warp_size=found.warp_size)
    bf16 = {BF16} if compute >= _ARITHMETIC_ON_BF16 else set[Type]()
    return replace(base, target=target, compute_capability=compute, arithmetic=base.arithmetic | bf16)


def check_capability(op: Operation, can: Capabilities) -> None:
    """LoweringError where `op` is an instruction that the processor lacks."""
    if can.has_instruction(op.name):
        return
    needed, found = CAPABILITY[op.name], can.compute_capability
    has = (
        f"the target {can.target} has {found / 10}"
        if found
        else f"the target {can.target or 'of this module'} is no GPU"
        if not can.has_grid or not can.target
        else f"the target {can.target} is no GPU of NVIDIA's"
    )
    location = op.location
    raise LoweringError(
        f"{op.name} needs compute capability {needed / 10}, but {has}",
        span=Span(location.file, location.line, location.column) if location.line else None,
        help=f"compile for sm_{needed} or newer, or choose a variant without this instruction",
    )
