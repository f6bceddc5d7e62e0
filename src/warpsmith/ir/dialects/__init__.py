"""All dialects: importing this registers every op row."""

from warpsmith.ir.core.ssa import register
from warpsmith.ir.dialects import arith, cpu, func, gpu, llvm, math, memory, nvgpu, scf, tile, vector

for _dialect in (arith, cpu, func, gpu, llvm, math, memory, nvgpu, scf, tile, vector):
    register(_dialect.ROWS)

__all__ = ["arith", "cpu", "func", "gpu", "llvm", "math", "memory", "nvgpu", "scf", "tile", "vector"]
