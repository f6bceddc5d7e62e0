"""Launches through the CUDA driver, against a driver of our own that checks what it is called with and runs kernels on
the simulator.  No GPU is needed; that a real driver takes the same calls is not shown here."""

from __future__ import annotations

import ctypes
import gc
import struct
from typing import Any

import numpy as np
import pytest

from tests.tile.helpers import SEED, body, read
from warpsmith.backends.nvptx.backend import Nvptx
from warpsmith.backends.nvptx.gpu import Word
from warpsmith.cli import main
from warpsmith.compiler.tile.arguments import Bound, bind_arguments
from warpsmith.compiler.tile.launches import TileExecutable
from warpsmith.compiler.tile.programs import run_tile
from warpsmith.devices import device
from warpsmith.errors import RuntimeFailure, ToolMissing, UsageError
from warpsmith.runtime.cuda import driver as cuda_driver
from warpsmith.runtime.cuda.driver import CudaDevice, LibCuda, Out, packed
from warpsmith.tile.dispatch import dispatch


class FakeDriver:
    """A driver with memory of its own; a launch calls `kernel(memory by address, values of the arguments)`."""

    def __init__(
        self, kernel: Any = None, *, sizes: tuple[int, ...] = (8, 8), gpus: int = 1, capability: int = 90
    ) -> None:
        self.kernel, self.sizes, self.gpus, self.capability = kernel, sizes, gpus, capability
        self.memory: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.modules: dict[int, bytes] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.failing: dict[str, int] = {}

    def call(self, name: str, /, *arguments: Any) -> int:
        self.calls.append((name, *arguments))
        if name in self.failing:
            return self.failing[name]
        handler = getattr(self, name, None)
        return (handler(*arguments) if handler is not None else 0) or 0

    def cuGetErrorName(self, code: int, text: Out) -> None:
        text.value = {2: b"CUDA_ERROR_OUT_OF_MEMORY", 222: b"CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}.get(code, b"")

    def cuGetErrorString(self, code: int, text: Out) -> None:
        text.value = {2: b"out of memory"}.get(code, b"")

    def cuDeviceGetCount(self, count: Out) -> None:
        count.value = self.gpus

    def cuDeviceGetAttribute(self, value: Out, attribute: int, device: int) -> None:
        value.value = {75: self.capability // 10, 76: self.capability % 10}[attribute]

    def cuModuleLoadData(self, module: Out, image: bytes) -> None:
        module.value = 7 + len(self.modules)
        self.modules[module.value] = image

    def cuModuleGetFunction(self, function: Out, module: int, name: bytes) -> None:
        assert module in self.modules
        assert name.endswith(b"\0")
        function.value = 1000 + module

    def cuMemAlloc_v2(self, address: Out, size: int) -> None:
        block = ctypes.create_string_buffer(size)
        address.value = ctypes.addressof(block)
        self.memory[address.value] = block

    def cuMemFree_v2(self, address: int) -> None:
        del self.memory[address]

    def cuMemcpyHtoD_v2(self, address: int, host: int, size: int) -> None:
        assert size <= len(self.memory[address])
        ctypes.memmove(address, host, size)

    def cuMemcpyDtoH_v2(self, host: int, address: int, size: int) -> None:
        assert size <= len(self.memory[address])
        ctypes.memmove(host, address, size)

    def cuLaunchKernel(self, function: int, *rest: Any) -> None:
        pointers, extra = rest[-2:]
        assert extra == 0
        places = struct.unpack(f"={len(self.sizes)}Q", pointers)
        values = [ctypes.string_at(place, size) for place, size in zip(places, self.sizes, strict=True)]
        if self.kernel is not None:
            self.kernel(self.memory, values)

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]


def floats(memory: dict[int, Any], address: bytes) -> np.ndarray:
    return np.frombuffer(memory[struct.unpack("=Q", address)[0]], np.float32)


def test_arguments_lie_side_by_side_each_at_a_multiple_of_its_size() -> None:
    data, places = packed([Word("i", -2), Word("Q", 1 << 40), Word("?", 1), Word("e", 1.5), Word("d", 2.5)])
    assert places == [0, 8, 16, 18, 24]
    assert struct.unpack_from("=i", data, 0) == (-2,)
    assert struct.unpack_from("=Q", data, 8) == (1 << 40,)
    assert struct.unpack_from("=e", data, 18) == (1.5,)
    assert packed([]) == (b"", [])


def test_a_kernel_runs_on_the_arrays_and_gives_its_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def root(memory: dict[int, Any], values: list[bytes]) -> None:
        floats(memory, values[1])[:] = np.sqrt(floats(memory, values[0]))

    driver = FakeDriver(root)
    monkeypatch.setattr(cuda_driver, "LibCuda", lambda: driver)
    a = np.random.default_rng(1).random((32, 8), dtype=np.float32)
    result = run_tile(read(SEED), [a], platform="cuda")
    np.testing.assert_array_equal(result.outputs["B_ptr"], np.sqrt(a))
    assert (result.ok, result.platform) == (True, "cuda")
    assert driver.memory == {}
    ((_, *shape),) = driver.named("cuLaunchKernel")
    assert shape[:8] == [1, 1, 1, 32, 1, 1, 0, 0]
    (image,) = driver.modules.values()
    assert image.startswith(b"\x7fELF") or b".target sm_90" in image
    assert image.endswith(b"\0")


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver, "LibCuda", FakeDriver)
    result = run_tile(read(SEED), [np.ones((32, 8), np.float32)], platform="cuda")
    assert list(result.mismatches) == ["B_ptr"]


