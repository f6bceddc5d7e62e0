"""Stage `cuda`: all kernels of a module as one text of CUDA C++.

In: a program.  Out: text.  Kernels are called as their fusions, parameters as the HLO parameters and roots.
"""

from __future__ import annotations

import re

from warpsmith.backends.cuda_cpp.backend import CudaCpp
from warpsmith.compiler.lowering import LoweredKernel, Program
from warpsmith.hlo.module import HloInstruction
from warpsmith.ir.dialects import func

__all__ = ["cuda_text"]

_PLAIN = re.compile(r"(param|parameter|p)?[_.]?\d*")


def cuda_text(whole: Program) -> str:
    """The CUDA C++ of a program's kernels for a GPU."""
    backend = CudaCpp(whole.device)
    kernels = [whole.lower(each, backend, name=each.name, keep="ir") for each in whole.fusions]
    for kernel, fusion in zip(kernels, whole.fusions, strict=True):
        _name_parameters(kernel, fusion)
    return backend.source(kernels)


def _name_parameters(lowered: LoweredKernel, fusion: HloInstruction) -> None:
    """By the kernel's own names; inputs that have none, by what is passed."""
    kernel = lowered.kernel
    passed = [operand.name for operand in fusion.operands]
    for i, (argument, given) in enumerate(zip(func.entry(kernel.module).body.args, kernel.arguments, strict=True)):
        is_plain = not given.is_output and _PLAIN.fullmatch(given.name) is not None and i < len(passed)
        argument.name = passed[i] if is_plain else given.name
