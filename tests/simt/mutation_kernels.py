"""Clean kernels to mutate: small fusions for each emitter and variant, their IR just before it is flattened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from differential import fusion_of
from hero_kernels import body, rows
from simt.mutations import Runner

from warpsmith.arrays import Array
from warpsmith.backends.nvptx.codegen import ptx_from_llvm
from warpsmith.backends.nvptx.pipeline import STRUCTURED
from warpsmith.compiler import lower_fusion
from warpsmith.compiler.generated import random_inputs
from warpsmith.devices import device
from warpsmith.emitters import EmittedKernel, emit
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.ir.core.ssa import Operation
from warpsmith.passes.manager import run_pipeline
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.core.results import Finding
from warpsmith.simt.ptx.launch import PtxLaunch, simulate_ptx

__all__ = ["KERNELS", "CleanKernel", "clean_kernel"]


@dataclass(frozen=True)
class CleanKernel:
    """A kernel: its IR and its PTX, how to launch them, and inputs as it holds them (by seed)."""

    module: Operation
    outputs: int
    ptx: str
    hlo: HloModule
    emitted: EmittedKernel

    def inputs(self, seed: int = 0) -> list[Array]:
        pairs = zip(random_inputs(self.hlo, seed, NUMERICS), self.hlo.entry.parameters, strict=True)
        return [
            np.ascontiguousarray(array.transpose(p.array_shape.minor_to_major[::-1])).reshape(-1) for array, p in pairs
        ]

    def run_ptx(self, text: str) -> Runner:
        """Launches of PTX with this kernel's arguments."""
        wanted = [(each.dtype.numpy, each.elements) for each in self.emitted.outputs]

        def run(inputs: Sequence[Array]) -> tuple[list[Array], list[Finding]]:
            launch = self.emitted
            found, stats = simulate_ptx(
                text,
                inputs,
                wanted,
                PtxLaunch(launch.launch.grid, launch.launch.block, aliases=launch.aliases),
                checks=Checks(),
            )
            return found, stats.findings

        return run


def _size(row: dict[str, Any]) -> int:
    module = parse_hlo(row["hlo"])
    return sum(p.array_shape.byte_size for p in module.entry.parameters)


_SLICES = body(
    """p = f32[2,96] parameter(0)
    a = f32[2,40] slice(p), slice={[0:2], [0:40]}
    n = f32[2,96] negate(p)
    b = f32[1,30] slice(n), slice={[1:2], [50:80]}
    ROOT t = (f32[2,40], f32[1,30]) tuple(a, b)"""
)


def _chosen() -> dict[str, str]:
    """HLO of the smallest row of each emitter and variant, and of the smallest past 4 KiB, by their names."""
    found: dict[str, tuple[int, str]] = {"input_slices": (0, _SLICES)}
    for row in rows():
        size = _size(row)
        for least, suffix in ((64, ""), (4096, "larger")):
            name = " ".join(filter(None, (row["emitter"], row["variant"], suffix)))
            if least <= size < min(_MOST, found.get(name, (_MOST, ""))[0]):
                found[name] = (size, row["hlo"])
    texts: dict[str, str] = {}
    for name, (_, text) in found.items():
        if text not in texts.values():
            texts[name] = text
    return texts


_MOST = 1 << 18
KERNELS = _chosen()


NUMERICS = "xla"
"""With atomic instructions: strict numerics may have a loop of compare-and-swap, which mends a wrong first guess."""


def clean_kernel(name: str) -> CleanKernel:
    """The kernel of a name in `KERNELS`."""
    hlo = parse_hlo(KERNELS[name])
    target = device("H200")
    kernel = emit(fusion_of(hlo), target, numerics=NUMERICS)
    run_pipeline(kernel.module, STRUCTURED)
    ptx = ptx_from_llvm(lower_fusion(fusion_of(hlo), target, numerics=NUMERICS).code, target.architecture)
    return CleanKernel(kernel.module, len(kernel.outputs), ptx, hlo, kernel)
