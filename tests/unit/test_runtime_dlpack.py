"""DLPack in both directions, against numpy's own implementation where numpy has the type."""

from __future__ import annotations

import ctypes
import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

from warpsmith import dtypes
from warpsmith.errors import ArgumentMismatch
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
