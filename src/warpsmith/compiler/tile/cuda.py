"""A tile program on a GPU of this computer, through the CUDA driver.

In: a dispatched kernel.  Out: a `CudaExecutable`, which runs it on bound arguments.  With `ptxas` at hand the driver
gets a cubin, else PTX, which it compiles itself.
"""

from __future__ import annotations

import weakref

import numpy as np

from warpsmith.arrays import Array
from warpsmith.backends.nvptx import ptxas
from warpsmith.backends.nvptx.codegen import ptx_from_llvm
from warpsmith.backends.nvptx.lowering import llvm_ir
from warpsmith.compiler.tile.arguments import Bound
from warpsmith.devices import Device
from warpsmith.errors import InternalError, ToolMissing, UsageError
from warpsmith.ir.core.types import MemRefType, Type, numpy_dtype
from warpsmith.ir.dialects import func
from warpsmith.passes.manager import run_pipeline
from warpsmith.passes.pipeline import TILE_LOWERING
from warpsmith.reference.memory import array_of, memory_of
from warpsmith.runtime.buffers import pointer
from warpsmith.runtime.cuda.driver import Argument, CudaDevice
from warpsmith.tile.dispatch import Dispatched

__all__ = ["CudaExecutable"]


_FORMATS = {"i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "f16": "e", "f32": "f", "f64": "d"}


class CudaExecutable:
    """A kernel that is loaded on a GPU."""

    def __init__(self, dispatched: Dispatched, target: Device, device: CudaDevice | None = None) -> None:
        """`device` is the driver's first by default.  ToolMissing without a driver or a GPU; UsageError for a GPU older
        than `target`.  The dispatched module is rewritten.
        """
        self.device = CudaDevice() if device is None else device
        self.dispatched = dispatched
        here = self.device.compute_capability
        if here < target.compute_capability:
            raise UsageError(
                f"the GPU here is sm_{here[0]}{here[1]}, and the kernel is for {target.architecture}",
                help=f"--target sm_{here[0]}{here[1]}, or an older one",
            )
        entry = func.entry(dispatched.module)
        self._types: list[Type] = [argument.type for argument in entry.body.args]
        self._name = entry.str_attr("sym_name")
        run_pipeline(dispatched.module, TILE_LOWERING)
        ptx = ptx_from_llvm(llvm_ir(dispatched.module), target.architecture)
        same = here == target.compute_capability  # code of one GPU isn't another's
        self._module = self.device.load(_image(ptx, target.architecture) if same else ptx.encode())
        weakref.finalize(self, self.device.unload, self._module).atexit = False

    def run(self, bound: Bound) -> dict[str, Array]:
        """All buffers after the kernel."""
        device, kernel = self.device, self.dispatched.kernel
        device.activate()
        arguments: list[Argument] = []
        memory: dict[str, tuple[Array, int]] = {}
        try:
            for parameter, type in zip(kernel.parameters, self._types, strict=True):
                if not isinstance(type, MemRefType):
                    arguments.append(_scalar(type, bound.scalars[parameter.name]))
                    continue
                host = memory_of(parameter, bound.buffers[parameter.name], type)
                memory[parameter.name] = host, device.allocate(host.nbytes)
                device.upload(memory[parameter.name][1], pointer(host), host.nbytes)
                arguments.append(Argument("Q", memory[parameter.name][1]))
            launch = kernel.launch
            shared = self.dispatched.dynamic_shared_bytes
            device.launch(self._module, self._name, launch.grid, launch.block, arguments, shared)
            result: dict[str, Array] = {}
            for parameter in kernel.parameters:
                if parameter.name in memory:
                    host, address = memory[parameter.name]
                    device.download(pointer(host), address, host.nbytes)
                    result[parameter.name] = array_of(parameter, host, bound.buffers[parameter.name])
            return result
        finally:
            for _, address in memory.values():
                device.free(address)


def _image(ptx: str, architecture: str) -> bytes:
    try:
        return ptxas.assemble(ptx, architecture).data
    except ToolMissing:
        return ptx.encode()


def _scalar(type: Type, value: int | float) -> Argument:
    stored = np.array([value]).astype(numpy_dtype(type))
    if stored.dtype.name == "bfloat16":
        return Argument("h", int(stored.view(np.int16)[0]))
    if type.text not in _FORMATS:
        raise InternalError(f"a kernel's argument of type {type}")
    return Argument(_FORMATS[type.text], stored[0].item())
