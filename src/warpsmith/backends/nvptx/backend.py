"""NVIDIA's GPUs: kernels become LLVM IR, PTX and cubins; a driver, where there is one, runs them.

In: kernels.  Out: texts, images for the driver, and the outputs of a run.  With `ptxas` at hand the driver gets a
cubin, else PTX, which it compiles itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from warpsmith.backends.base import Backend, Buffers, Launched, Lowered, Store
from warpsmith.backends.llvm.text import llvm_text
from warpsmith.backends.nvptx import ptxas
from warpsmith.backends.nvptx.codegen import DATA_LAYOUT, TRIPLE, PtxBatch
from warpsmith.backends.nvptx.gpu import Gpu, OnGpu
from warpsmith.backends.nvptx.pipeline import pipeline
from warpsmith.devices import Device
from warpsmith.errors import ToolMissing, UsageError
from warpsmith.ir.core.ssa import Operation
from warpsmith.kernel import Kernel
from warpsmith.passes.manager import PassCall
from warpsmith.simt.core.checks import Checks

__all__ = ["BACKEND", "Nvptx", "llvm_ir"]


class Nvptx(Backend[str]):
    """Code is PTX.  It is launched on `gpu`, where one is given."""

    name = "nvptx"
    stages = ("emitted", "lowered", "llvm", "cuda", "ptx", "cubin", "sass")
    driver = "CUDA"

    def __init__(self, device: Device, gpu: Gpu | None = None) -> None:
        super().__init__(device)
        self.gpu = gpu
        self._on_gpu: list[tuple[Lowered[object], OnGpu]] = []

    def pipeline(self, kernel: Kernel[object]) -> tuple[PassCall, ...]:
        """The passes that end at LLVM's ops."""
        return pipeline(kernel)

    def code(self, module: Operation) -> str:
        """LLVM IR of a lowered module."""
        return llvm_ir(module)

    def text(self, lowered: Lowered[object], stage: str, code: str) -> str:
        """`ptx` or `sass`.  UsageError for a cubin, which is binary."""
        if stage == "cubin":
            raise UsageError("a cubin is binary", help="write it to a file: -o OUT.cubin")
        return code if stage == "ptx" else ptxas.disassemble(self.cubin(code))

    def cubin(self, code: str) -> bytes:
        """Machine code.  ToolMissing without ptxas."""
        return ptxas.assemble(code, self.device.architecture).data

    def load(self, kernels: Iterable[Lowered[object]], *, expected: int = 1, store: Store | None = None) -> list[str]:
        """PTX of each; none is kept, for it takes LLVM some 10 ms a kernel."""
        batch = PtxBatch(self.device.architecture, expected)
        lowered: list[Lowered[object]] = []
        for each in kernels:
            batch.add(each.code)
            lowered.append(each)
        codes = batch.results()
        if self.gpu is not None:
            self._on_gpu += [(k, self._placed(self.gpu, k, code)) for k, code in zip(lowered, codes, strict=True)]
        return codes

    def launch(self, lowered: Lowered[object], code: str, buffers: Buffers, watch: Checks | None = None) -> Launched:
        """Run code that was loaded for the GPU.  ToolMissing without one; nothing is watched."""
        found = next((placed for each, placed in self._on_gpu if each is lowered), None)
        if found is None:
            raise self.no_driver()
        return found.launch(buffers), None

    def _placed(self, gpu: Gpu, lowered: Lowered[object], code: str) -> OnGpu:
        """The code on the GPU.  UsageError where that is older than what the code is for."""
        here = gpu.compute_capability
        if here < self.device.compute_capability:
            raise UsageError(
                f"the GPU here is sm_{here[0]}{here[1]}, and the kernel is for {self.device.architecture}",
                help=f"--target sm_{here[0]}{here[1]}, or an older one",
            )
        image = code.encode()
        if here == self.device.compute_capability:  # code of one GPU isn't another's
            with suppress(ToolMissing):
                image = self.cubin(code)
        return OnGpu(gpu, lowered.kernel, image)


BACKEND = Nvptx


def llvm_ir(module: Operation) -> str:
    """LLVM IR of a lowered module, with the HLO lines that PTX shows as `.loc`."""
    return llvm_text(module, triple=TRIPLE, layout=DATA_LAYOUT, lines=True)
