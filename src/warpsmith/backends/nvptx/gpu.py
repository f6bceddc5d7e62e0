"""A kernel on a GPU of this computer: memory there, a launch, memory back.

In: a driver (anything that does what `Gpu` says), a kernel, its PTX or cubin.  Out: `OnGpu`, to be launched on arrays.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from warpsmith.arrays import Array, Dim3
from warpsmith.backends.base import Buffers
from warpsmith.errors import InternalError
from warpsmith.kernel import Kernel

__all__ = ["Gpu", "OnGpu", "Word"]

_FORMATS = {
    **{np.dtype(name): letter for name, letter in zip(("?", "e", "f", "d"), "?efd", strict=True)},
    **{np.dtype(f"{sign}{size}"): letter for sign in "iu" for size, letter in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))},
}


@dataclass(frozen=True, slots=True)
class Word:
    """A kernel's argument: a format of `struct` (`Q` for a device's address) and a value."""

    format: str
    value: int | float


class Gpu(Protocol):
    """What a driver does; `runtime/cuda/driver.py: CudaDevice` is the real one."""

    @property
    def compute_capability(self) -> tuple[int, int]:
        """(9, 0) for sm_90."""
        ...

    def activate(self) -> None:
        """Let the calls of this thread be for this GPU."""
        ...

    def load(self, image: bytes) -> int:
        """A module of PTX text or a cubin; a handle."""
        ...

    def unload(self, module: int) -> None:
        """Forget a module."""
        ...

    def allocate(self, size: int) -> int:
        """The address of new memory."""
        ...

    def free(self, address: int) -> None:
        """Give memory back."""
        ...

    def upload(self, address: int, host: int, size: int) -> None:
        """From this computer's memory at `host`."""
        ...

    def download(self, host: int, address: int, size: int) -> None:
        """To this computer's memory at `host`."""
        ...

    def launch(
        self, module: int, name: str, grid: Dim3, block: Dim3, arguments: Sequence[Word], dynamic_shared: int = 0
    ) -> None:
        """Run a kernel of a module; back when it is done."""
        ...


class OnGpu:
    """A kernel that is loaded on a GPU; it is unloaded when nobody holds it."""

    def __init__(self, gpu: Gpu, kernel: Kernel[object], image: bytes) -> None:
        self.gpu, self.kernel = gpu, kernel
        self._module = gpu.load(image)
        weakref.finalize(self, gpu.unload, self._module).atexit = False

    def launch(self, buffers: Buffers) -> list[Array]:
        """The outputs after a run.  Memory on the GPU goes back whatever happens."""
        gpu, kernel = self.gpu, self.kernel
        gpu.activate()
        words: list[Word] = []
        memory: list[tuple[Array, int]] = []
        outputs: list[tuple[Array, int]] = []
        try:
            for argument, given in zip(kernel.arguments, buffers, strict=True):
                if isinstance(given, np.generic):
                    words.append(_word(given))
                    continue
                host = np.empty(argument.elements, argument.dtype.numpy) if given is None else given
                if argument.is_output and given is not None:
                    host = host.copy()
                memory.append((host, gpu.allocate(host.nbytes)))
                gpu.upload(memory[-1][1], host.ctypes.data, host.nbytes)
                words.append(Word("Q", memory[-1][1]))
                if argument.is_output:
                    outputs.append(memory[-1])
            launch = kernel.launch
            gpu.launch(self._module, kernel.name, launch.grid, launch.block, words, launch.dynamic_shared)
            for host, address in outputs:
                gpu.download(host.ctypes.data, address, host.nbytes)
            return [host for host, _ in outputs]
        finally:
            for _, address in memory:
                gpu.free(address)


def _word(value: np.generic) -> Word:
    if value.dtype.name == "bfloat16":
        return Word("h", int(np.array(value).view(np.int16)))
    if value.dtype not in _FORMATS:
        raise InternalError(f"a kernel's argument of type {value.dtype}")
    return Word(_FORMATS[value.dtype], value.item())
