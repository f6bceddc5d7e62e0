"""DLPack in both directions, against numpy's own implementation where numpy has the type."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest
from needs import needs_jax

from warpsmith import compile, dtypes
from warpsmith.errors import ArgumentMismatch
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.runtime import dlpack

NUMPY_TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMPY_TYPES += ["float16", "float32", "float64", "complex64", "complex128"]
OWN_TYPES = [
    row.name
    for row in dtypes.BY_NAME.values()
    if row.is_array_element and row.bits >= 8 and row.numpy_name not in NUMPY_TYPES
]


def values(dtype: np.dtype) -> np.ndarray:
    raw = np.arange(24 * dtype.itemsize, dtype=np.uint8)
    return (raw % 2 if dtype.kind == "b" else raw).view(dtype)[:24].reshape(2, 3, 4)


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_numpys_tensors_are_read(name: str) -> None:
    array = values(np.dtype(name))
    seen = dlpack.to_numpy(array)
    assert seen.dtype == array.dtype
    assert seen.ctypes.data == array.ctypes.data
    assert seen.tobytes() == array.tobytes()


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_numpy_reads_ours(name: str) -> None:
    array = values(np.dtype(name))
    seen = np.from_dlpack(dlpack.export(array))
    assert seen.dtype == array.dtype
    assert seen.ctypes.data == array.ctypes.data
    np.testing.assert_array_equal(seen, array)


@pytest.mark.parametrize("name", OWN_TYPES)
def test_types_that_numpy_refuses_go_both_ways(name: str) -> None:
    dtype = dtypes.by_name(name).numpy
    array = values(dtype)
    with pytest.raises((BufferError, TypeError)):
        array.__dlpack__()
    seen = dlpack.to_numpy(dlpack.export(array))
    assert seen.dtype == dtype
    assert seen.ctypes.data == array.ctypes.data
    assert seen.tobytes() == array.tobytes()


VIEWS = {
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[:, ::-1],
    "strided": lambda a: a[:, 1:, ::2],
    "scalar": lambda a: a[1, 2, 3:].reshape(()),
    "broadcast": lambda a: np.broadcast_to(a[0, 0], (5, 4)),
    "empty": lambda a: a[:0],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_strides_and_offsets_survive(view: str, name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    array = VIEWS[view](values(dtype))
    seen = dlpack.to_numpy(dlpack.export(array))
    assert seen.shape == array.shape
    assert seen.tobytes() == array.tobytes()


def test_read_only_stays_read_only() -> None:
    array = values(np.dtype(np.float32))
    array.flags.writeable = False
    assert not dlpack.to_numpy(dlpack.export(array)).flags.writeable
    with pytest.raises(BufferError):
        dlpack.export(array).__dlpack__()  # before DLPack 1.0 there was no way to say so


def watched() -> tuple[np.ndarray, weakref.ref[np.ndarray]]:
    """An array that owns its memory, and a reference that tells when it dies."""
    array = values(np.dtype(np.float32)).copy()
    return array, weakref.ref(array)


@pytest.mark.slow
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_an_unused_capsule_frees_its_array(version: tuple[int, int] | None) -> None:
    array, alive = watched()
    capsule = dlpack.export(array).__dlpack__(max_version=version)
    del array
    gc.collect()
    assert alive() is not None
    del capsule
    gc.collect()
    assert alive() is None


def test_a_consumer_keeps_the_array_and_then_frees_it() -> None:
    array, alive = watched()
    seen = np.from_dlpack(dlpack.export(array))
    del array
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(seen, values(np.dtype(np.float32)))
    del seen
    gc.collect()
    assert alive() is None


@pytest.mark.slow
def test_our_view_keeps_the_producer_and_then_frees_it() -> None:
    array, alive = watched()
    seen = dlpack.to_numpy(dlpack.export(array))
    part = seen[1]
    del array, seen
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(part, values(np.dtype(np.float32))[1])
    del part
    gc.collect()
    assert alive() is None


def test_the_protocols_refusals() -> None:
    exported = dlpack.export(values(np.dtype(np.float32)))
    with pytest.raises(BufferError):
        exported.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        exported.__dlpack__(dl_device=(dlpack.CUDA, 0))
    with pytest.raises(BufferError):
        dlpack.export(np.zeros(4, [("a", "f4"), ("b", "i1")])["a"]).__dlpack__()


def test_unpacked_small_types_are_refused() -> None:
    with pytest.raises(ArgumentMismatch, match="int4"):
        dlpack.export(np.zeros(4, ml_dtypes.int4))


class OnDevice:
    """A producer whose tensor says that it is on a GPU."""

    def __init__(self) -> None:
        self.capsule = dlpack.export(values(np.dtype(np.float32))).__dlpack__(max_version=(1, 0))
        address = ctypes.pythonapi.PyCapsule_GetPointer
        tensor = dlpack._Versioned.from_address(address(id(self.capsule), b"dltensor_versioned"))
        tensor.tensor.device.kind = dlpack.CUDA

    def __dlpack__(self, **options: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, 0


def test_a_tensor_on_a_device_is_described_but_not_viewed() -> None:
    producer = OnDevice()
    assert dlpack.read(producer).device == dlpack.CUDA
    with pytest.raises(ArgumentMismatch, match="on a device"):
        dlpack.to_numpy(producer)


UPDATE = """HloModule m
ENTRY e {{
  x = {0}[512,256] parameter(0)
  u = {0}[3,256] parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  ROOT r = {0}[512,256] dynamic-update-slice(x, u, i, z)
}}"""


@pytest.mark.parametrize("name", ["f32", "bf16", "f8e4m3fn", "f8e5m2", "pred", "c64"])
def test_a_call_takes_and_gives_tensors_without_a_copy(name: str) -> None:
    """A donated argument of another library is updated in place, and the result goes on as it is."""
    run = compile(parse_hlo(UPDATE.format(name)))
    dtype = dtypes.by_name(name).numpy
    x, u = np.zeros((512, 256), dtype), np.ones((3, 256), dtype)
    (kept,) = run(dlpack.export(x), u, np.int32(7))
    assert not np.may_share_memory(kept, x)
    assert not x.astype(np.complex64).any()
    (result,) = run(dlpack.export(x), u, np.int32(7), donate=(0,))
    assert dlpack.to_numpy(dlpack.export(result)).ctypes.data == x.ctypes.data
    wanted = np.zeros((512, 256), np.complex64)
    wanted[7:10] = 1
    np.testing.assert_array_equal(x.astype(np.complex64), wanted)


def test_an_argument_that_another_library_made_read_only_is_not_written_to() -> None:
    run = compile(parse_hlo(UPDATE.format("bf16")))
    x, u = np.zeros((512, 256), ml_dtypes.bfloat16), np.ones((3, 256), ml_dtypes.bfloat16)
    x.flags.writeable = False
    (result,) = run(dlpack.export(x), u, np.int32(7), donate=(0,))
    assert not x.astype(np.float32).any()
    assert result.astype(np.float32).sum() == 3 * 256


IN_JAX = """
import jax, ml_dtypes, numpy
from warpsmith import compile, parse_hlo
from warpsmith.runtime.dlpack import export
for name in ("bf16", "f8e4m3fn", "f32"):
    type = f"{name}[4096,512]"
    run = compile(parse_hlo(f"HloModule m\\nENTRY e {{ p = {type} parameter(0)  ROOT r = {type} negate(p) }}"))
    x = numpy.ones((4096, 512), run.plan.buffers[run.plan.parameters[0]].dtype.numpy)
    (result,) = run(x)
    there = jax.dlpack.from_dlpack(export(result))
    print(name, there.dtype, there.unsafe_buffer_pointer() == result.ctypes.data, float(there[7, 9]))
    (back,) = run(there)
    print(bool((back == x).all()))
"""


@pytest.mark.slow
@needs_jax
def test_jax_takes_results_where_they_lie() -> None:
    """bf16 and f8 too; and its arrays come back in."""
    found = subprocess.run([sys.executable, "-c", IN_JAX], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    assert found[:-1] == [
        "bf16 bfloat16 True -1.0",
        "True",
        "f8e4m3fn float8_e4m3fn True -1.0",
        "True",
        "f32 float32 True -1.0",
        "True",
    ]
