"""Stage `cuda`: all kernels of a module as one text of CUDA C++.

In: fusions, a device.  Out: text.  Kernels are called as their fusions, parameters as the HLO parameters and roots.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from warpsmith.backends.cuda_cpp import cuda_source, lower
from warpsmith.devices import Device
from warpsmith.emitters import EmittedKernel, emit
from warpsmith.hlo.module import HloInstruction
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.dialects import func

__all__ = ["cuda_text"]

_PLAIN = re.compile(r"(param|parameter|p)?[_.]?\d*")


def cuda_text(fusions: Iterable[HloInstruction], target: Device, *, numerics: str = "strict") -> str:
    """The CUDA C++ of the fusions' kernels for a GPU."""
    return cuda_source(*(_module(each, target, numerics) for each in fusions))


def _module(fusion: HloInstruction, target: Device, numerics: str) -> Operation:
    kernel = emit(fusion, target, numerics=numerics, name=fusion.name)
    lower(kernel.module)
    _name_parameters(kernel, fusion)
    return kernel.module


def _name_parameters(kernel: EmittedKernel, fusion: HloInstruction) -> None:
    """By the kernel's own names; inputs that have none, by what is passed."""
    passed = [operand.name for operand in fusion.operands]
    for i, (argument, given) in enumerate(zip(func.entry(kernel.module).body.args, kernel.arguments, strict=True)):
        is_plain = not given.is_output and _PLAIN.fullmatch(given.name) is not None and i < len(passed)
        argument.name = passed[i] if is_plain else given.name
