"""The simulator as a back end: a GPU's kernels, run thread by thread on this computer.

In: kernels.  Out: the outputs of a run, and what was seen.  At the stage "ptx" the code is what the GPU's own back end
hands out; at "buffers" it is the IR just before its control flow is flattened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warpsmith.backends import backend_of
from warpsmith.backends.base import Backend, Buffers, Hook, Keep, Launched, Lowered, Origin, Store
from warpsmith.backends.nvptx.backend import Nvptx, llvm_ir
from warpsmith.backends.simulator.launch import run_ir, run_ptx
from warpsmith.backends.simulator.pipeline import pipeline
from warpsmith.devices import Device
from warpsmith.ir.core.ssa import Operation
from warpsmith.kernel import Kernel
from warpsmith.passes.manager import PassCall, run_pipeline
from warpsmith.passes.pipeline import FLATTEN
from warpsmith.passes.support.edits import Edit
from warpsmith.simt.core.checks import Checks

__all__ = ["Simulator"]


class Simulator(Backend["Operation | str"]):
    """Code is IR, or PTX."""

    name = "simulator"

    def __init__(self, device: Device, stage: str) -> None:
        super().__init__(device)
        self.stage = stage
        self.stages = ("emitted", "llvm", stage)

    def pipeline(self, kernel: Kernel[object]) -> tuple[PassCall, ...]:
        """The passes of the device's own back end, up to the stage."""
        return pipeline(kernel, self.stage)

    def code(self, module: Operation) -> str:
        """LLVM IR, at the stage "ptx"."""
        return llvm_ir(module) if self.stage == "ptx" else ""

    def lower(
        self,
        kernel: Kernel[Origin],
        *,
        keep: Keep = "facts",
        generic: bool = False,
        on_after: Hook | None = None,
        edits: Sequence[Edit] = (),
    ) -> Lowered[Origin]:
        """Run the passes; the IR that is to be run is kept."""
        kept: Keep = "ir" if self.stage != "ptx" and keep == "facts" else keep
        return super().lower(kernel, keep=kept, generic=generic, on_after=on_after, edits=edits)

    def text(self, lowered: Lowered[object], stage: str, code: Operation | str) -> str:
        """`llvm`: of IR that is run, what its last passes make of it."""
        if isinstance(code, str):
            return lowered.code
        flat = code.clone()
        run_pipeline(flat, FLATTEN)
        return str(backend_of(self.device).code(flat))

    def load(
        self, kernels: Iterable[Lowered[object]], *, expected: int = 1, store: Store | None = None
    ) -> list[Operation | str]:
        """The IR, or PTX."""
        if self.stage == "ptx":
            return list(Nvptx(self.device).load(kernels, expected=expected))
        return [each.module for each in kernels if each.module is not None]

    def launch(
        self, lowered: Lowered[object], code: Operation | str, buffers: Buffers, watch: Checks | None = None
    ) -> Launched:
        """Run a kernel; with `watch` every access is looked at.  CheckFailed for one that no kernel may make."""
        if isinstance(code, str):
            return run_ptx(lowered.kernel, code, buffers, watch)
        return run_ir(lowered.kernel, code, buffers, watch)
