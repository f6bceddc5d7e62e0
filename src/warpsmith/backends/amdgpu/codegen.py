"""Text LLVM IR in; the text after LLVM's passes, or assembly, for one of AMD's architectures out.

LLVM's defaults are IEEE here too: division and roots are rounded correctly, subnormal numbers are kept, nothing is
contracted.  What it can't lower ends the process, often by an assertion, so assembly is made in workers.

Reference: LLVM's User Guide for AMDGPU Backend.
"""

from __future__ import annotations

import functools
from typing import Any

from warpsmith.backends.cpu import jit
from warpsmith.backends.llvm import isolate
from warpsmith.backends.llvm.targets import all_targets

__all__ = ["TRIPLE", "asm_code", "data_layout", "optimized"]

TRIPLE = "amdgcn-amd-amdhsa"


@functools.cache
def data_layout() -> str:
    """What LLVM wants to be told of sizes and address spaces, the same for all architectures."""
    return str(_machine("").target_data)


def asm_code(request: isolate.Request) -> bytes:
    """Assembly, as workers make it."""
    cpu = str(request["cpu"])
    return str(_machine(cpu).emit_assembly(_prepared(str(request["text"]), cpu))).encode()


def optimized(llvm_text: str, cpu: str) -> str:
    """The module's text after LLVM's passes."""
    return str(_prepared(llvm_text, cpu))


def _prepared(llvm_text: str, cpu: str) -> Any:
    llvm = all_targets()
    module = jit.parse_module(llvm, llvm_text)
    jit.run_passes(llvm, module, _machine(cpu))
    return module


@functools.cache
def _machine(cpu: str) -> Any:
    return all_targets().Target.from_triple(TRIPLE).create_target_machine(cpu=cpu, opt=3)
