"""Kernels on a GPU through the CUDA driver's C interface: PTX or a cubin in, a finished launch out.

The driver is the library that comes with a GPU's own software (libcuda, nvcuda); it is looked for when it is first
wanted, and nothing of CUDA has to be installed besides.  Functions and codes: CUDA Driver API reference manual 13.

Not tried on a GPU: this has run against a driver of the tests' own alone, which checks what it is called with.

A driver is anything with `call(name, *arguments) -> code`: `LibCuda` is the real one.  Arguments are numbers, bytes,
and `Out` for what the driver gives back.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from warpsmith.arrays import Dim3
from warpsmith.backends.nvptx.gpu import Word
from warpsmith.errors import RuntimeFailure, ToolMissing

__all__ = ["CudaDevice", "Driver", "LibCuda", "Out", "packed"]

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
_MOST_DYNAMIC = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


@dataclass(slots=True)
class Out:
    """A place for a number, or text, that the driver gives."""

    value: Any = 0


class Driver(Protocol):
    """A CUDA driver: calls a function by name, and gives its code, 0 for success."""

    def call(self, name: str, /, *arguments: int | bytes | Out) -> int:
        """Call a function of libcuda: its status (0 is success)."""
        ...


# One letter an argument: p a pointer or handle, d a device address, i an int, u an unsigned int, z a size; capitals are
# places for such; T a place for text.
_SIGNATURES = {
    "cuInit": "u",
    "cuGetErrorName": "iT",
    "cuGetErrorString": "iT",
    "cuDeviceGetCount": "I",
    "cuDeviceGet": "Ii",
    "cuDeviceGetAttribute": "Iii",
    "cuDevicePrimaryCtxRetain": "Pi",
    "cuDevicePrimaryCtxRelease_v2": "i",
    "cuCtxSetCurrent": "p",
    "cuCtxSynchronize": "",
    "cuModuleLoadData": "Pp",
    "cuModuleGetFunction": "Ppp",
    "cuFuncSetAttribute": "pii",
    "cuMemAlloc_v2": "Dz",
    "cuMemFree_v2": "d",
    "cuMemcpyHtoD_v2": "dpz",
    "cuMemcpyDtoH_v2": "pdz",
    "cuLaunchKernel": "puuuuuuuppp",
}
_TYPES: dict[str, Any] = {
    "p": ctypes.c_void_p,
    "d": ctypes.c_uint64,
    "i": ctypes.c_int,
    "u": ctypes.c_uint,
    "z": ctypes.c_size_t,
    "t": ctypes.c_char_p,
}


class LibCuda:
    """The driver of this computer.  ToolMissing without one."""

    def __init__(self) -> None:
        self.library = _opened("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        if self.library is None:
            raise ToolMissing(
                "no CUDA driver is here (libcuda isn't found)",
                help="it comes with a GPU's own software; without a GPU: --platform sim, or --platform cpu",
            )

    def call(self, name: str, /, *arguments: int | bytes | Out) -> int:
        """Call a function of libcuda by its name; what it returns goes into each `Out`.  The status."""
        places = [_TYPES[letter.lower()]() for letter in _SIGNATURES[name]]
        given: list[Any] = []
        for place, argument in zip(places, arguments, strict=True):
            if isinstance(argument, Out):
                given.append(ctypes.byref(place))
            else:
                given.append(argument if isinstance(argument, bytes) else type(place)(argument))
        code = int(getattr(self.library, name)(*given))
        for place, argument in zip(places, arguments, strict=True):
            if isinstance(argument, Out):
                argument.value = place.value or 0
        return code


def _opened(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def packed(arguments: Sequence[Word]) -> tuple[bytes, list[int]]:
    """The arguments side by side, each aligned to its size, and where each begins."""
    data, places = b"", list[int]()
    for argument in arguments:
        value = struct.pack(f"={argument.format}", argument.value)
        data += bytes(-len(data) % len(value))
        places.append(len(data))
        data += value
    return data, places


class CudaDevice:
    """The first GPU of a driver: memory, modules, launches.  RuntimeFailure for what the driver refuses.

    The driver is told to let go of the GPU when nobody holds this object any more.
    """

    def __init__(self, driver: Driver | None = None) -> None:
        self.driver: Driver = LibCuda() if driver is None else driver
        count, self._number, context = Out(), Out(), Out()
        self._do("cuInit", 0)
        self._do("cuDeviceGetCount", count)
        if not count.value:
            raise ToolMissing("the CUDA driver finds no GPU", help="--platform sim, or --platform cpu, needs none")
        self._do("cuDeviceGet", self._number, 0)
        self._do("cuDevicePrimaryCtxRetain", context, self._number.value)
        self._context = context.value
        closing = weakref.finalize(self, self.driver.call, "cuDevicePrimaryCtxRelease_v2", self._number.value)
        closing.atexit = False  # the driver cleans up after a process
        self.activate()

    def activate(self) -> None:
        """Let the calls of this thread be for this GPU: a driver keeps that for each thread."""
        self._do("cuCtxSetCurrent", self._context)

    def _do(self, name: str, *arguments: int | bytes | Out) -> None:
        code = self.driver.call(name, *arguments)
        if code:
            short, long = Out(b""), Out(b"")
            self.driver.call("cuGetErrorName", code, short)
            self.driver.call("cuGetErrorString", code, long)
            words = [each.value.decode() for each in (short, long) if isinstance(each.value, bytes) and each.value]
            raise RuntimeFailure(f"{name} failed: {': '.join(words) or f'code {code}'}", help=_HELP.get(code))

    @property
    def compute_capability(self) -> tuple[int, int]:
        """(9, 0) for sm_90."""
        major, minor = Out(), Out()
        self._do("cuDeviceGetAttribute", major, _MAJOR, self._number.value)
        self._do("cuDeviceGetAttribute", minor, _MINOR, self._number.value)
        return int(major.value), int(minor.value)

    def load(self, image: bytes) -> int:
        """A module of PTX text or a cubin; a handle."""
        module = Out()
        self._do("cuModuleLoadData", module, image + b"\0")
        return int(module.value)

    def unload(self, module: int) -> None:
        """Forget a module.  No error: after a launch that failed the driver refuses everything."""
        self.driver.call("cuCtxSetCurrent", self._context)
        self.driver.call("cuModuleUnload", module)

    def allocate(self, size: int) -> int:
        """The address of new memory."""
        address = Out()
        self._do("cuMemAlloc_v2", address, max(1, size))
        return int(address.value)

    def free(self, address: int) -> None:
        """Give memory back.  No error: after a launch that failed the driver refuses everything, and has said why."""
        self.driver.call("cuMemFree_v2", address)

    def upload(self, address: int, host: int, size: int) -> None:
        """From this computer's memory at `host`."""
        if size:
            self._do("cuMemcpyHtoD_v2", address, host, size)

    def download(self, host: int, address: int, size: int) -> None:
        """Copy `size` bytes from the device to the host.  RuntimeFailure if the driver refuses."""
        if size:
            self._do("cuMemcpyDtoH_v2", host, address, size)

    def launch(
        self, module: int, name: str, grid: Dim3, block: Dim3, arguments: Sequence[Word], dynamic_shared: int = 0
    ) -> None:
        """Run a kernel of a module; back when it is done."""
        function = Out()
        self._do("cuModuleGetFunction", function, module, name.encode() + b"\0")
        if dynamic_shared:  # unless asked for, dynamic and static memory are 48 KiB together at most
            self._do("cuFuncSetAttribute", function.value, _MOST_DYNAMIC, dynamic_shared)
        data, places = packed(arguments)
        values = ctypes.create_string_buffer(data, max(1, len(data)))
        start = ctypes.addressof(values)
        pointers = struct.pack(f"={len(places)}Q", *(start + place for place in places))
        self._do("cuLaunchKernel", function.value, *grid, *block, dynamic_shared, 0, pointers, 0)
        self._do("cuCtxSynchronize")


_HELP = {
    2: "the GPU's memory is full: smaller arrays, or fewer other programs on it",
    209: "the kernel is for another GPU: give --target its own",
    218: "the driver refuses the PTX: a newer driver, or ptxas (pip install 'warpsmith[cuda]'), may take it",
    222: "the driver is older than the PTX: a newer driver, or ptxas (pip install 'warpsmith[cuda]'), takes it",
    700: "the kernel reads or writes outside of its memory: the simulator says where (--platform sim)",
    701: "the kernel wants more registers or shared memory than this GPU has for a block",
}
