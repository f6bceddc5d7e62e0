"""The driver: a module in, an executable out.

    HLO -> wrap -> plan -> for each kernel: emit -> passes -> LLVM IR -> machine code (CPU) or PTX (GPU)

`lowering` takes one fusion to LLVM IR, `driver` a whole module to an executable, `plans` numbers the schedule's buffers
for the runtime, `host` and `products` are what runs on the host, `simulated` runs a GPU's kernels without a GPU,
`bisection` finds the pass that changed a result.

    tile_programs   the driver of tile kernels: stages, and `run_tile`, which compares two ways to run one
    tile_files      kernels out of files
    tile_arguments, tile_memory
                    arrays checked against parameters; arrays as a kernel's memory and back
    tile_cpu, tile_cuda
                    native code of this computer's processor, or of its GPU
    tile_reference, tile_meaning, tile_places
                    the meaning of primitives, by numpy: the walk, what each does, where its elements are
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpsmith.compiler.driver import (
        check_stage,
        compile,
        kernel_steps,
        stage_bytes,
        stage_names,
        stage_text,
        time_passes,
    )
    from warpsmith.compiler.lowering import LoweredKernel, architecture, lower_fusion
    from warpsmith.compiler.simulated import Simulation, simulate

__all__ = [
    "LoweredKernel",
    "Simulation",
    "architecture",
    "check_stage",
    "compile",
    "kernel_steps",
    "lower_fusion",
    "simulate",
    "stage_bytes",
    "stage_names",
    "stage_text",
    "time_passes",
]

# Tile programs need none of this, and it takes most of a second to import.
_HOMES: dict[str, str] = {
    **dict.fromkeys(("LoweredKernel", "architecture", "lower_fusion"), "lowering"),
    **dict.fromkeys(("Simulation", "simulate"), "simulated"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES.get(name, 'driver')}"), name)
