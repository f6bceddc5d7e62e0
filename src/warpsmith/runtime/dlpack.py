"""DLPack without numpy: any producer's tensor in, a numpy view out; and bf16, f8 arrays out to any consumer.

numpy refuses to pass `bfloat16` and `float8` types through DLPack, so both directions work on `DLManagedTensor` and
`DLManagedTensorVersioned` themselves (the layouts of dlpack.h 1.1).  Nothing is copied.

* In: `read` keeps the producer's capsule; when the view dies the capsule does, and its own destructor frees the
  tensor.
* Out: `export` wraps an array in an object with `__dlpack__`; the array lives until the consumer calls the deleter.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from warpsmith import dtypes
from warpsmith.errors import ArgumentMismatch

__all__ = ["CPU", "CUDA", "DlpackTensor", "Exported", "SupportsDlpack", "export", "read", "to_numpy"]

CPU: Final = 1
CUDA: Final = 2
_HOST_DEVICES = frozenset({CPU, 3, 11})  # and CUDA's pinned host memory, and ROCm's

_TYPES: dict[tuple[int, int], str] = {
    **{(0, bits): f"s{bits}" for bits in (8, 16, 32, 64)},
    **{(1, bits): f"u{bits}" for bits in (8, 16, 32, 64)},
    **{(2, bits): f"f{bits}" for bits in (16, 32, 64)},
    (4, 16): "bf16",
    (5, 64): "c64",
    (5, 128): "c128",
    (6, 8): "pred",
    (7, 8): "f8e3m4",
    (8, 8): "f8e4m3",
    (9, 8): "f8e4m3b11fnuz",
    (10, 8): "f8e4m3fn",
    (11, 8): "f8e4m3fnuz",
    (12, 8): "f8e5m2",
    (13, 8): "f8e5m2fnuz",
    (14, 8): "f8e8m0fnu",
}
"""(DLDataTypeCode, bits) of one lane -> HLO name."""

_CODES = {name: key for key, name in _TYPES.items()}


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_READ_ONLY = 1
_PLAIN_NAME, _VERSIONED_NAME = b"dltensor", b"dltensor_versioned"

_api = ctypes.pythonapi
_is_valid = _api.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.c_void_p, ctypes.c_char_p), ctypes.c_int
_get_pointer = _api.PyCapsule_GetPointer
_get_pointer.argtypes, _get_pointer.restype = (ctypes.c_void_p, ctypes.c_char_p), ctypes.c_void_p
_new_capsule = _api.PyCapsule_New
_new_capsule.argtypes, _new_capsule.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.py_object


@runtime_checkable
class SupportsDlpack(Protocol):
    """An array of any library that speaks DLPack."""

    def __dlpack__(self, **options: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


@dataclass(frozen=True, slots=True)
class DlpackTensor:
    """A tensor that another library owns.  `strides` count elements; `owner` keeps the memory."""

    pointer: int
    device: int
    device_index: int
    dtype: dtypes.DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    read_only: bool
    owner: Any


def read(producer: SupportsDlpack) -> DlpackTensor:
    """What a producer's DLPack capsule says.  `ArgumentMismatch` for element types that HLO doesn't have."""
    try:
        capsule = producer.__dlpack__(max_version=(1, 1))
    except TypeError:  # a producer of before DLPack 1.0
        capsule = producer.__dlpack__()
    except BufferError as error:
        raise ArgumentMismatch(f"a {type(producer).__name__} gave no DLPack tensor: {error}") from error
    read_only = False
    if _is_valid(id(capsule), _VERSIONED_NAME):
        versioned = _Versioned.from_address(_get_pointer(id(capsule), _VERSIONED_NAME))
        if versioned.major != 1:
            raise ArgumentMismatch(f"DLPack {versioned.major}.{versioned.minor} isn't known here")
        read_only, tensor = bool(versioned.flags & _READ_ONLY), versioned.tensor
    elif _is_valid(id(capsule), _PLAIN_NAME):
        tensor = _Managed.from_address(_get_pointer(id(capsule), _PLAIN_NAME)).tensor
    else:
        raise ArgumentMismatch(f"a {type(producer).__name__}'s __dlpack__ gave no fresh DLPack capsule")
    key = int(tensor.dtype.code), int(tensor.dtype.bits)
    if key not in _TYPES or tensor.dtype.lanes != 1:
        raise ArgumentMismatch(f"no HLO element type for DLPack type {key} with {tensor.dtype.lanes} lanes")
    shape = tuple(int(tensor.shape[axis]) for axis in range(tensor.ndim))
    strides = tuple(int(tensor.strides[axis]) for axis in range(tensor.ndim)) if tensor.strides else _row_major(shape)
    return DlpackTensor(
        pointer=(tensor.data or 0) + int(tensor.byte_offset),
        device=int(tensor.device.kind),
        device_index=int(tensor.device.index),
        dtype=dtypes.by_name(_TYPES[key]),
        shape=shape,
        strides=strides,
        read_only=read_only,
        owner=capsule,
    )


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


class _Memory:
    """A tensor's memory as numpy's array interface states it; the array keeps this object, and this the owner."""

    def __init__(self, tensor: DlpackTensor) -> None:
        size = tensor.dtype.bits // 8
        self.owner = tensor.owner
        self.__array_interface__ = {
            "version": 3,
            "data": (tensor.pointer, tensor.read_only),
            "shape": tensor.shape,
            "strides": tuple(stride * size for stride in tensor.strides),
            "typestr": f"|V{size}",
        }


def to_numpy(producer: SupportsDlpack) -> NDArray[Any]:
    """A numpy view of a tensor in host memory.  `ArgumentMismatch` when it is on a device."""
    tensor = read(producer)
    if tensor.device not in _HOST_DEVICES:
        raise ArgumentMismatch(
            f"an array is on a device (DLPack kind {tensor.device}), this executable runs on the CPU",
            help="copy it to the host first",
        )
    if 0 in tensor.shape:
        return np.empty(tensor.shape, tensor.dtype.numpy)
    return np.asarray(_Memory(tensor)).view(tensor.dtype.numpy)


# Out

_alive: dict[int, tuple[Any, ...]] = {}
"""Address of a managed tensor that a consumer may hold -> everything that it points to."""


def _delete(address: int | None) -> None:
    _alive.pop(address or 0, None)


def _destroy(capsule: int | None) -> None:
    """A capsule dies; if nobody took its tensor (a taker renames it), the tensor goes too."""
    for name in (_PLAIN_NAME, _VERSIONED_NAME):
        if _is_valid(capsule, name):
            _delete(_get_pointer(capsule, name))


_deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_delete)
_destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_destroy)
_deleter_address = ctypes.cast(_deleter, ctypes.c_void_p).value
_destructor_address = ctypes.cast(_destructor, ctypes.c_void_p).value


class Exported:
    """An array that any DLPack consumer can take, as in `torch.from_dlpack(export(array))`."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array: NDArray[Any] = np.asarray(array)
        self._code = _CODES.get(dtypes.from_numpy(array.dtype).name)
        if self._code is None:
            raise ArgumentMismatch(f"{array.dtype} has no DLPack form")

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule.  `BufferError`, as the protocol says, for another device, a copy, or what DLPack can't state."""
        del stream
        if dl_device is not None and dl_device[0] != CPU:
            raise BufferError("this array is in host memory")
        if copy:
            raise BufferError("this array isn't copied; copy it first")
        array, versioned = self._array, max_version is not None and max_version[0] >= 1
        if not versioned and not array.flags.writeable:
            raise BufferError("a read-only array needs DLPack 1.0")
        size = array.itemsize
        if any(stride % size for stride in array.strides):
            raise BufferError("its strides aren't whole elements")
        extents = ctypes.c_int64 * max(1, array.ndim)
        shape, strides = extents(*array.shape), extents(*(stride // size for stride in array.strides))
        assert self._code is not None
        managed = _Versioned() if versioned else _Managed()
        if isinstance(managed, _Versioned):
            managed.major, managed.minor = 1, 0
            managed.flags = 0 if array.flags.writeable else _READ_ONLY
        managed.deleter = _deleter_address
        managed.tensor.data = array.ctypes.data
        managed.tensor.device.kind, managed.tensor.device.index = CPU, 0
        managed.tensor.ndim = array.ndim
        managed.tensor.dtype.code, managed.tensor.dtype.bits = self._code
        managed.tensor.dtype.lanes = 1
        managed.tensor.shape, managed.tensor.strides = shape, strides
        address = ctypes.addressof(managed)
        _alive[address] = (managed, shape, strides, array)
        return _new_capsule(address, _VERSIONED_NAME if versioned else _PLAIN_NAME, _destructor_address)


def export(array: NDArray[Any]) -> Exported:
    """Wrap an array for a DLPack consumer.  `ArgumentMismatch` for sub-byte types, which numpy holds unpacked."""
    return Exported(array)
