"""A dispatched tile program, lowered and loaded on a platform, to be launched as often as wanted.

In: a kernel, a back end.  Out: `TileExecutable`.  A CPU gets each block of threads as a piece of work for one core.

Native code checks nothing.  An index that memory decides is clamped (`passes/clamp_indices.py`); one that follows from
ids and arguments, and lies outside of its buffer, reads or writes whatever is there.  `run_tile` therefore runs the
meaning of the primitives first, which checks every index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.backends.base import Backend, Store
from warpsmith.compiler.tile.arguments import Bound, arrays_of, bind_arguments, buffers_of
from warpsmith.devices import Device, device
from warpsmith.ir.dialects import func
from warpsmith.runtime.cache import default_cache
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.core.results import LaunchResult
from warpsmith.tile.dispatch import Dispatched, dispatch
from warpsmith.tile.program import Kernel

__all__ = ["TileExecutable", "backend_for", "compile_blocks"]


class TileExecutable:
    """A compiled kernel.  Immutable, so any number of threads may call it."""

    def __init__(self, kernel: Dispatched, backend: Backend[Any], *, cache: Store | None = None) -> None:
        """The kernel's module is rewritten.  LoweringError for what the platform has no form of."""
        self.kernel, self.backend = kernel, backend
        self._types = [argument.type for argument in func.entry(kernel.module).body.args]
        self._lowered = backend.lower(kernel)
        (self._code,) = backend.load([self._lowered], store=default_cache() if cache is None else cache)

    def __call__(self, arrays: Mapping[str, Any] | Sequence[Any] | None = None, *, seed: int = 0) -> dict[str, Array]:
        """The buffers that the kernel writes, by parameter, from arrays by parameter or in order.

        A buffer that it writes starts as zeros where none is given; any other is random, as `run_tile` has it.
        """
        bound = bind_arguments(self.kernel, self._with_outputs(arrays), seed)
        return self.run(bound)[0]

    def _with_outputs(
        self, arrays: Mapping[str, Any] | Sequence[Any] | None
    ) -> Mapping[str, Any] | Sequence[Any] | None:
        """The arguments, and zeros for what the kernel writes, where its size is known."""
        pairs = zip(self.kernel.origin.program.parameters, self.kernel.arguments, strict=True)
        buffers = [(p.name, p.shape, p.type.numpy, each.is_output) for p, each in pairs if p.shape is not None]
        if isinstance(arrays, Mapping):
            given = dict(arrays)
        elif len(arrays or ()) > len(buffers):
            return arrays
        else:
            given = {name: array for (name, *_), array in zip(buffers, arrays or (), strict=False)}
        for name, shape, dtype, is_written in buffers:
            extents = [extent for extent in shape if isinstance(extent, int)]
            if is_written and len(extents) == len(shape) and not {name, name.removesuffix("_ptr")} & given.keys():
                given[name] = np.zeros(extents, dtype)
        return given

    def run(self, bound: Bound, watch: Checks | None = None) -> tuple[dict[str, Array], LaunchResult | None]:
        """The buffers that the kernel writes, which are copies, and what was seen."""
        buffers = buffers_of(self.kernel, self._types, bound)
        outputs, seen = self.backend.launch(self._lowered, self._code, buffers, watch)
        return arrays_of(self.kernel, outputs, bound), seen


def backend_for(platform: str, target: Device) -> Backend[Any]:
    """What runs tile programs on a platform: sim, cpu, or cuda.  ToolMissing without a CUDA driver or a GPU."""
    if platform == "cuda":
        from warpsmith.backends.nvptx.backend import Nvptx
        from warpsmith.runtime.cuda.driver import CudaDevice

        return Nvptx(target, CudaDevice())
    if platform == "cpu":
        from warpsmith.backends.cpu.backend import Cpu
        from warpsmith.runtime.cpu_executable import run_on_all_cores

        return Cpu(device("cpu"), run_on_all_cores)
    from warpsmith.backends.simulator.backend import Simulator

    return Simulator(target, "buffers")


def compile_blocks(kernel: Kernel, target: str = "sm_90", *, cache: Store | None = None) -> TileExecutable:
    """Compile a kernel, dispatched as for the GPU `target`, for this computer's CPU.

    Raises DispatchFailed and LoweringError.
    """
    chosen = device(target)
    return TileExecutable(dispatch(kernel, chosen), backend_for("cpu", chosen), cache=cache)
