"""Loads that run backwards or skip elements, on the CPU: every element arrives in its place."""

from __future__ import annotations

import numpy as np
import pytest

import warpsmith as ws
from warpsmith.dtypes import by_name


def compiled(body: str, parameter: str, result: str) -> ws.Executable:
    text = f"""
        HloModule strided
        f {{
          %p = {parameter} parameter(0)
          ROOT %r = {result} {body}
        }}
        ENTRY e {{
          %x = {parameter} parameter(0)
          ROOT %f = {result} fusion(%x), kind=kLoop, calls=f
        }}
    """
    return ws.compile(ws.parse_hlo(text), cache=False)


def values(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return (np.arange(np.prod(shape)) % 101 - 50).astype(np.float32).astype(by_name(dtype).numpy).reshape(shape)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "s8", "f64"])
@pytest.mark.parametrize("step", [2, 3, 4, 5])
def test_every_nth_element(dtype: str, step: int) -> None:
    for size in (3, 64, 257):
        count = -(-(size - 1) // step)
        run = compiled(f"slice(%p), slice={{[0:3], [1:{size}:{step}]}}", f"{dtype}[3,{size}]", f"{dtype}[3,{count}]")
        x = values(dtype, (3, size))
        np.testing.assert_array_equal(run(x)[0], x[:, 1::step])


@pytest.mark.parametrize("dtype", ["f32", "bf16", "s8", "f64", "pred"])
@pytest.mark.parametrize("size", [5, 64, 257])
def test_rows_backwards(dtype: str, size: int) -> None:
    type = f"{dtype}[3,{size}]"
    run = compiled("reverse(%p), dimensions={1}", type, type)
    x = values(dtype, (3, size))
    np.testing.assert_array_equal(run(x)[0], x[:, ::-1])
