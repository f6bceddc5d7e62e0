"""CUDA C++ that a person can read, of kernels for NVIDIA's GPUs.  In: kernels.  Out: text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from warpsmith.backends.base import Backend, Buffers, Hook, Launched, Lowered, Store
from warpsmith.backends.cuda_cpp import pipeline as passes
from warpsmith.backends.cuda_cpp.source import cuda_source
from warpsmith.errors import ToolMissing
from warpsmith.ir.core.ssa import Operation
from warpsmith.kernel import Kernel
from warpsmith.passes.manager import PassCall, PassTiming, run_pipeline

if TYPE_CHECKING:
    from warpsmith.simt.core.checks import Checks

__all__ = ["CudaCpp"]


class CudaCpp(Backend[str]):
    """Code is a `.cu` text; several kernels share one, which `source` writes."""

    name = "cuda_cpp"
    stages = ("emitted", "lowered", "cuda")

    def pipeline(self, kernel: Kernel[object]) -> tuple[PassCall, ...]:
        """The passes that leave loops as they are."""
        return passes.pipeline(kernel)

    def run(self, module: Operation, calls: Sequence[PassCall], on_after: Hook) -> list[PassTiming]:
        """Run the passes; of a fusion's loops and tiles more is written down."""
        if tuple(each.name for each in calls) == passes.BLOCKS:
            return run_pipeline(module, calls, on_after=on_after)
        return passes.run(module, calls, on_after)

    def code(self, module: Operation) -> str:
        """Written for all kernels together, by `source`."""
        return ""

    def source(self, kernels: Iterable[Lowered[object]]) -> str:
        """One text of all kernels, which were lowered to keep their IR."""
        return cuda_source(*(each.module for each in kernels if each.module is not None))

    def text(self, lowered: Lowered[object], stage: str, code: str) -> str:
        """`cuda`."""
        return code

    def load(self, kernels: Iterable[Lowered[object]], *, expected: int = 1, store: Store | None = None) -> list[str]:
        """A text for each kernel."""
        return [self.source([each]) for each in kernels]

    def launch(self, lowered: Lowered[object], code: str, buffers: Buffers, watch: Checks | None = None) -> Launched:
        """ToolMissing: what nvcc makes of the text is PTX, which `backends/nvptx` runs."""
        raise ToolMissing("CUDA C++ isn't run here", help="compile it with nvcc -ptx, or take --stage ptx")