def test_scalars_go_with_the_type_that_the_kernel_has(monkeypatch: pytest.MonkeyPatch) -> None:
    text = body("B[tid, 0] = A[tid, 0] * x\nif n > 3:\n    B[tid, 1] = A[tid, 0]").replace(
        "B_ptr: T.handle)", "B_ptr: T.handle, n: T.int32, x: T.float32)"
    )

    def scaled(memory: dict[int, Any], values: list[bytes]) -> None:
        a, b = (floats(memory, value).reshape(64, 64) for value in values[:2])
        b[:32, 0] = a[:32, 0] * np.float32(struct.unpack("=f", values[3])[0])
        if struct.unpack("=i", values[2])[0] > 3:
            b[:32, 1] = a[:32, 0]

    monkeypatch.setattr(cuda_driver, "LibCuda", lambda: FakeDriver(scaled, sizes=(8, 8, 4, 4)))
    assert run_tile(read(text), {"n": 5, "x": 0.5}, platform="cuda").ok


def executable_and_arguments(driver: FakeDriver) -> tuple[TileExecutable, Bound]:
    """The seed program on a driver, and random arrays for it."""
    kernel = read(SEED)
    dispatched = dispatch(kernel, device("sm_90"))
    bound = bind_arguments(dispatched, None, 0)
    return TileExecutable(dispatched, Nvptx(device("sm_90"), CudaDevice(driver))), bound


def test_memory_goes_back_when_a_launch_fails() -> None:
    driver = FakeDriver()
    executable, bound = executable_and_arguments(driver)
    driver.failing["cuLaunchKernel"] = 700
    with pytest.raises(RuntimeFailure, match="cuLaunchKernel failed: code 700") as failed:
        executable.run(bound)
    assert "--platform sim" in str(failed.value)
    assert driver.memory == {}


def test_the_error_of_a_launch_is_told_though_all_that_follows_fails_too() -> None:
    """As after an access outside of memory: the driver gives the same code from then on."""
    driver = FakeDriver()
    executable, bound = executable_and_arguments(driver)
    driver.failing = dict.fromkeys(("cuLaunchKernel", "cuMemFree_v2", "cuModuleUnload"), 700)
    with pytest.raises(RuntimeFailure, match="cuLaunchKernel failed"):
        executable.run(bound)


def test_a_kernel_that_nobody_holds_is_unloaded_and_then_the_gpu_let_go() -> None:
    driver = FakeDriver()
    executable, _ = executable_and_arguments(driver)
    assert not driver.named("cuModuleUnload")
    del executable
    gc.collect()
    assert driver.named("cuModuleUnload") == [(7,)]
    assert driver.calls[-1][0] == "cuDevicePrimaryCtxRelease_v2"


