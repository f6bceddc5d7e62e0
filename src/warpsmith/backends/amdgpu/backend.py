"""AMD's GPUs: kernels become LLVM IR and assembly, which can be read; nothing runs it here.

In: kernels.  Out: texts.  A wave's width is the device file's.
"""

from __future__ import annotations

from collections.abc import Iterable

from warpsmith.backends.amdgpu import codegen
from warpsmith.backends.amdgpu.pipeline import pipeline
from warpsmith.backends.base import Backend, Buffers, Launched, Lowered, Store
from warpsmith.backends.llvm.isolate import Batch
from warpsmith.backends.llvm.text import llvm_text
from warpsmith.ir.core.ssa import Operation
from warpsmith.kernel import Kernel
from warpsmith.passes.manager import PassCall
from warpsmith.simt.core.checks import Checks

__all__ = ["BACKEND", "Amdgpu"]


class Amdgpu(Backend[str]):
    """Code is assembly."""

    name = "amdgpu"
    stages = ("emitted", "lowered", "llvm", "llvm-opt", "asm")
    driver = "ROCm"

    def pipeline(self, kernel: Kernel[object]) -> tuple[PassCall, ...]:
        """The passes that end at LLVM's ops."""
        return pipeline(kernel)

    def code(self, module: Operation) -> str:
        """LLVM IR of a lowered module."""
        return llvm_text(module, triple=codegen.TRIPLE, layout=codegen.data_layout())

    def text(self, lowered: Lowered[object], stage: str, code: str) -> str:
        """`llvm-opt` or `asm`."""
        return codegen.optimized(lowered.code, self.device.architecture) if stage == "llvm-opt" else code

    def load(self, kernels: Iterable[Lowered[object]], *, expected: int = 1, store: Store | None = None) -> list[str]:
        """Assembly of each; none is kept."""
        batch = Batch(codegen.asm_code, expected, lambda _: True, {"cpu": self.device.architecture})
        for each in kernels:
            batch.add(each.code)
        return [data.decode() for data in batch.results()]

    def launch(self, lowered: Lowered[object], code: str, buffers: Buffers, watch: Checks | None = None) -> Launched:
        """ToolMissing: no driver of AMD's is used."""
        raise self.no_driver()


BACKEND = Amdgpu
