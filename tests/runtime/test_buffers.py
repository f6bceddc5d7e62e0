"""Result memory: recycled, bounded, aligned, never handed out twice; and array-likes read without a copy."""

from __future__ import annotations

import gc
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.errors import ArgumentMismatch
from warpsmith.runtime import buffers, dlpack
from warpsmith.runtime.buffers import ALIGNED_FROM, ALIGNMENT, BufferPool, as_array, pointer

F32 = np.dtype(np.float32)
BF16 = np.dtype(ml_dtypes.bfloat16)
LARGE = (1 << 20,)


def fresh(limit: int = 1 << 30) -> BufferPool:
    return BufferPool(limit)


def test_the_memory_of_a_dead_result_is_used_again() -> None:
    pool = fresh()
    first = pool.empty(LARGE, F32)
    address = pointer(first)
    del first
    gc.collect()
    assert pointer(pool.empty(LARGE, F32)) == address


def test_memory_in_use_is_not_handed_out() -> None:
    pool = fresh()
    live = [pool.empty(LARGE, F32) for _ in range(4)]
    for number, array in enumerate(live):
        array[:] = number
    assert [set(array.tolist()[:: 1 << 15]) for array in live] == [{0.0}, {1.0}, {2.0}, {3.0}]
    assert len({pointer(array) for array in live}) == 4


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["slice", "view", "transpose", "dlpack", "memoryview"])
def test_a_view_keeps_the_memory(keep: str) -> None:
    pool = fresh()
    array = pool.empty((1024, 1024), F32)
    array[:] = 7
    makers = {
        "slice": lambda a: a[5:, 3:],
        "view": lambda a: a.view(np.int32),
        "transpose": lambda a: a.T,
        "dlpack": lambda a: dlpack.to_numpy(dlpack.export(a)),
        "memoryview": memoryview,
    }
    view = makers[keep](array)
    address = pointer(array)
    del array
    gc.collect()
    assert pointer(pool.empty((1024, 1024), F32)) != address
    del view
    gc.collect()
    found = [pool.empty((1024, 1024), F32) for _ in range(2)]
    assert address in [pointer(one) for one in found]


def test_what_waits_for_reuse_is_bounded() -> None:
    pool = fresh(limit=16 << 20)
    arrays = [pool.empty(LARGE, F32) for _ in range(10)]
    del arrays
    gc.collect()
    assert 0 < pool.held <= 16 << 20


def test_trim_gives_everything_back() -> None:
    pool = fresh()
    array = pool.empty(LARGE, F32)
    del array
    gc.collect()
    assert pool.held > 0
    pool.trim()
    assert pool.held == 0
    assert pool.empty(LARGE, F32).shape == LARGE


@settings(deadline=None, max_examples=60)
@given(
    shape=st.lists(st.integers(0, 200), max_size=3).map(tuple), dtype=st.sampled_from([F32, BF16, np.dtype(np.int8)])
)
def test_shape_dtype_order_and_alignment_are_as_promised(shape: tuple[int, ...], dtype: np.dtype) -> None:
    array = buffers.default_pool().empty(shape, dtype)
    assert array.shape == shape
    assert array.dtype == dtype
    assert array.flags.c_contiguous
    assert array.flags.writeable
    if array.nbytes >= ALIGNED_FROM:
        assert pointer(array) % ALIGNMENT == 0


def test_threads_never_share_a_block() -> None:
    pool = fresh()
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(300):
            array = pool.empty((1 << 16,), np.dtype(np.int32))
            array[:] = number
            if (array != number).any():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


ARRAYS = [
    np.arange(10),
    np.arange(10)[::2],
    np.arange(12).reshape(3, 4).T[1:],
    np.zeros((0, 3), F32),
    np.array(1.5),
    np.zeros(3, BF16),
    np.frombuffer(b"read only data", np.uint8)[1:],
    np.zeros(5, [("a", "i4"), ("b", "f8")])["b"],
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_the_fast_address_is_numpys_address(array: np.ndarray) -> None:
    assert pointer(array) == array.ctypes.data


def test_numpy_arrays_pass_through() -> None:
    array = np.arange(6, dtype=F32).reshape(2, 3)[:, 1:]
    assert as_array(array) is array


class Producer:
    """An array of another library: it speaks DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self.inner = dlpack.export(array)

    def __dlpack__(self, **options: Any) -> object:
        return self.inner.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.inner.__dlpack_device__()


@pytest.mark.parametrize("dtype", [F32, BF16, np.dtype(ml_dtypes.float8_e4m3fn)])
def test_dlpack_producers_are_read_in_place(dtype: np.dtype) -> None:
    array = np.arange(6).astype(dtype).reshape(2, 3)
    seen = as_array(Producer(array))
    assert seen.dtype == dtype
    assert pointer(seen) == pointer(array)
    assert seen.tobytes() == array.tobytes()


def test_lists_and_scalars_become_arrays() -> None:
    assert as_array([[1.0, 2.0]]).shape == (1, 2)
    assert as_array(3).shape == ()


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(ArgumentMismatch, match="object"):
        as_array(object())