def test_a_run_is_for_the_gpu_in_whatever_thread_it_is() -> None:
    driver = FakeDriver()
    executable, bound = executable_and_arguments(driver)
    driver.calls.clear()
    executable.run(bound)
    assert driver.calls[0][0] == "cuCtxSetCurrent"


def test_dynamic_shared_memory_is_asked_for() -> None:
    driver = FakeDriver(sizes=())
    gpu = CudaDevice(driver)
    module = gpu.load(b"// ptx")
    gpu.launch(module, "k", (2, 3, 1), (64, 1, 1), [])
    assert driver.named("cuFuncSetAttribute") == []
    gpu.launch(module, "k", (2, 3, 1), (64, 1, 1), [], 64 << 10)
    assert driver.named("cuFuncSetAttribute") == [(1007, 8, 64 << 10)]
    assert [call[1:8] for call in driver.named("cuLaunchKernel")] == [
        (2, 3, 1, 64, 1, 1, 0),
        (2, 3, 1, 64, 1, 1, 64 << 10),
    ]


def test_errors_say_what_the_driver_said_and_what_helps() -> None:
    driver = FakeDriver()
    gpu = CudaDevice(driver)
    driver.failing = {"cuMemAlloc_v2": 2, "cuModuleLoadData": 222}
    with pytest.raises(RuntimeFailure, match="cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY: out of memory"):
        gpu.allocate(5)
    with pytest.raises(RuntimeFailure, match="CUDA_ERROR_UNSUPPORTED_PTX_VERSION") as failed:
        gpu.load(b"")
    assert "ptxas" in str(failed.value)


def test_no_gpu_and_an_older_gpu_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolMissing, match="finds no GPU"):
        CudaDevice(FakeDriver(gpus=0))
    monkeypatch.setattr(cuda_driver, "LibCuda", lambda: FakeDriver(capability=80))
    with pytest.raises(UsageError, match="the GPU here is sm_80, and the kernel is for sm_90"):
        run_tile(read(SEED), platform="cuda")


def test_without_a_driver_the_command_says_what_to_do(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cuda_driver, "_opened", lambda name: None)
    from tests.tile.helpers import IMPORTS

    path = tmp_path / "seed.py"
    path.write_text(IMPORTS + SEED)
    assert main(["tile", str(path), "--run", "--platform", "cuda"]) == 2
    assert "no CUDA driver is here" in (err := capsys.readouterr().err)
    assert "--platform sim" in err


class _Library:
    """What ctypes gives of a library: functions that take C values and places."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def cuDeviceGetAttribute(self, place: Any, attribute: Any, device: Any) -> int:
        place._obj.value = 10 * attribute.value + device.value
        return 0

    def cuMemAlloc_v2(self, place: Any, size: Any) -> int:
        assert isinstance(place._obj, ctypes.c_uint64)
        assert isinstance(size, ctypes.c_size_t)
        place._obj.value = 1 << 63
        return 0

    def cuGetErrorName(self, code: Any, place: Any) -> int:
        place._obj.value = b"CUDA_ERROR_INVALID_VALUE"
        return 0

    def cuModuleGetFunction(self, place: Any, module: Any, name: Any) -> int:
        assert isinstance(module, ctypes.c_void_p)
        assert name == b"k\0"
        return 500


def test_numbers_and_places_become_c_values_of_the_manuals_types(monkeypatch: pytest.MonkeyPatch) -> None:
    library = _Library()
    monkeypatch.setattr(cuda_driver, "_opened", lambda name: library)
    driver = LibCuda()
    out = Out()
    assert driver.call("cuDeviceGetAttribute", out, 75, 3) == 0
    assert out.value == 753
    assert driver.call("cuMemAlloc_v2", out, 5) == 0
    assert out.value == 1 << 63
    assert driver.call("cuGetErrorName", 1, out) == 0
    assert out.value == b"CUDA_ERROR_INVALID_VALUE"
    assert driver.call("cuModuleGetFunction", out, 3, b"k\0") == 500
