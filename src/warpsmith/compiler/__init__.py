"""The driver: a module in, an executable out.

    HLO -> wrap -> plan -> for each kernel: emit -> passes -> LLVM IR -> machine code (CPU) or PTX (GPU)

`lowering` takes one fusion to LLVM IR, `driver` a whole module to an executable, `plans` numbers the schedule's buffers
for the runtime, `host` and `products` are what runs on the host, `simulated` runs a GPU's kernels without a GPU.
"""

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
from warpsmith.compiler.simulated import Simulation, simulate, simulated

__all__ = [
    "LoweredKernel",
    "Simulation",
    "architecture",
    "check_stage",
    "compile",
    "kernel_steps",
    "lower_fusion",
    "simulate",
    "simulated",
    "stage_bytes",
    "stage_names",
    "stage_text",
    "time_passes",
]
