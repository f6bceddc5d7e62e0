"""The driver: a module or a tile program in, an executable out.

    HLO -> wrap -> plan -> for each kernel: emit -> passes -> LLVM IR -> machine code (CPU) or PTX (GPU)

`lowering` has a module's kernels, lowered once for whoever asks; `driver` makes an executable of them, `plans` numbers
the schedule's buffers for the runtime, `simulated` runs a GPU's kernels without a GPU, `bisection` finds the pass that
changed a result.  `tile/` is the same for tile programs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpsmith.compiler.driver import check_stage, compile, kernel_steps, stage_bytes, stage_text, time_passes
    from warpsmith.compiler.lowering import LoweredKernel, lower_fusion, program
    from warpsmith.compiler.simulated import Simulation, simulate

__all__ = [
    "LoweredKernel",
    "Simulation",
    "check_stage",
    "compile",
    "kernel_steps",
    "lower_fusion",
    "program",
    "simulate",
    "stage_bytes",
    "stage_text",
    "time_passes",
]

# Tile programs need none of this, and it takes most of a second to import.
_HOMES: dict[str, str] = {
    **dict.fromkeys(("LoweredKernel", "lower_fusion", "program"), "lowering"),
    **dict.fromkeys(("Simulation", "simulate"), "simulated"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES.get(name, 'driver')}"), name)
